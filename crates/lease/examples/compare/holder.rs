//! A process that holds locks by one of the libraries. It prints `ready`, and then answers each line
//! by one line:
//!
//! | command | does | answer |
//! |---|---|---|
//! | `take NAME MS` | tries to lock the name for so long | `yes` or `no` |
//! | `wait NAME MS` | waits for it, as its library waits | `yes` |
//! | `mine` | asks its library whether it still has it | `yes` with the token, if any, or `no` |
//! | `drop` | unlocks | `done` |
//! | `pairs TASKS MS` | locks and unlocks, each task its own name | how often |
//! | `turns TASKS N` | each task holds one name N times for 5 ms | microseconds |

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use soldonce_testkit::{LONG_TOOLS, Machine, TOOLS, install_node_packages, provide};

/// Every answer comes by then.
const PATIENCE: Duration = Duration::from_mins(1);

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Ours,
    Rslock,
    RedisPy,
    NodeRedlock,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Ours, Self::Rslock, Self::RedisPy, Self::NodeRedlock];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "soldonce-lease",
            Self::Rslock => "rslock",
            Self::RedisPy => "redis-py",
            Self::NodeRedlock => "node-redlock",
        }
    }
}

/// Where the interpreters and the libraries for them are.
pub(crate) struct Interpreters {
    python: PathBuf,
    redis_py: PathBuf,
    node: PathBuf,
}

impl Interpreters {
    /// Finds them, or fetches them.
    pub(crate) fn provide() -> Result<Self, Box<dyn Error>> {
        let machine = Machine::here(|line| eprintln!("   {line}"))?;
        let tool = |name: &str| {
            let listed = TOOLS
                .iter()
                .chain(LONG_TOOLS)
                .find(|tool| tool.name == name);
            Ok::<_, Box<dyn Error>>(provide(listed.ok_or("no such tool is listed")?, &machine)?)
        };
        let node = tool("node")?;
        install_node_packages(&machine, &node, &folder())?;
        let package = tool("redis-py")?;
        let redis_py = package.ancestors().nth(2).ok_or("redis-py lies nowhere")?;
        Ok(Self {
            python: tool("python3")?,
            redis_py: redis_py.to_owned(),
            node,
        })
    }

    fn command(&self, peer: Peer) -> Result<Command, Box<dyn Error>> {
        Ok(match peer {
            Peer::Ours | Peer::Rslock => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--hold", peer.name()]);
                command
            }
            Peer::RedisPy => {
                let mut command = Command::new(&self.python);
                command
                    .arg(folder().join("holder.py"))
                    .env("PYTHONPATH", &self.redis_py);
                command
            }
            Peer::NodeRedlock => {
                let mut command = Command::new(&self.node);
                command.arg(folder().join("holder.mjs"));
                command
            }
        })
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/compare")
}

/// The process. It is killed when this value goes.
pub(crate) struct Holder {
    child: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Holder {
    /// Starts one and waits until it is connected.
    pub(crate) fn start(
        peer: Peer,
        with: &Interpreters,
        url: &str,
    ) -> Result<Self, Box<dyn Error>> {
        let mut command = with.command(peer)?;
        let mut child = command
            .arg(url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        let (said, answers) = channel();
        std::thread::spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.all(|line| said.send(line).is_ok());
        });
        let holder = Self {
            child,
            input,
            answers,
        };
        let ready = holder.answer()?;
        (ready == "ready")
            .then_some(holder)
            .ok_or_else(|| format!("it says {ready}").into())
    }

    pub(crate) fn tell(&mut self, command: &str) -> Result<(), Box<dyn Error>> {
        Ok(writeln!(self.input, "{command}")?)
    }

    pub(crate) fn answer(&self) -> Result<String, Box<dyn Error>> {
        Ok(self.answers.recv_timeout(PATIENCE)?)
    }

    pub(crate) fn ask(&mut self, command: &str) -> Result<String, Box<dyn Error>> {
        self.tell(command)?;
        self.answer()
    }

    /// As [`Holder::ask`], if the answer is `yes`.
    pub(crate) fn must(&mut self, command: &str) -> Result<(), Box<dyn Error>> {
        let answer = self.ask(command)?;
        (answer == "yes")
            .then_some(())
            .ok_or_else(|| format!("{command}: {answer}").into())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Box<dyn Error>> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A process that ended by itself is no error here.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
