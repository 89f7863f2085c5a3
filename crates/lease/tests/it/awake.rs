//! A clock that stands still with the machine.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use soldonce_lease::{Clock, ManualClock, SystemClock};

/// How often it goes on.
const TICK: Duration = Duration::from_millis(20);

/// What a tick adds at most.
const TICK_MOST: Duration = Duration::from_millis(100);

/// The machine's clock without the time for which the machine stood still, so that a stall ends no wait for an answer.
/// Goes on as long as this value lives.
pub(crate) struct Awake {
    clock: ManualClock,
    _end: Sender<()>,
}

impl Awake {
    pub(crate) fn start() -> Self {
        let clock = ManualClock::at(1_000_000);
        let (end, ended) = channel();
        let ticking = clock.clone();
        std::thread::spawn(move || {
            let mut last = SystemClock.boot();
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let now = SystemClock.boot();
                ticking.advance(now.since(last).min(TICK_MOST));
                last = now;
            }
        });
        Self { clock, _end: end }
    }

    pub(crate) fn clock(&self) -> ManualClock {
        self.clock.clone()
    }
}
