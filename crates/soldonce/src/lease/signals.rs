//! The signals that a runner passes on. One that was ignored when the runner started, by `nohup` or in
//! the background of a script, stays ignored, by the runner and by CMD, which inherits that.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Signals that end a process which does not know them.
const ENDING: [Signal; 11] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::VTALARM,
    Signal::PROF,
    Signal::IO,
    Signal::POWER,
];

/// Signals that are for CMD alone, and mean nothing to a runner without one.
const WHILE_RUNNING: [Signal; 3] = [Signal::TSTP, Signal::CONT, Signal::WINCH];

#[derive(Debug)]
pub(crate) struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// From now on signals that would end this process are only told, unless they were ignored.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let mut signals = Self {
            streams: Vec::new(),
        };
        signals.add(&ENDING)?;
        Ok(signals)
    }

    /// There is a CMD now: hears what is meant for it, too.
    pub(crate) fn listen_for_the_command(&mut self) -> std::io::Result<()> {
        self.add(&WHILE_RUNNING)
    }

    /// CMD is gone: what was meant for it alone is heard no more.
    pub(crate) fn forget_the_command(&mut self) {
        self.streams
            .retain(|(signal, _)| !WHILE_RUNNING.contains(signal));
    }

    fn add(&mut self, signals: &[Signal]) -> std::io::Result<()> {
        for &one in signals {
            let number = one.as_raw();
            if !is_ignored(number)? {
                let stream = signal(SignalKind::from_raw(number))?;
                self.streams.push((one, stream));
            }
        }
        Ok(())
    }
}

/// Whether this process was started with a signal ignored, as `nohup` does. Without `/proc` none counts as ignored.
pub(crate) fn is_ignored(number: i32) -> std::io::Result<bool> {
    let status = match std::fs::read_to_string("/proc/self/status") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let ignored = ignored(&status);
    Ok(ignored & (1 << (number - 1)) != 0)
}

/// The signals that a process ignores, the lowest bit the first, as its `status` tells them.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

/// Where signals come from. One source is the process, the other is played by a test.
pub(crate) trait SignalSource {
    /// The next signal.
    ///
    /// # Cancel safety
    /// A dropped wait loses none.
    async fn next(&mut self) -> Signal;
}

impl SignalSource for Signals {
    async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let mut came = self.streams.iter_mut().filter_map(|(signal, stream)| {
                let has_come = stream.poll_recv(cx) == Poll::Ready(Some(()));
                has_come.then_some(*signal)
            });
            came.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}
