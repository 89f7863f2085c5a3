//! CMD as a process: the leader of a group of its own, which dies with the runner. To ask the kernel
//! for that, the binary starts itself, asks, and becomes CMD.

use std::ffi::OsString;
use std::fs::File;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::pin::Pin;
use std::process::Command;

use anyhow::Context;
use clap::Args;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, getppid, kill_process_group, set_parent_process_death_signal};

use super::outcome::exit_code;
use crate::exit::Exit;

const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What is supervised. One is a process, the other is played by a test.
pub(crate) trait Supervised {
    /// Waits for the end and tells its exit code.
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = u8> + '_>>;

    /// Sends a signal to the whole group. One that has ended gets none.
    fn signal(&mut self, signal: Signal);
}

/// A running CMD. When this is dropped, what is left of its group is killed: nothing that CMD has
/// started and left behind works without the lease, unless it left the group.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    group: Pid,
}

impl Child {
    /// Starts `command` with these variables and a status pipe to inherit. To be called on a thread
    /// that lasts: the kernel kills CMD when the thread ends that started it.
    pub(crate) fn start(
        command: &[OsString],
        variables: impl IntoIterator<Item = (&'static str, String)>,
        status: &OwnedFd,
    ) -> anyhow::Result<Self> {
        let mut own = tokio::process::Command::new(std::env::current_exe()?);
        own.args(["lease", "become", "--parent"]);
        own.arg(std::process::id().to_string())
            .arg("--")
            .args(command);
        own.envs(variables).process_group(0);
        // Nothing else is started meanwhile, so nothing else inherits it.
        fcntl_setfd(status, FdFlags::empty())?;
        let process = own.spawn().context("cannot start this binary again")?;
        let id = process.id().and_then(|id| i32::try_from(id).ok());
        let group = id.and_then(Pid::from_raw).context("CMD ended at once")?;
        Ok(Self { process, group })
    }
}

impl Supervised for Child {
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = u8> + '_>> {
        Box::pin(async {
            let status = self.process.wait().await;
            status.map_or(CANNOT_RUN, exit_code)
        })
    }

    fn signal(&mut self, signal: Signal) {
        // The group may be gone already.
        kill_process_group(self.group, signal).ok();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
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

/// Asks to be killed when the parent dies, and becomes the command.
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

/// A pipe for states: the end that is written, and the end that CMD inherits.
pub(crate) type Pipe = (File, OwnedFd);

/// A pipe for states that nothing inherits yet.
pub(crate) fn status_pipe() -> anyhow::Result<Pipe> {
    let (reader, writer) = std::io::pipe()?;
    let writer = OwnedFd::from(writer);
    // A CMD that reads no states must not stop the runner.
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK)?;
    Ok((File::from(writer), reader.into()))
}
