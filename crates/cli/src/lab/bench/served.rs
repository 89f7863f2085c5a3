//! A server in a process of its own: it says on its first lines where it serves, and SIGTERM ends it,
//! as an operator would.

use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use soldonce_lease::{BootTime, Clock, Entropy, SystemClock, SystemEntropy};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::process::{Cores, inherit};

/// What stands before the address in the line that tells it.
const SERVES: &str = " serves on http://";

/// A running server.
pub(in crate::lab) struct Served {
    pub(in crate::lab) address: SocketAddr,
    pub(in crate::lab) id: u32,
    /// What it calls itself in the line that tells the address.
    pub(in crate::lab) name: String,
    /// When its process was started.
    pub(super) began: BootTime,
    child: Child,
}

impl Served {
    /// Starts it and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
    pub(in crate::lab) async fn start(command: &mut Command, cores: Cores) -> anyhow::Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let began = SystemClock.boot();
        let mut child = inherit(cores, || command.spawn())?.context("cannot start the server")?;
        let id = child.id().context("the server ended at once")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let (name, address) = loop {
            let line = lines
                .next_line()
                .await?
                .context("the server did not start")?;
            if let Some((name, address)) = line.split_once(SERVES) {
                let address = address.trim().parse();
                break (
                    name.to_owned(),
                    address.context("the server gave no address")?,
                );
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

    /// Lets it finish what it began, and end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(in crate::lab) async fn stop(mut self) -> anyhow::Result<()> {
        let id = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        kill_process(id.context("the server has no process id")?, Signal::TERM)?;
        let status = self.child.wait().await?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

/// This same program as a server, on any free port, with this key of the scope admin.
///
/// # Errors
/// When the program's own file is not known.
pub(in crate::lab) fn product(key: &str) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("this program's own file is not known")?;
    let mut command = Command::new(program);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("SOLDONCE_ADMIN_KEY", key)
        .env("SOLDONCE_LOG", "warn");
    Ok(command)
}

/// A key that nobody guesses.
pub(in crate::lab) fn admin_key() -> String {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    format!(
        "bench-{}",
        soldonce_core::encode_128(u128::from_be_bytes(bytes))
    )
}
