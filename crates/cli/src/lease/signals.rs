//! The signals that a runner passes on.

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// INT, TERM and HUP, as they come.
#[derive(Debug)]
pub(crate) struct Signals {
    int: Stream,
    term: Stream,
    hup: Stream,
}

impl Signals {
    /// From now on these signals end nothing by themselves.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
        })
    }
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
        tokio::select! {
            Some(()) = self.int.recv() => Signal::INT,
            Some(()) = self.term.recv() => Signal::TERM,
            Some(()) = self.hup.recv() => Signal::HUP,
            else => std::future::pending().await,
        }
    }
}
