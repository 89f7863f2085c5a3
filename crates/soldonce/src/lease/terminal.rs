//! The terminal of a run. CMD is a process group of its own, and only the foreground group of a
//! terminal may read it: CMD is given the foreground, and the runner takes it back.

use std::fs::File;
use std::io::IsTerminal;

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The controlling terminal of this process, if it has one.
#[derive(Debug)]
pub(crate) struct Terminal {
    device: Option<File>,
    /// CMD was put into the foreground.
    is_given: bool,
}

impl Terminal {
    pub(crate) fn of_this_process() -> Self {
        let device = File::options().read(true).write(true).open("/dev/tty");
        Self {
            device: device.ok(),
            is_given: false,
        }
    }

    /// Gives it to CMD before CMD asks, if nothing else in our group can want it: in a pipeline, or in
    /// the background of a script, it stays where it is until CMD reads it.
    pub(crate) fn give_at_start(&mut self, group: Pid) {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            self.give(group);
        }
    }

    /// Puts `group` into the foreground if our own group is there. Tells whether it is now.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        let Some(device) = &self.device else {
            return false;
        };
        let foreground = tcgetpgrp(device);
        if foreground == Ok(getpgrp()) && tcsetpgrp(device, group).is_ok() {
            self.is_given = true;
        }
        self.is_given
    }

    /// Puts our own group into the foreground again. Tells whether CMD was there.
    pub(crate) fn take_back(&mut self) -> bool {
        let was_given = std::mem::take(&mut self.is_given);
        if let (true, Some(device)) = (was_given, &self.device) {
            // A group in the background that asks for the foreground is stopped by this signal,
            // unless it is blocked.
            let stop = SigSet::from(Signal::SIGTTOU);
            stop.thread_block().ok();
            // Without a terminal, which may be gone by now, there is nothing to have.
            tcsetpgrp(device, getpgrp()).ok();
            stop.thread_unblock().ok();
        }
        was_given
    }
}
