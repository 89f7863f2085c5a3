//! CMD as a process: the leader of a group of its own, which dies with the runner. To ask the kernel
//! for that, the binary starts itself, asks, waits to be continued, and becomes CMD.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use anyhow::Context;
use clap::Args;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_current_process_group, kill_process,
    kill_process_group, set_parent_process_death_signal, waitid,
};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::guard::Guard;
use super::outcome::exit_code;
use super::terminal::Terminal;
use crate::exit::Exit;

const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Signals by which a terminal, or a process in its place, stops a job.
const JOB_STOPS: [Signal; 3] = [Signal::TSTP, Signal::TTIN, Signal::TTOU];

/// How the state of CMD changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It ended, with this exit code.
    Ended(u8),
    /// It was stopped as a job of a shell is.
    Stopped,
}

/// A supervised command: a process, or a double in tests.
pub(crate) trait Supervised {
    /// Waits for the next change.
    ///
    /// # Cancel safety
    /// A dropped wait loses no change.
    async fn change(&mut self) -> Change;

    /// Sends a signal to the whole group. One that has ended gets none.
    fn signal(&mut self, signal: Signal);

    /// Stops this process with CMD, as its shell expects. Returns when it is continued.
    fn stop_along(&mut self);

    /// Continues CMD.
    fn resume(&mut self);
}

/// A running CMD. When this is dropped, what is left of its group is killed: nothing that CMD has
/// started and left behind works without the lease, unless it left the group.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    group: Pid,
    /// SIGCHLD: a child has stopped or ended.
    changes: Stream,
    /// The signal that stopped CMD, while it is stopped.
    stopped: Option<Signal>,
    terminal: Terminal,
    _guard: Guard,
}

impl Child {
    /// Starts `command` with these variables and a status pipe to inherit. To be called on a thread
    /// that lasts: the kernel kills CMD when the thread ends that started it.
    pub(crate) fn start(
        command: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, String)>,
        status: &OwnedFd,
    ) -> anyhow::Result<Self> {
        let changes = signal(SignalKind::child())?;
        let mut guard = Guard::start()?;
        let mut own = tokio::process::Command::new(std::env::current_exe()?);
        own.args(["lease", "become", "--parent"]);
        own.arg(std::process::id().to_string())
            .arg("--")
            .args(command);
        own.envs(variables).process_group(0);
        // Nothing else is started from now on, so nothing else inherits it.
        fcntl_setfd(status, FdFlags::empty())?;
        let process = own.spawn().context("cannot start this binary again")?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw).context("CMD ended at once")?;
        // It stops when it is ready to become CMD: until then there is nothing to guard.
        let ready = WaitIdOptions::STOPPED | WaitIdOptions::EXITED;
        waitid(WaitId::Pid(group), ready | WaitIdOptions::NOWAIT)?;
        guard.watch(group)?;
        let mut child = Self {
            process,
            group,
            changes,
            stopped: None,
            terminal: Terminal::of_this_process(),
            _guard: guard,
        };
        child.stop_signal();
        child.terminal.give_at_start(terminal_group(group));
        child.signal(Signal::CONT);
        Ok(child)
    }

    /// Returns the signal that has stopped CMD since the last call, if one has.
    fn stop_signal(&self) -> Option<Signal> {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.group), look).ok()??;
        Signal::from_named_raw(status.stopping_signal()?)
    }

    /// Tells whether CMD has stopped as a job. One that stopped because it needs the terminal gets
    /// the terminal if possible, and is continued: false.
    fn has_stopped(&mut self) -> bool {
        let Some(by) = self.stop_signal().filter(|by| JOB_STOPS.contains(by)) else {
            return false;
        };
        self.stopped = Some(by);
        let wants_terminal = by != Signal::TSTP;
        if wants_terminal && self.terminal.give(terminal_group(self.group)) {
            self.resume();
            return false;
        }
        true
    }

    /// Takes the terminal back and returns the exit code. SIGINT or SIGQUIT of the terminal is sent
    /// to the rest of this job, too: a script ends that its user interrupts.
    fn end(&mut self, status: ExitStatus) -> u8 {
        let from_terminal = [Signal::INT, Signal::QUIT].into_iter();
        let mut by = from_terminal.filter(|one| status.signal() == Some(one.as_raw()));
        if let (true, Some(signal)) = (self.terminal.take_back(), by.next()) {
            // There is a group, as this process is in it.
            kill_current_process_group(signal).ok();
        }
        exit_code(status)
    }
}

impl Supervised for Child {
    async fn change(&mut self) -> Change {
        loop {
            let ended = tokio::select! {
                biased;
                status = self.process.wait() => Some(status),
                Some(()) = self.changes.recv() => None,
            };
            if let Some(status) = ended {
                return Change::Ended(status.map_or(CANNOT_RUN, |status| self.end(status)));
            }
            if self.has_stopped() {
                return Change::Stopped;
            }
        }
    }

    fn signal(&mut self, signal: Signal) {
        // The group may be gone already.
        kill_process_group(self.group, signal).ok();
    }

    fn stop_along(&mut self) {
        self.terminal.take_back();
        // Not TSTP, which this process passes on to CMD. The kernel drops it where no shell could
        // continue us.
        kill_current_process_group(Signal::TTIN).ok();
    }

    fn resume(&mut self) {
        let has_terminal = self.terminal.give(terminal_group(self.group));
        let wants_terminal = self.stopped.is_some_and(|by| by != Signal::TSTP);
        // Without it CMD would stop again at once: it waits until this job is in the foreground.
        if has_terminal || !wants_terminal {
            self.stopped = None;
            self.signal(Signal::CONT);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.terminal.take_back();
    }
}

fn terminal_group(group: Pid) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(group.as_raw_nonzero().get())
}

/// Arguments of the hidden `soldonce lease become`.
#[derive(Debug, Args)]
pub(crate) struct BecomeArgs {
    /// The process to die with
    #[arg(long)]
    parent: u32,
    /// What to become
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Asks to be killed when the parent dies, waits to be continued, and becomes the command.
pub(crate) fn become_command(args: &BecomeArgs) -> Exit {
    let asked = set_parent_process_death_signal(Some(Signal::KILL));
    if let Err(error) = asked {
        eprintln!("soldonce: the kernel does not promise to end CMD with us: {error}");
        return Exit::Code(CANNOT_RUN);
    }
    // A parent that died before it was asked has sent no signal.
    let parent = getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent.and_then(|parent| u32::try_from(parent).ok()) != Some(args.parent) {
        return Exit::Code(CANNOT_RUN);
    }
    if let Err(error) = kill_process(getpid(), Signal::STOP) {
        eprintln!("soldonce: CMD cannot wait for its guard: {error}");
        return Exit::Code(CANNOT_RUN);
    }
    let Some((program, rest)) = args.command.split_first() else {
        return Exit::Code(NOT_FOUND);
    };
    let error = Command::new(program).args(rest).exec();
    eprintln!("soldonce: {}: {error}", program.display());
    Exit::Code(if error.kind() == std::io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        CANNOT_RUN
    })
}

/// A pipe for states of the lease: the end that is written, and the end that CMD inherits.
pub(crate) type Pipe = (File, OwnedFd);

/// Creates a pipe for states of the lease that no process inherits yet.
pub(crate) fn status_pipe() -> anyhow::Result<Pipe> {
    let (reader, writer) = std::io::pipe()?;
    let writer = OwnedFd::from(writer);
    // A CMD that reads no states must not stop the runner.
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK)?;
    Ok((File::from(writer), reader.into()))
}
