//! A server in a process of its own: it prints the address that it serves, and SIGTERM ends it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Stdio;

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::services::random_name;

/// The text before the address in the line that a server prints when it serves.
const SERVES: &str = " serves on http://";

/// Formats the line by which a server tells its name and its address.
pub(crate) fn serves_line(name: &str, address: SocketAddr) -> String {
    format!("{name}{SERVES}{address}\n")
}

/// A running server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) id: u32,
    /// What it calls itself in the line that tells the address.
    pub(crate) name: String,
    /// When its process was started.
    pub(crate) began: BootTime,
    child: Child,
}

impl Served {
    /// Starts it and waits until it serves.
    pub(crate) async fn start(command: &mut Command) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let began = SystemClock.boot();
        let mut child = command.spawn().context("cannot start the server")?;
        let id = child.id().context("the server ended at once")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let (name, address) = loop {
            let line = lines.next_line().await?;
            let line = line.context("the server did not start")?;
            if let Some((name, address)) = line.split_once(SERVES) {
                let address = address.trim().parse();
                let address = address.context("the server gave no address")?;
                break (name.to_owned(), address);
            }
        };
        Ok(Self {
            address,
            id,
            name,
            began,
            child,
        })
    }

    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("the server was not killed")
    }

    /// Sends SIGTERM, and waits until it has finished its requests. Fails unless it exits with 0.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let id = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        kill_process(id.context("the server has no process id")?, Signal::TERM)?;
        let status = self.child.wait().await?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

/// Any free port of this machine.
pub(crate) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Builds the command for the program `soldonce` in the folder of this one as a server at this address, with
/// this key of the scope admin.
pub(crate) fn product(address: SocketAddr, key: &str) -> anyhow::Result<Command> {
    let program = std::env::current_exe()?.with_file_name("soldonce");
    if !program.is_file() {
        let place = program.display();
        bail!(
            "{place} is missing: build it with `cargo build -p soldonce`, with --release if this is"
        );
    }
    let mut command = Command::new(program);
    command
        .args(["serve", "--listen", &address.to_string()])
        .env("SOLDONCE_ADMIN_KEY", key)
        .env("SOLDONCE_LOG", "warn");
    Ok(command)
}

pub(crate) fn admin_key() -> String {
    format!("bench-{}", random_name())
}

/// Runs `work` unless a signal ends it: then the caller still clears up.
pub(crate) async fn unless_stopped<T>(
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    tokio::select! {
        done = work => done,
        () = stop_signal() => bail!("ended by a signal"),
    }
}

/// Waits for SIGINT or SIGTERM.
pub(crate) async fn stop_signal() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => terminate.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}
