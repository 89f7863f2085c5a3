//! The time of a ledger of one process (T1). It follows the machine's wall clock, which may step.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use soldonce_clock::{BootTime, Clock};
use soldonce_core::Timestamp;

use crate::limits::CLOCK_LEAST_MS;

/// A clock that neither goes back nor stands still.
///
/// It reads the wall clock. When that steps back, this one is ahead of it, and runs at half the speed of
/// the boot clock until the wall clock reads as much: twice as long as the step, or until the step is put
/// right. PostgreSQL's `ledger_clock` is the same rule without a boot clock (`docs/decisions/0309`).
pub(super) struct LedgerClock {
    clock: Arc<dyn Clock>,
    /// The latest reading of this clock, ms since the epoch.
    last: AtomicI64,
    /// Twice the reading at the latest step back, less the boot clock's then.
    lead: AtomicI64,
}

impl LedgerClock {
    /// Starts the clock of a ledger at `last`, its last time, which may be ahead of the wall clock.
    pub(super) fn after(last: Timestamp, clock: Arc<dyn Clock>) -> Self {
        let clock = Self {
            clock,
            last: AtomicI64::new(last.ms()),
            lead: AtomicI64::new(i64::MIN),
        };
        clock.now();
        clock
    }

    /// Reads the time, milliseconds since 1970.
    pub(super) fn now(&self) -> Timestamp {
        let lead = self.lead.load(Ordering::Acquire);
        let now = (lead.saturating_add(boot_ms(&*self.clock)) / 2).max(self.clock.wall_ms());
        let last = self.last.fetch_max(now, Ordering::AcqRel);
        if now >= last {
            return Timestamp::from_ms(now);
        }
        // The wall clock has stepped back. Another thread that read a millisecond earlier looks the
        // same, and slows the clock for that millisecond.
        let lead = last.saturating_mul(2).saturating_sub(boot_ms(&*self.clock));
        self.lead.fetch_max(lead, Ordering::AcqRel);
        Timestamp::from_ms(last)
    }
}

/// The clock by which rows become old enough to be deleted: the ledger's, without its lead over the wall clock, and
/// without what it gained on the boot clock since the start. A step ahead after the start makes nothing old.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgeClock {
    /// Its reading at the start, less the boot clock's then, milliseconds.
    lead: i64,
}

impl AgeClock {
    /// Starts it at `now`, the ledger's time.
    pub(crate) fn starting_at(now: Timestamp, clock: &dyn Clock) -> Self {
        Self {
            lead: now.ms().saturating_sub(boot_ms(clock)),
        }
    }

    /// Returns `now`, the ledger's time, without its lead and what it gained.
    pub(crate) fn at(self, now: Timestamp, clock: &dyn Clock) -> Timestamp {
        let passed = boot_ms(clock).saturating_add(self.lead);
        // A machine's clock that was never set would make nothing old, however long it runs.
        let wall = Some(clock.wall_ms()).filter(|wall| *wall >= CLOCK_LEAST_MS);
        let passed = wall.map_or(passed, |wall| wall.min(passed));
        now.min(Timestamp::from_ms(passed))
    }
}

/// Reads the boot clock, milliseconds.
pub(super) fn boot_ms(clock: &dyn Clock) -> i64 {
    let since = clock.boot().since(BootTime::default());
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use soldonce_clock::ManualClock;

    use super::*;

    const NOON_MS: i64 = 1_800_000_000_000;
    const HOUR_MS: i64 = 3_600_000;

    fn step(wall: &ManualClock, by: i64) {
        wall.step_wall(wall.wall_ms() + by);
    }

    #[test]
    fn a_step_back_halves_its_speed_until_they_meet() {
        let wall = ManualClock::at(NOON_MS);
        let clock = LedgerClock::after(Timestamp::from_ms(0), Arc::new(wall.clone()));
        assert_eq!(clock.now().ms(), NOON_MS);
        step(&wall, -HOUR_MS);
        assert_eq!(clock.now().ms(), NOON_MS);
        wall.advance(Duration::from_secs(1));
        assert_eq!(clock.now().ms(), NOON_MS + 500);
        wall.advance(Duration::from_secs(2 * 3_600 - 1));
        assert_eq!(clock.now().ms(), NOON_MS + HOUR_MS);
        wall.advance(Duration::from_millis(1));
        assert_eq!(clock.now().ms(), NOON_MS + HOUR_MS + 1);
    }

    #[test]
    fn a_step_back_that_is_put_right_leaves_no_lead() {
        let wall = ManualClock::at(NOON_MS);
        let clock = LedgerClock::after(Timestamp::from_ms(NOON_MS), Arc::new(wall.clone()));
        step(&wall, -HOUR_MS);
        assert_eq!(clock.now().ms(), NOON_MS);
        wall.advance(Duration::from_mins(1));
        step(&wall, HOUR_MS);
        assert_eq!(clock.now().ms(), NOON_MS + 60_000);
        assert_eq!(clock.now().ms(), wall.wall_ms());
    }

    #[test]
    fn a_ledger_written_ahead_of_the_clock_goes_on_after_a_restart() {
        let wall = ManualClock::at(NOON_MS);
        let last = Timestamp::from_ms(NOON_MS + HOUR_MS);
        let clock = LedgerClock::after(last, Arc::new(wall.clone()));
        assert_eq!(clock.now(), last);
        wall.advance(Duration::from_secs(4));
        assert_eq!(clock.now().ms(), last.ms() + 2_000);
        // Also where nothing asked for the time meanwhile.
        let clock = LedgerClock::after(last, Arc::new(wall.clone()));
        let ahead = last.ms() - wall.wall_ms();
        wall.advance(Duration::from_secs(1));
        assert_eq!(clock.now().ms() - wall.wall_ms(), ahead - 500);
    }

    #[test]
    fn a_clock_that_is_ahead_ages_nothing_and_one_that_was_behind_only_until_it_is_set() {
        let wall = ManualClock::at(NOON_MS - HOUR_MS);
        let ages = AgeClock::starting_at(Timestamp::from_ms(NOON_MS), &wall);
        let at = |now| ages.at(Timestamp::from_ms(now), &wall).ms();
        assert_eq!(at(NOON_MS), NOON_MS - HOUR_MS);
        step(&wall, HOUR_MS);
        assert_eq!(at(NOON_MS), NOON_MS);
        step(&wall, HOUR_MS);
        assert_eq!(at(NOON_MS + HOUR_MS), NOON_MS);
        wall.step_wall(0);
        assert_eq!(at(NOON_MS), NOON_MS, "it was never set");
    }

    proptest! {
        /// Steps the wall clock, waits, restarts: never back, slower than half, or behind.
        #[test]
        fn it_never_goes_back_and_never_stands_still(
            moves in prop::collection::vec((-2 * HOUR_MS..HOUR_MS, 2_u64..100_000, any::<bool>()), 1..40)
        ) {
            let wall = ManualClock::at(NOON_MS);
            let open = |last| LedgerClock::after(last, Arc::new(wall.clone()));
            let mut clock = open(Timestamp::from_ms(0));
            let mut last = clock.now().ms();
            for (by, passes, restarts) in moves {
                step(&wall, by);
                if restarts {
                    clock = open(Timestamp::from_ms(last));
                }
                let stepped = clock.now().ms();
                prop_assert!(stepped >= last);
                wall.advance(Duration::from_millis(passes));
                let now = clock.now().ms();
                prop_assert!(now >= stepped && now.abs_diff(stepped) >= passes / 2 && now >= wall.wall_ms());
                last = now;
            }
        }
    }
}
