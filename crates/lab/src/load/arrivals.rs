//! When the next request is due. In the open loop a free connection takes the earliest arrival that
//! nobody took: one queue, N servers, as customers do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soldonce_clock::BootTime;

use super::plan::{LoadPlan, Pace, Until};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The arrivals of one load, shared by its workers.
#[derive(Debug)]
pub(crate) struct Arrivals {
    pace: Pace,
    until: Until,
    started: BootTime,
    taken: AtomicU64,
}

impl Arrivals {
    pub(crate) fn new(plan: LoadPlan, started: BootTime) -> Self {
        Self {
            pace: plan.pace,
            until: plan.until,
            started,
            taken: AtomicU64::new(0),
        }
    }

    /// Takes the next arrival: when it is planned, which in the open loop may be past or to come.
    /// None when the load is over.
    pub(crate) fn take(&self, now: BootTime) -> Option<BootTime> {
        match (self.pace, self.until) {
            (Pace::Closed, Until::Elapsed(span)) => (now.since(self.started) < span).then_some(now),
            (Pace::Closed, Until::Requests(count)) => (self.take_one() < count).then_some(now),
            (Pace::Open(per_second), until) => {
                let arrival = self.take_one();
                (arrival < planned(per_second, until))
                    .then(|| self.started.plus(offset(arrival, per_second)))
            }
        }
    }

    /// Arrivals of the open loop that no connection was free to take.
    pub(crate) fn missed(&self) -> u64 {
        match self.pace {
            Pace::Closed => 0,
            Pace::Open(per_second) => {
                planned(per_second, self.until).saturating_sub(self.taken.load(Ordering::Relaxed))
            }
        }
    }

    fn take_one(&self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed)
    }
}

/// How many arrivals an open loop has in all.
fn planned(per_second: u64, until: Until) -> u64 {
    match until {
        Until::Requests(count) => count,
        Until::Elapsed(span) => {
            let nanos = u128::from(per_second) * span.as_nanos();
            u64::try_from(nanos / u128::from(NANOS_PER_SECOND)).unwrap_or(u64::MAX)
        }
    }
}

/// When an arrival is planned, from the start.
fn offset(arrival: u64, per_second: u64) -> Duration {
    let nanos = u128::from(arrival) * u128::from(NANOS_PER_SECOND) / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(pace: Pace, until: Until) -> Arrivals {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        Arrivals::new(
            LoadPlan {
                address,
                connections: 1,
                pace,
                until,
            },
            BootTime::default(),
        )
    }

    #[test]
    fn an_open_loop_plans_equal_distances_and_counts_what_nobody_took() {
        let span = Duration::from_millis(10);
        let open = arrivals(Pace::Open(300), Until::Elapsed(span));
        let late = BootTime::from_duration(Duration::from_hours(1));
        let at = |nanos| Some(BootTime::from_duration(Duration::from_nanos(nanos)));
        assert_eq!(open.take(late), at(0));
        assert_eq!(open.missed(), 2);
        assert_eq!(open.take(late), at(3_333_333));
        assert_eq!(open.take(late), at(6_666_666));
        assert_eq!((open.take(late), open.missed()), (None, 0));
    }

    #[test]
    fn a_closed_loop_ends_by_time_or_by_count() {
        let span = Duration::from_millis(10);
        let timed = arrivals(Pace::Closed, Until::Elapsed(span));
        let before = BootTime::from_duration(Duration::from_millis(9));
        assert_eq!(timed.take(before), Some(before));
        assert_eq!(timed.take(BootTime::from_duration(span)), None);
        let counted = arrivals(Pace::Closed, Until::Requests(2));
        let taken: Vec<_> = (0..3).map(|_| counted.take(before).is_some()).collect();
        assert_eq!(taken, [true, true, false]);
    }
}
