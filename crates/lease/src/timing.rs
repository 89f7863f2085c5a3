//! The arithmetic of `lease.md` 3. Pure: instants and spans are arguments.

use std::time::Duration;

use crate::BootTime;

/// The constant part of a margin, to which a hundredth of the life is added.
const MARGIN_LEAST: Duration = Duration::from_millis(2);

/// A margin never takes more than this part of a life: leases of a few milliseconds exist only in
/// memory, where both sides read one clock (docs/decisions/0006).
const MARGIN_MOST_PART: u32 = 4;

/// Longest wait for the answer to one renewal.
const RENEW_TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// The least lead of the wall clock over the boot clock that makes a lease suspect.
const DRIFT_LEAST: Duration = Duration::from_millis(250);

/// Renewals due within this span are sent together.
pub(crate) const BATCH_SPAN: Duration = Duration::from_millis(50);

/// Longest pause between two turns of the loop while commands come in. A timer that is set for
/// later than the next turn is free; one that is earlier costs the thread two system calls, and
/// each call has two.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How often the wall clock is compared with the boot clock while leases live.
pub(crate) const DRIFT_LOOK: Duration = Duration::from_millis(250);

/// A lease without a `max_lifetime` that was held for this long is reported by a notice.
pub(crate) const LONG_HELD: Duration = Duration::from_mins(15);

/// Computes the local instant from which the lease counts as lost (LT3).
pub(crate) fn deadline(sent: BootTime, granted: Duration, safety: Duration) -> BootTime {
    let margin = (MARGIN_LEAST + granted / 100).min(granted / MARGIN_MOST_PART);
    sent.plus(granted.saturating_sub(margin.saturating_add(safety)))
}

/// Computes when to renew after a confirmed send: a third of the ttl later (LT6).
pub(crate) fn renew_at(sent: BootTime, ttl: Duration) -> BootTime {
    sent.plus(ttl / 3)
}

/// Computes the time-out of one renewal: a sixth of the ttl, at most 2 s (LT6).
pub(crate) fn renew_timeout(ttl: Duration) -> Duration {
    (ttl / 6).min(RENEW_TIMEOUT_MAX)
}

/// Shortens a time-out of the facade for the backend below it. The backend gives up first, so that
/// it sees that an answer did not come, and does not send the next command on a connection that
/// fell silent: a call that the facade cuts off teaches it nothing. `docs/decisions/0017`.
pub(crate) fn before(limit: Duration) -> Duration {
    limit.saturating_sub(limit / 10)
}

/// Computes how long a backend waits for the answer to renewals of these ttls (LT6). Not longer
/// than the facade waits for a manual renewal, or the backend would not see the silence.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) fn renewal_limit(
    ttls: impl Iterator<Item = Duration>,
    call_timeout: Duration,
) -> Duration {
    let shortest = ttls.filter(|ttl| !ttl.is_zero()).min();
    shortest.map_or(call_timeout, |ttl| {
        before(renew_timeout(ttl)).min(call_timeout)
    })
}

/// Computes how long after a failed renewal to try again (LT6); `draw` is random.
pub(crate) fn renew_again(ttl: Duration, draw: u64) -> Duration {
    around(ttl / 12, 25, draw)
}

/// Computes the remaining life below which a grant is not used and a lease is suspect (LT5, LT7).
pub(crate) fn half_left(ttl: Duration, safety: Duration) -> Duration {
    (ttl / 2).saturating_sub(safety)
}

/// Computes by how much the wall clock may run ahead of the boot clock (LT7).
pub(crate) fn drift_allowed(ttl: Duration) -> Duration {
    (ttl / 20).max(DRIFT_LEAST)
}

/// Adds jitter to `span`: plus or minus up to `percent` of it, by the random `draw`.
pub(crate) fn around(span: Duration, percent: u32, draw: u64) -> Duration {
    let width = span / 100 * (2 * percent);
    span.saturating_sub(width / 2)
        .saturating_add(below(width, draw))
}

/// Picks a span from zero up to `most`, by the random `draw`.
pub(crate) fn below(most: Duration, draw: u64) -> Duration {
    let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(draw.checked_rem(nanos).unwrap_or(0))
}

/// Computes a full-jitter back-off: up to 20 ms, 40 ms, .. 1 s for failure 1, 2, .. in a row.
pub(crate) fn back_off(failures: u32, draw: u64) -> Duration {
    const FIRST_MS: u64 = 20;
    const MOST_MS: u64 = 1_000;
    let doubled = FIRST_MS << failures.saturating_sub(1).min(10);
    below(Duration::from_millis(doubled.min(MOST_MS)), draw)
}

/// Converts to whole milliseconds, rounded down.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const START: BootTime = BootTime::from_duration(ms(1_000));

    #[test]
    fn the_deadline_keeps_two_milliseconds_a_hundredth_and_the_safety() {
        let left = |granted, safety| deadline(START, granted, safety).since(START);
        assert_eq!(left(ms(10_000), ms(0)), ms(9_898));
        assert_eq!(left(ms(10_000), ms(500)), ms(9_398));
        assert_eq!(left(ms(1_000), ms(0)), ms(988));
        assert_eq!(left(ms(4), ms(0)), ms(3), "a quarter at most");
        assert_eq!(left(ms(1_000), ms(5_000)), ms(0), "never before the send");
    }

    #[test]
    fn three_tries_fit_before_the_deadline_however_the_dice_fall() {
        for ttl in [ms(200), ms(1_000), ms(10_000), ms(60_000)] {
            for draw in [0, 1, u64::MAX / 2, u64::MAX] {
                let first = renew_at(START, ttl);
                let third = first.plus(2 * (renew_timeout(ttl) + renew_again(ttl, draw)));
                assert!(third < deadline(START, ttl, ms(0)), "{ttl:?}");
            }
        }
    }

    #[test]
    fn jitter_stays_in_its_bounds() {
        for draw in [0, 7, u64::MAX / 3, u64::MAX] {
            let second = around(ms(1_000), 20, draw);
            assert!((ms(800)..=ms(1_200)).contains(&second), "{second:?}");
            assert!(back_off(1, draw) < ms(20));
            assert!(back_off(40, draw) < ms(1_000));
        }
        assert_eq!(below(ms(0), 9), ms(0));
    }
}
