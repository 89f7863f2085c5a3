//! The arithmetic: the generic cell rate algorithm (GCRA). One number per caller says until when
//! its requests so far are paid for at the even rate; a request is let in while that is no more
//! than a window away. `take.lua` does the same on Redis. Reads no clock.

use std::time::Duration;

use crate::limits::{RATE_PER_SECOND_MAX, RATE_WINDOW_S_MAX};

/// A rate limit: `requests` at once, and as many again spread evenly over each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    requests: u32,
    window_s: u32,
}

/// Why a quota is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidQuota {
    /// The window is not of the length that windows have.
    #[error("a window is 1 s to {} h long", RATE_WINDOW_S_MAX / 3_600)]
    Window,
    /// It would admit no request ever, or more than can be counted.
    #[error("a window takes 1 to {RATE_PER_SECOND_MAX} requests for each of its seconds")]
    Requests,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is let in.
    Passed {
        /// How many more may come at once.
        left: u32,
        /// The time without a request after which all of them may.
        whole_in: Duration,
    },
    /// It is refused.
    Refused {
        /// The time after which the next request is admitted, if no other takes its place.
        retry_in: Duration,
    },
}

impl Quota {
    /// Creates a quota: at most `requests` at once, and `requests` in every `window_s` seconds.
    ///
    /// # Errors
    /// [`InvalidQuota`] says which number is not valid, and its bounds.
    pub fn new(requests: u32, window_s: u32) -> Result<Self, InvalidQuota> {
        if !(1..=RATE_WINDOW_S_MAX).contains(&window_s) {
            return Err(InvalidQuota::Window);
        }
        let most = u64::from(window_s) * u64::from(RATE_PER_SECOND_MAX);
        if requests == 0 || u64::from(requests) > most {
            return Err(InvalidQuota::Requests);
        }
        Ok(Self { requests, window_s })
    }

    /// Returns how many may come at once.
    pub fn requests(self) -> u32 {
        self.requests
    }

    /// Returns the seconds after which all may come again.
    pub fn window_s(self) -> u32 {
        self.window_s
    }

    /// Returns the microseconds that one request is worth; at least one, by the bounds of
    /// [`Quota::new`].
    pub(super) fn interval_us(self) -> u64 {
        u64::from(self.window_s) * 1_000_000 / u64::from(self.requests)
    }

    /// Returns the microseconds that all requests are worth: the window, but for rounding.
    pub(super) fn whole_us(self) -> u64 {
        self.interval_us() * u64::from(self.requests)
    }

    /// Takes one request at `now_us` from a caller whose requests so far are paid for until
    /// `paid_us`; gives what that time is from now on. Both are microseconds of one clock.
    pub fn take(self, paid_us: u64, now_us: u64) -> (Taken, u64) {
        let (interval, whole) = (self.interval_us(), self.whole_us());
        let owed = paid_us.saturating_sub(now_us).saturating_add(interval);
        if owed > whole {
            let retry_in = Duration::from_micros(owed - whole);
            return (Taken::Refused { retry_in }, paid_us);
        }
        let left = u32::try_from((whole - owed) / interval).unwrap_or(0);
        let whole_in = Duration::from_micros(owed);
        let passed = Taken::Passed { left, whole_in };
        (passed, now_us.saturating_add(owed))
    }

    /// Returns until when a caller's requests are paid for, if it is to be let in again after
    /// `retry_in`.
    pub fn refused_until(self, retry_in: Duration, now_us: u64) -> u64 {
        let retry_us = u64::try_from(retry_in.as_micros()).unwrap_or(u64::MAX);
        let owed = (self.whole_us() - self.interval_us()).saturating_add(retry_us);
        now_us.saturating_add(owed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quota_has_bounds() {
        assert_eq!(Quota::new(1, 0), Err(InvalidQuota::Window));
        assert_eq!(Quota::new(1, 86_401), Err(InvalidQuota::Window));
        assert_eq!(Quota::new(0, 1), Err(InvalidQuota::Requests));
        assert_eq!(Quota::new(1_000_001, 1), Err(InvalidQuota::Requests));
        for (requests, window_s) in [(1, 86_400), (1_000_000, 1), (u32::MAX, 86_400)] {
            let quota = Quota::new(requests, window_s).unwrap();
            assert!(quota.interval_us() > 0);
            assert!(quota.whole_us() <= u64::from(window_s) * 1_000_000);
        }
    }

    #[test]
    fn a_whole_quota_at_once_then_one_by_one() {
        let quota = Quota::new(3, 60).unwrap();
        let mut paid = 0;
        for left in [2, 1, 0] {
            let (taken, then) = quota.take(paid, 5);
            let whole_in = Duration::from_secs(20) * (3 - left);
            assert_eq!(taken, Taken::Passed { left, whole_in });
            paid = then;
        }
        let refused = |seconds| Taken::Refused {
            retry_in: Duration::from_secs(seconds),
        };
        assert_eq!(quota.take(paid, 5), (refused(20), paid));
        assert_eq!(quota.take(paid, 12_000_005), (refused(8), paid));
        let (taken, paid) = quota.take(paid, 20_000_005);
        assert!(
            matches!(taken, Taken::Passed { left: 0, .. }),
            "{taken:?}: exactly at its time"
        );
        assert_eq!(quota.take(paid, 20_000_005), (refused(20), paid));
    }

    #[test]
    fn a_clock_at_its_end_neither_overflows_nor_opens() {
        let quota = Quota::new(1, 1).unwrap();
        let (_, paid) = quota.take(u64::MAX, u64::MAX);
        let (taken, _) = quota.take(paid, 0);
        assert!(matches!(taken, Taken::Refused { .. }));
    }

    /// The same by another way: a bucket of tokens, each a whole number of microseconds, filled as
    /// time passes.
    struct Bucket {
        filled_us: u64,
        seen_us: u64,
    }

    impl Bucket {
        fn take(&mut self, quota: Quota, now_us: u64) -> bool {
            let gained = now_us - self.seen_us;
            self.seen_us = now_us;
            self.filled_us = (self.filled_us + gained).min(quota.whole_us());
            let is_enough = self.filled_us >= quota.interval_us();
            if is_enough {
                self.filled_us -= quota.interval_us();
            }
            is_enough
        }
    }

    /// Draws a quota, and the times between requests: none, around one request's worth, or any.
    fn visits() -> impl Strategy<Value = (Quota, Vec<u64>)> {
        let quotas = (1_u32..200, 1_u32..100).prop_map(|(n, s)| Quota::new(n, s).unwrap());
        quotas.prop_flat_map(|quota| {
            let worth = quota.interval_us();
            let gap = prop_oneof![
                3 => Just(0),
                3 => worth.saturating_sub(2)..worth + 2,
                1 => 0..quota.whole_us() * 2,
            ];
            (Just(quota), prop::collection::vec(gap, 1..300))
        })
    }

    proptest! {
        #[test]
        fn it_lets_in_whom_a_bucket_of_tokens_lets_in((quota, gaps) in visits()) {
            let mut bucket = Bucket { filled_us: quota.whole_us(), seen_us: 0 };
            let (mut paid, mut now) = (0, 0);
            for gap in gaps {
                now += gap;
                let (taken, then) = quota.take(paid, now);
                let passes = bucket.take(quota, now);
                match taken {
                    Taken::Passed { left, whole_in } => {
                        prop_assert!(passes);
                        prop_assert_eq!(u64::from(left), bucket.filled_us / quota.interval_us());
                        let missing = quota.whole_us() - bucket.filled_us;
                        prop_assert_eq!(whole_in, Duration::from_micros(missing));
                    }
                    Taken::Refused { retry_in } => {
                        prop_assert!(!passes);
                        prop_assert_eq!(then, paid, "a refusal costs nothing");
                        let missing = quota.interval_us() - bucket.filled_us;
                        prop_assert_eq!(retry_in, Duration::from_micros(missing));
                    }
                }
                paid = then;
            }
        }

        #[test]
        fn the_retry_time_is_exact((quota, gaps) in visits()) {
            let (mut paid, mut now) = (0, 0);
            for gap in gaps {
                now += gap;
                let (taken, then) = quota.take(paid, now);
                if let Taken::Refused { retry_in } = taken {
                    let at = now + u64::try_from(retry_in.as_micros()).unwrap();
                    let passes = |at| matches!(quota.take(paid, at).0, Taken::Passed { .. });
                    prop_assert!(passes(at) && !passes(at - 1));
                    let told = quota.refused_until(retry_in, now);
                    prop_assert_eq!(told, paid, "what another server said is kept as its own");
                }
                paid = then;
            }
        }
    }
}
