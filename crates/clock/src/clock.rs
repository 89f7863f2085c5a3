//! The only place that reads time. Two clocks, never mixed: the wall clock (what people and ledgers
//! write down) and the boot clock (for local deadlines; it runs on during suspend and never steps).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// A reading of the boot clock: time since the machine started, suspend included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootTime(Duration);

impl BootTime {
    /// Creates a reading of `since_boot` after the machine's start.
    pub const fn from_duration(since_boot: Duration) -> Self {
        Self(since_boot)
    }

    /// Returns the time from `earlier` to this reading; zero if `earlier` is later.
    pub fn since(self, earlier: BootTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the reading `span` later, at most the largest representable one.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Returns the reading `ms` milliseconds later, at most the largest, as [`BootTime::plus`].
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        self.plus(Duration::from_millis(ms))
    }

    /// Returns the reading `span` earlier, at least zero.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// The future that [`Clock::sleep_until`] returns.
pub type SleepFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A source of time. One implementation reads the machine, the other is advanced by tests.
pub trait Clock: Send + Sync + 'static {
    /// Reads the wall clock, milliseconds since 1970-01-01 UTC. May step in both directions.
    fn wall_ms(&self) -> i64;

    /// Reads the boot clock. It never goes back.
    fn boot(&self) -> BootTime;

    /// Waits until the boot clock reads at least `until`.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_>;
}

/// Awaits `future` until `end` by the boot clock. Returns `None` and drops the future if it has not
/// ended by then; one that is ready at `end` has ended.
pub async fn timeout_at<T>(
    clock: &dyn Clock,
    end: BootTime,
    future: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = clock.sleep_until(end) => None,
    }
}

/// The machine's clocks: `CLOCK_REALTIME` and `CLOCK_BOOTTIME`.
///
/// Systems without a clock that runs on during suspend give `CLOCK_MONOTONIC` instead, which may
/// stop meanwhile. A lease then notices the sleep by its wall clock, which ran ahead: it is
/// suspect, and asked about at once (lease.md 3, LT1 and LT7).
///
/// ```
/// use soldonce_clock::{Clock, SystemClock};
///
/// let begun = SystemClock.boot();
/// assert!(SystemClock.boot() >= begun);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The clock of local deadlines, on systems with one that counts suspended time.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;

/// The clock of local deadlines elsewhere: one that never steps, but may stop during suspend.
#[cfg(not(any(target_os = "android", target_os = "fuchsia", target_os = "linux")))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

/// Longest single sleep handed to the runtime's timer, which panics beyond about two years.
const SLEEP_MAX: Duration = Duration::from_hours(24);

impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        at.tv_sec
            .saturating_mul(1_000)
            .saturating_add(at.tv_nsec / 1_000_000)
    }

    fn boot(&self) -> BootTime {
        let at = rustix::time::clock_gettime(BOOT_CLOCK);
        let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(at.tv_nsec).unwrap_or(0);
        BootTime(Duration::new(seconds, nanos))
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        Box::pin(async move {
            let mut left = until.since(self.boot());
            while !left.is_zero() {
                #[expect(clippy::disallowed_methods, reason = "the one place that sleeps")]
                tokio::time::sleep(left.min(SLEEP_MAX)).await;
                left = until.since(self.boot());
            }
        })
    }
}

/// A clock that moves only when it is told to. Clones share the same time.
///
/// ```
/// use std::time::Duration;
/// use soldonce_clock::{Clock, ManualClock};
///
/// let clock = ManualClock::at(1_000);
/// let same = clock.clone();
/// clock.advance(Duration::from_mins(1));
/// assert_eq!(same.wall_ms(), 61_000);
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<watch::Sender<ManualTime>>,
}

#[derive(Clone, Copy, Debug)]
struct ManualTime {
    wall_ms: i64,
    boot: BootTime,
}

impl ManualClock {
    /// Creates a clock whose wall clock reads `wall_ms` and whose boot clock reads zero.
    pub fn at(wall_ms: i64) -> Self {
        let time = ManualTime {
            wall_ms,
            boot: BootTime::default(),
        };
        Self {
            now: Arc::new(watch::Sender::new(time)),
        }
    }

    /// Moves both clocks forward and wakes the tasks that wait for the new time.
    pub fn advance(&self, span: Duration) {
        self.now.send_modify(|time| {
            let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
            time.wall_ms = time.wall_ms.saturating_add(millis);
            time.boot = time.boot.plus(span);
        });
    }

    /// Steps the wall clock alone, as an operator or a time service does.
    pub fn step_wall(&self, wall_ms: i64) {
        self.now.send_modify(|time| time.wall_ms = wall_ms);
    }
}

impl Clock for ManualClock {
    fn wall_ms(&self) -> i64 {
        self.now.borrow().wall_ms
    }

    fn boot(&self) -> BootTime {
        self.now.borrow().boot
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // The sender lives in `self`, so the wait ends only by reaching the time.
            if now.wait_for(|time| time.boot >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_reads_rise_and_are_plausible() {
        let clock = SystemClock;
        let first = clock.boot();
        assert!(clock.boot() >= first);
        assert!(
            clock.wall_ms() > 1_700_000_000_000,
            "wall clock before 2023"
        );
    }

    #[tokio::test(flavor = "current_thread")]
    async fn manual_sleep_ends_when_time_is_reached_and_not_before() {
        let clock = ManualClock::at(1_000);
        let mut sleep = clock.sleep_until(clock.boot().plus(Duration::from_millis(10)));
        clock.advance(Duration::from_millis(9));
        assert!(futures_poll(&mut sleep).await, "ended a millisecond early");
        clock.advance(Duration::from_millis(1));
        sleep.await;
        assert_eq!(clock.wall_ms(), 1_010);
    }

    /// Polls once; tells whether the future is still pending.
    async fn futures_poll(sleep: &mut SleepFuture<'_>) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(sleep.as_mut().poll(cx).is_pending()))
            .await
    }

    #[test]
    fn stepping_the_wall_leaves_the_boot_clock() {
        let clock = ManualClock::at(5_000);
        clock.step_wall(1);
        assert_eq!(clock.wall_ms(), 1);
        assert_eq!(clock.boot(), BootTime::default());
    }
}
