//! The signals that a runner passes on. One that was ignored when the runner started, by `nohup` or in
//! the background of a script, stays ignored, by the runner and by CMD, which inherits that.

use std::future::poll_fn;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Signals that end a process that has no handler for them.
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
    /// Catches signals that would end this process, unless they were ignored at its start.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let mut signals = Self {
            streams: Vec::new(),
        };
        signals.add(&ENDING)?;
        Ok(signals)
    }

    /// Catches the signals that are for CMD alone, too, now that there is one.
    pub(crate) fn listen_for_the_command(&mut self) -> std::io::Result<()> {
        self.add(&WHILE_RUNNING)
    }

    /// Stops returning the signals that were for CMD alone, as it has ended.
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

/// Tells whether this process ignores a signal, as `nohup` sets it. Never true without `/proc`.
pub(crate) fn is_ignored(number: i32) -> std::io::Result<bool> {
    let status = match std::fs::read_to_string("/proc/self/status") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    Ok(ignored(&status) & (1 << (number - 1)) != 0)
}

/// Parses the ignored signals in `/proc/PID/status`: a bit mask, the lowest bit for signal 1.
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

/// A source of signals: the process, or a double in tests.
pub(crate) trait SignalSource {
    /// Waits for the next signal.
    ///
    /// # Cancel safety
    /// A dropped wait loses no signal.
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
