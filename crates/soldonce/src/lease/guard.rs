//! A process that outlives a killed runner for a moment, to kill the group of CMD. The kernel's signal
//! at a parent's death reaches CMD alone, not what CMD has started.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};

use super::signals::Signals;
use crate::exit::Exit;

/// The guard of one run. Dropping this ends the guard, which then kills nothing.
#[derive(Debug)]
pub(crate) struct Guard {
    process: Child,
    /// Closed by the kernel, however the runner ends.
    pipe: ChildStdin,
}

impl Guard {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut own = Command::new(std::env::current_exe()?);
        own.args(["lease", "guard"]).current_dir("/");
        own.stdin(Stdio::piped()).stdout(Stdio::null());
        // A group of its own: what is sent to the runner's, by a terminal for instance, is not for it.
        own.stderr(Stdio::null()).process_group(0);
        let mut process = own.spawn().context("cannot start this binary again")?;
        let pipe = process.stdin.take().context("the guard has no pipe")?;
        Ok(Self { process, pipe })
    }

    /// Tells the guard to kill `group` when this process ends.
    pub(crate) fn watch(&mut self, group: Pid) -> std::io::Result<()> {
        writeln!(self.pipe, "{}", group.as_raw_nonzero())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended already.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Runs the hidden `soldonce lease guard`: waits for the end of the runner, and kills.
pub(crate) fn guard() -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _entered = runtime.enter();
    // A guard does not end before its runner.
    let _unheard = Signals::listen()?;
    let mut runner = std::io::stdin().lock();
    let mut group = String::new();
    runner.read_line(&mut group)?;
    std::io::copy(&mut runner, &mut std::io::sink())?;
    if let Some(group) = group.trim().parse().ok().and_then(Pid::from_raw) {
        // It may have ended already.
        kill_process_group(group, Signal::KILL).ok();
    }
    Ok(Exit::Done)
}
