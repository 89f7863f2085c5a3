//! A server's process: started so that it ends with the test, stopped for a while, killed.

use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::wait::{PATIENCE, until, until_some};
use super::{Folder, Port};

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

    /// Starts it as [`Process::start`] does, with its output appended to the file `log`.
    pub(crate) fn start_logged(mut command: Command, log: &Path) -> Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        command.stdout(log.try_clone()?).stderr(log);
        Self::start(command)
    }

    /// Starts it as [`Process::start_logged`] does, and waits until it takes connections.
    pub(crate) fn start_listening(
        command: Command,
        (folder, log): (&Folder, &str),
        port: &Port,
    ) -> Result<Self> {
        let mut process = Self::start_logged(command, &folder.join(log))?;
        until_some("the server listens", PATIENCE, || {
            if let Some(status) = process.ended()? {
                bail!("the server ended ({status}): {}", folder.tail(log));
            }
            Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).ok())
        })?;
        Ok(process)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Takes its input and its output; `None` the second time, or without pipes.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

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

    /// Stops the process and all that it started (SIGSTOP), and returns when none of them runs.
    ///
    /// A signal works some time after it was sent, and a process that is not stopped yet may start
    /// another: one started between a look at /proc and the signal would run on. A look takes time,
    /// too: a process that it finds stopped may have started a child meanwhile, which it misses.
    /// The next look finds that child.
    pub(crate) fn pause_family(&mut self) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        let mut still = 0;
        until_some("a process and its children stop", PATIENCE, || {
            let mut moving = family(self.id())?;
            moving.retain(Member::moves);
            signal_each(&moving, Signal::STOP)?;
            still = if moving.is_empty() { still + 1 } else { 0 };
            Ok((still == 2).then_some(()))
        })
    }

    /// Resumes all of them after [`Process::pause_family`] (SIGCONT).
    pub(crate) fn resume_family(&mut self) -> Result<()> {
        self.signal_family(Signal::CONT)
    }

    /// Sends `signal` to the process and to all that it started, parents first.
    fn signal_family(&mut self, signal: Signal) -> Result<()> {
        if self.ended()?.is_some() {
            return Ok(());
        }
        signal_each(&family(self.id())?, signal)
    }

    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// Kills the process as a power cut would, with all that it started, and waits until all of
    /// them have ended: what they shared is free then.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.pause_family()?;
        let members = family(self.id())?;
        self.signal_family(Signal::KILL)?;
        self.wait()?;
        until("the children of a killed process end", PATIENCE, || {
            members
                .iter()
                .all(|member| Member::now(member.id).is_none_or(|now| now.is_dead()))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before; a test that ends reports its own failure, not this.
        self.kill().ok();
    }
}

type Start = (Command, SyncSender<std::io::Result<Child>>);

/// Returns the channel to the one thread that starts all processes.
fn starter() -> &'static Sender<Start> {
    static STARTER: OnceLock<Sender<Start>> = OnceLock::new();
    STARTER.get_or_init(|| {
        let (sender, starts) = channel::<Start>();
        std::thread::spawn(move || {
            for (mut command, answer) in starts {
                // The caller waits for the answer.
                answer.send(command.spawn()).ok();
            }
        });
        sender
    })
}

fn pid(id: u32) -> Result<Pid> {
    Pid::from_raw(i32::try_from(id)?).context("a process id is positive")
}

fn signal_each(members: &[Member], signal: Signal) -> Result<()> {
    for member in members {
        // A member that ended meanwhile needs no signal.
        kill_process(pid(member.id)?, signal).ok();
    }
    Ok(())
}

/// The fields of /proc/ID/stat that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    id: u32,
    parent: u32,
    /// `R`, `S`, `T` and so on (proc(5)).
    state: char,
}

impl Member {
    /// Parses `/proc/ID/stat`: the fields after the name, which may hold any characters.
    fn read(id: u32, stat: &str) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        Some(Self {
            id,
            state: fields.next()?.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
        })
    }

    /// Reads the state of the process with this id; `None` if there is none now.
    fn now(id: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        Self::read(id, &stat)
    }

    fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Tells whether it may still run: it is neither stopped nor dead.
    fn moves(&self) -> bool {
        !matches!(self.state, 'T' | 't') && !self.is_dead()
    }
}

/// Lists the process and its descendants, parents first, as /proc shows them now.
fn family(root: u32) -> Result<Vec<Member>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        all.extend(Member::now(id));
    }
    let mut family: Vec<Member> = all.iter().filter(|one| one.id == root).copied().collect();
    let mut next = 0;
    while let Some(&Member { id, .. }) = family.get(next) {
        family.extend(all.iter().filter(|one| one.parent == id));
        next += 1;
    }
    Ok(family)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Account;

    /// Starts a shell that waits for a child of its own.
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
        let child = Member::now(members[1].id);
        assert!(child.is_none_or(|child| child.is_dead()), "{child:?}");
    }

    #[test]
    fn a_process_that_starts_others_all_the_time_is_stopped_whole() {
        let mut command = Account::Own.command("sh".as_ref(), Some("KILL"));
        command.args(["-c", "while :; do true | true & done"]);
        let mut busy = Process::start(command).unwrap();
        for _ in 0..20 {
            busy.pause_family().unwrap();
            let members = family(busy.id()).unwrap();
            assert!(!members.iter().any(Member::moves), "{members:?}");
            busy.resume_family().unwrap();
        }
        busy.kill().unwrap();
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let mut shell = std::thread::spawn(shell).join().unwrap();
        assert!(shell.ended().unwrap().is_none());
    }

    #[test]
    fn a_process_is_read_after_any_name() {
        let read = Member::read(12, "12 (a) b) S 7 12 12").unwrap();
        let meant = Member {
            id: 12,
            parent: 7,
            state: 'S',
        };
        assert_eq!(read, meant);
        assert_eq!(Member::read(12, ""), None);
    }
}
