//! Clocks on which a machine that is busy or stands still is no server that does not answer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock};
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
    /// By how much it is slower than the machine's clock.
    slower_by: Arc<AtomicU32>,
    _end: Sender<()>,
}

impl Awake {
    pub(crate) fn start() -> Self {
        let clock = ManualClock::at(1_000_000);
        let (end, ended) = channel();
        let (ticking, slower_by) = (clock.clone(), Arc::new(AtomicU32::new(1)));
        let pace = Arc::clone(&slower_by);
        std::thread::spawn(move || {
            let mut last = SystemClock.boot();
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let now = SystemClock.boot();
                ticking.advance(now.since(last).min(TICK_MOST) / pace.load(Ordering::Relaxed));
                last = now;
            }
        });
        Self {
            clock,
            slower_by,
            _end: end,
        }
    }

    /// Goes so much slower than the machine's clock from now on: by 10, the 200 ms of a vote are two seconds.
    pub(crate) fn slow_down(&self, by: u32) {
        self.slower_by.store(by, Ordering::Relaxed);
    }

    pub(crate) fn clock(&self) -> ManualClock {
        self.clock.clone()
    }
}
