//! Clocks on which a machine that is busy or stands still is no server that does not answer.

use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use soldonce_lease::{BootTime, Clock, ManualClock, SleepFuture, SystemClock};

/// The machine's clock at a fortieth of its speed: the 200 ms of a vote are eight seconds.
pub(crate) struct Slow;

impl Slow {
    const BY: u32 = 40;

    fn start() -> BootTime {
        static START: LazyLock<BootTime> = LazyLock::new(|| SystemClock.boot());
        *START
    }
}

impl Clock for Slow {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn boot(&self) -> BootTime {
        let start = Self::start();
        start.plus(SystemClock.boot().since(start) / Self::BY)
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let start = Self::start();
        SystemClock.sleep_until(start.plus(until.since(start).saturating_mul(Self::BY)))
    }
}

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
