//! A test that needs a second process runs itself again: its own program is started for this one
//! test, with a part to play. The two talk in lines. The player is killed when the test ends.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use soldonce_testkit::player::{Part, Player};
//!
//! if let Some(mut part) = Part::of_this_process() {
//!     part.say("hello");
//!     assert_eq!(part.hear()?, "go");
//!     return Ok(());
//! }
//! let mut player = Player::start(&["holder"])?;
//! assert_eq!(player.hear()?, "hello");
//! player.pause()?; // SIGSTOP
//! player.tell("go")?;
//! player.resume()?;
//! assert!(player.ended()?.success());
//! # Ok(())
//! # }
//! ```

use std::io::{BufRead, BufReader, Write, stdin};
use std::os::unix::ffi::OsStringExt;
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::server::{Account, PATIENCE, Process, until_some};

/// The variable that is set in the process that plays a part: its words, one to a line.
const PART: &str = "SOLDONCE_TEST_PART";

/// The prefix of a player's lines, which the lines of the test runner do not have.
const MARK: &str = "player: ";

/// The other process, as the test sees it.
#[derive(Debug)]
pub struct Player {
    process: Process,
    ear: ChildStdin,
    lines: Receiver<String>,
}

/// The part that this process was started to play.
#[derive(Debug)]
pub struct Part {
    words: Vec<String>,
}

impl Player {
    /// Starts the current test again in a process of its own, with these words as its part.
    pub fn start(words: &[&str]) -> Result<Self> {
        let name = test_name()?;
        let mut command = Account::Own.command(std::env::current_exe()?.as_os_str(), Some("KILL"));
        command.args([&name, "--exact", "--nocapture"]);
        command.env(PART, words.join("\n"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(command)?;
        let (ear, mouth) = process.pipes().context("both were asked for")?;
        Ok(Self {
            process,
            ear,
            lines: listen(mouth),
        })
    }

    /// Returns the id of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits for its next line. Fails after [`PATIENCE`], or when it has ended.
    pub fn hear(&mut self) -> Result<String> {
        let line = self.lines.recv_timeout(PATIENCE);
        line.context("the player says nothing")
    }

    /// Sends a line to it.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        writeln!(self.ear, "{line}")?;
        self.ear.flush()?;
        Ok(())
    }

    /// Stops it (SIGSTOP), all of its threads at once.
    pub fn pause(&mut self) -> Result<()> {
        self.process.signal(Signal::STOP)
    }

    /// Resumes it after [`Player::pause`] (SIGCONT).
    pub fn resume(&mut self) -> Result<()> {
        self.process.signal(Signal::CONT)
    }

    /// Kills it with all that it started, and waits until they have ended.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()
    }

    /// Waits until it ends by itself, and returns its exit status. Fails after [`PATIENCE`].
    pub fn ended(&mut self) -> Result<ExitStatus> {
        until_some("the player ends", PATIENCE, || self.process.ended())
    }
}

impl Part {
    /// Reads the part of this process from its environment; `None` in the test itself.
    pub fn of_this_process() -> Option<Self> {
        let words = std::env::var_os(PART)?.into_vec();
        let words = String::from_utf8_lossy(&words);
        let words = words.lines().map(str::to_owned).collect();
        Some(Self { words })
    }

    /// Returns its words, as given to [`Player::start`].
    pub fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// Sends a line to the test.
    #[expect(clippy::print_stdout, reason = "this is how the two processes talk")]
    pub fn say(&self, line: &str) {
        // A runner that prints without an end of line must not hide it.
        println!("\n{MARK}{line}");
    }

    /// Waits for the next line from the test. Fails when the test has ended.
    pub fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        anyhow::ensure!(stdin().read_line(&mut line)? > 0, "the test has ended");
        Ok(line.trim_end().to_owned())
    }
}

/// Reads the player's lines in a thread of its own, until the player ends.
fn listen(mouth: ChildStdout) -> Receiver<String> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        let read = BufReader::new(mouth).lines().map_while(Result::ok);
        for line in read.filter_map(|line| line.strip_prefix(MARK).map(str::to_owned)) {
            // Fails when the test is done with the player.
            to.send(line).ok();
        }
    });
    lines
}

/// Returns the name of the running test. It is that of the thread, unless tests run in the main
/// thread: then it is the first argument of the program that is no option.
pub(crate) fn test_name() -> Result<String> {
    let thread = std::thread::current();
    let named = thread.name().filter(|name| *name != "main");
    let asked = || std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let name = named.map(str::to_owned).or_else(asked);
    name.context("the test's name is unknown: run it in a thread of its own")
}
