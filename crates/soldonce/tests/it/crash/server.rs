//! `soldonce serve` in a process of its own, ended through its own handle and nothing else.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::client::Client;
use super::short_log;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_soldonce");
/// The admin key of every server of the rig.
pub(crate) const ADMIN_KEY: &str = "crash-rig-admin-key";

/// A running server.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    /// What it said before it served.
    pub(crate) said: String,
}

/// A server that did not start.
#[derive(Debug)]
pub(crate) struct NotStarted {
    pub(crate) status: ExitStatus,
    /// What it said.
    pub(crate) log: String,
}

/// What a server says when it listens, before its address.
pub(super) const LISTENS: &str = "soldonce serves on http://";

/// The address in the line that says where a server listens.
fn listens(line: &str) -> Option<SocketAddr> {
    let secure = LISTENS.replace("http:", "https:");
    let address = line.trim().strip_prefix(LISTENS);
    Some(
        address
            .or(line.trim().strip_prefix(&secure))?
            .parse()
            .unwrap(),
    )
}

/// The arguments of the program that serves `data`.
pub(crate) fn arguments(data: &Path) -> Vec<String> {
    let data = data.to_str().unwrap();
    ["serve", "--listen", "127.0.0.1:0", "--data", data]
        .map(str::to_owned)
        .to_vec()
}

/// How often a server moves its write-ahead log into the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// Only when it ends: no rig fills the log of the program under test.
    Long,
    /// After every other commit, by another thread than the writer.
    Short,
}

/// The command line that serves `data`, for rigs that put another command around it.
pub(crate) fn command_line(data: &Path, log: Log) -> Vec<String> {
    match log {
        Log::Long => {
            let mut line = vec![PROGRAM.to_owned()];
            line.extend(arguments(data));
            line
        }
        Log::Short => short_log::command_line(data),
    }
}

/// The same server without the rig's admin key.
pub(crate) fn without_admin_key(server: &Command) -> Command {
    let mut command = Command::new("env");
    command.args(["-u", "SOLDONCE_ADMIN_KEY"]);
    command.arg(server.get_program()).args(server.get_args());
    command
}

/// Serves `data`.
pub(crate) fn serving(data: &Path) -> Command {
    serving_with(data, Log::Long)
}

/// Serves `data` with such a log.
pub(crate) fn serving_with(data: &Path, log: Log) -> Command {
    let line = command_line(data, log);
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    command
}

/// The log of the server of a folder.
fn log_of(data: &Path) -> PathBuf {
    data.with_extension("log")
}

impl Server {
    /// Serves a folder.
    pub(crate) fn start(data: &Path) -> Result<Self, NotStarted> {
        Self::run(serving(data), data)
    }

    /// Runs a command that ends up as the server of `data`, and waits until it listens or ends.
    pub(crate) fn run(mut command: Command, data: &Path) -> Result<Self, NotStarted> {
        let log = log_of(data);
        let file = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command
            .env("SOLDONCE_ADMIN_KEY", ADMIN_KEY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file);
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut line, mut said) = (String::new(), String::new());
        while output.read_line(&mut line).unwrap() > 0 {
            if let Some(address) = listens(&line) {
                return Ok(Self {
                    child,
                    output,
                    address,
                    said,
                });
            }
            said.push_str(&line);
            line.clear();
        }
        let status = child.wait().unwrap();
        let log = std::fs::read_to_string(log).unwrap();
        Err(NotStarted { status, log })
    }

    /// Waits for what its command says as the server ends, and until the next one listens.
    pub(crate) fn begins_again(&mut self) -> String {
        self.said.clear();
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "{}",
                self.said
            );
            if let Some(address) = listens(&line) {
                self.address = address;
                return std::mem::take(&mut self.said);
            }
            self.said.push_str(&line);
        }
    }

    /// A client, whose requests are told apart by `name`.
    pub(crate) fn client(&self, name: &str) -> Client {
        Client::new(self.address, ADMIN_KEY, name)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.end()
    }

    /// SIGKILL, without a wait.
    pub(crate) fn signal_kill(&self) {
        self.signal(Signal::KILL);
    }

    /// SIGTERM, and waits until it has ended in order.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.terminate();
        self.end()
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGHUP, by which it reads its certificate again.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, and for that of the program that traces it.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let status = self.child.wait().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only what a failing test left running; a server that has ended is not signalled.
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            self.end();
        }
    }
}

/// What `soldonce verify` says of a folder that no server serves.
pub(crate) fn verify(data: &Path) -> Result<(), String> {
    let output = Command::new(PROGRAM)
        .arg("verify")
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!(
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&text).trim()
    ))
}
