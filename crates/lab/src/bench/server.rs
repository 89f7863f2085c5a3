//! The server under test: in this process, or in one of its own, whose CPU time can be told from
//! the generator's.

use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, bail};
use clap::Args;
use soldonce_server::{AcceptLimits, Drained, serve};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::process::pin_to_core;
use super::scenario::{Scenario, find};
use crate::exit::Exit;

/// Arguments of the hidden `bench-server`.
#[derive(Debug, Args)]
pub(crate) struct BenchServerArgs {
    /// What to serve
    scenario: String,
    /// Core to stay on
    #[arg(long)]
    core: Option<usize>,
}

/// A scenario's server in this process.
pub(crate) struct RunningServer {
    pub(crate) address: SocketAddr,
    shutdown: CancellationToken,
    tasks: JoinSet<Drained>,
}

/// Serves a scenario on a port of its own.
///
/// # Errors
/// When its data cannot be made or no port is free.
pub(crate) async fn serve_scenario(scenario: &dyn Scenario) -> anyhow::Result<RunningServer> {
    let router = scenario.router()?;
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .context("no port on 127.0.0.1")?;
    let address = listener.local_addr()?;
    let shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(
        listener,
        router,
        AcceptLimits::default(),
        shutdown.clone(),
    ));
    Ok(RunningServer {
        address,
        shutdown,
        tasks,
    })
}

impl RunningServer {
    /// Drains.
    ///
    /// # Errors
    /// When a handler panicked.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        let drained = self
            .tasks
            .join_next()
            .await
            .context("the server had no task")??;
        match drained.panicked {
            0 => Ok(()),
            lost => bail!("the server lost {lost} connections to panics"),
        }
    }
}

/// Serves until standard input ends, so that it never outlives the benchmark.
///
/// # Errors
/// Unknown scenarios, and what [`serve_scenario`] and [`RunningServer::stop`] say.
pub(crate) fn run(args: &BenchServerArgs) -> anyhow::Result<Exit> {
    let scenario = find(&args.scenario).context("unknown scenario")?;
    if let Some(core) = args.core {
        pin_to_core(core)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let server = serve_scenario(scenario).await?;
        println!("{}", server.address);
        let mut nothing = Vec::new();
        tokio::io::stdin().read_to_end(&mut nothing).await?;
        server.stop().await?;
        Ok(Exit::Done)
    })
}

/// A scenario's server in a process of its own.
pub(crate) struct ServerProcess {
    pub(crate) address: SocketAddr,
    pub(crate) id: u32,
    child: Child,
}

impl ServerProcess {
    /// Starts this same program as the server and waits until it listens.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn start(
        scenario: &dyn Scenario,
        core: Option<usize>,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("this program's own file is not known")?;
        let mut command = Command::new(program);
        command.args(["bench-server", scenario.name()]);
        if let Some(core) = core {
            command.arg("--core").arg(core.to_string());
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .context("cannot start the server under test")?;
        let id = child.id().context("the server under test ended at once")?;
        let output = child
            .stdout
            .take()
            .context("the server under test has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).await?;
        let address = line
            .trim()
            .parse()
            .context("the server under test did not start")?;
        Ok(Self { address, id, child })
    }

    /// Lets it drain and end.
    ///
    /// # Errors
    /// When it ends otherwise than well.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().await?;
        if status.success() {
            Ok(())
        } else {
            bail!("the server under test ended with {status}")
        }
    }
}
