//! A server's process: started so that it dies with the test, stopped for a while, killed.

use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// A running process and those it started.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts `command`, which asks for a signal at the death of its parent (`setpriv
    /// --pdeathsig`). That signal comes when the *thread* ends that started the process, so all are
    /// started by one thread that ends with the test process.
    pub(crate) fn start(command: Command) -> Result<Self> {
        let name = format!("{command:?}");
        let (answer, answered) = sync_channel(1);
        let asked = starter().send((command, answer));
        asked
            .ok()
            .context("the thread that starts servers is gone")?;
        let child = answered.recv().context("the start was not answered")?;
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its input and its output, once, if the command asked for pipes.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Sends `signal` to the process alone.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_none() {
            kill_process(pid(self.id())?, signal)?;
        }
        Ok(())
    }

    /// Sends `signal` to the process and to all that it started, parents first.
    pub(crate) fn signal_family(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        for member in family(self.id())? {
            // A member that ended meanwhile needs no signal.
            kill_process(pid(member)?, signal).ok();
        }
        Ok(())
    }

    /// Waits for the end.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// Kills the process as a power cut would, with all that it started, and waits for its end.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.signal_family(Signal::KILL)?;
        self.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before; a test that ends reports its own failure, not this.
        self.kill().ok();
    }
}

type Start = (Command, SyncSender<std::io::Result<Child>>);

/// The way to the thread that starts all processes.
fn starter() -> &'static Sender<Start> {
    static STARTER: OnceLock<Sender<Start>> = OnceLock::new();
    STARTER.get_or_init(|| {
        let (sender, starts) = channel::<Start>();
        std::thread::spawn(move || {
            for (mut command, answer) in starts {
                // Whoever asked waits for the answer.
                answer.send(command.spawn()).ok();
            }
        });
        sender
    })
}

fn pid(id: u32) -> Result<Pid> {
    let raw = i32::try_from(id)?;
    Pid::from_raw(raw).context("a process id is positive")
}

/// The process and its descendants, parents first, as /proc shows them now.
fn family(root: u32) -> Result<Vec<u32>> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent_in(&stat) {
            parents.push((id, parent));
        }
    }
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&member) = family.get(next) {
        let children = parents.iter().filter(|(_, parent)| *parent == member);
        family.extend(children.map(|(id, _)| *id));
        next += 1;
    }
    Ok(family)
}

/// The parent in the text of /proc/ID/stat: the fourth field, after a name that may hold anything.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Account;
    use crate::server::wait::{PATIENCE, until};

    /// A shell that waits for a child of its own.
    fn shell() -> Process {
        let mut command = Account::Own.command("sh".as_ref(), Some("KILL"));
        command.args(["-c", "sleep 600 & wait"]);
        Process::start(command).unwrap()
    }

    #[test]
    fn a_killed_process_takes_its_children_along() {
        let mut shell = shell();
        let mut members = Vec::new();
        until("the shell has a child", PATIENCE, || {
            members = family(shell.id()).unwrap();
            members.len() == 2
        })
        .unwrap();
        shell.kill().unwrap();
        let child = format!("/proc/{}/stat", members[1]);
        until("the child is dead", PATIENCE, || {
            let stat = std::fs::read_to_string(&child).unwrap_or_default();
            parent_in(&stat) != Some(members[0]) && !stat.contains("(sleep) S")
        })
        .unwrap();
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let mut shell = std::thread::spawn(shell).join().unwrap();
        assert!(shell.ended().unwrap().is_none());
    }

    #[test]
    fn the_parent_is_read_after_any_name() {
        assert_eq!(parent_in("12 (a) b) S 7 12 12"), Some(7));
        assert_eq!(parent_in(""), None);
    }
}
