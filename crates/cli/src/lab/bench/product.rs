//! The real server under test: `soldonce serve` in a process of its own, on a ledger in a folder of
//! its own, ended by SIGTERM as an operator would.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use hyper::Method;
use rustix::process::{Pid, Signal, kill_process};
use soldonce_lease::{BootTime, Clock, Entropy, SystemClock, SystemEntropy};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::process::{Cores, inherit};
use crate::client::Client;

/// `soldonce serve`.
pub(super) struct Product {
    pub(super) address: SocketAddr,
    pub(super) id: u32,
    pub(super) admin: Client,
    began: BootTime,
    child: Child,
}

impl Product {
    /// Starts this same program as the server and waits until it serves.
    ///
    /// # Errors
    /// When it does not.
    pub(super) async fn start(data: &Path, cores: Cores) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program's own file is not known")?;
        let key = admin_key();
        let mut command = Command::new(program);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .env("SOLDONCE_ADMIN_KEY", &key)
            .env("SOLDONCE_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let began = SystemClock.boot();
        let mut child = inherit(cores, || command.spawn())?.context("cannot start the server")?;
        let id = child.id().context("the server ended at once")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let address = loop {
            let line = lines
                .next_line()
                .await?
                .context("the server did not start")?;
            if let Some((_, address)) = line.split_once("serves on http://") {
                break address
                    .trim()
                    .parse()
                    .context("the server gave no address")?;
            }
        };
        let admin = Client::new(&format!("http://{address}"), &key)?;
        Ok(Self {
            address,
            id,
            admin,
            began,
            child,
        })
    }

    /// From the start of its process until it said that it is ready.
    ///
    /// # Errors
    /// When it is not although it serves.
    pub(super) async fn ready(&self) -> anyhow::Result<Duration> {
        let answer = self.admin.send(Method::GET, "/readyz", None).await?;
        let took = SystemClock.boot().since(self.began);
        answer.into_success().context("the server is not ready")?;
        Ok(took)
    }

    /// Lets it finish what it began, and end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let id = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        kill_process(id.context("the server has no process id")?, Signal::TERM)?;
        let status = self.child.wait().await?;
        if !status.success() {
            bail!("the server ended with {status}");
        }
        Ok(())
    }
}

fn admin_key() -> String {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    format!(
        "bench-{}",
        soldonce_core::encode_128(u128::from_be_bytes(bytes))
    )
}
