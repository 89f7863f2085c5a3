//! When requests are sent. In the open loop a free connection takes the earliest arrival that no other
//! took: one queue, N servers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soldonce_clock::BootTime;

use super::transport::Transport;
use crate::limits::LOAD_SECONDS_MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadPlan {
    pub(crate) address: SocketAddr,
    pub(crate) transport: Transport,
    /// Connections, each with at most one request in flight.
    pub(crate) connections: u32,
    /// When requests are sent.
    pub(crate) pace: Pace,
    /// When no more are sent.
    pub(crate) until: Until,
}

impl LoadPlan {
    /// Plans a load over HTTP.
    pub(crate) fn http(address: SocketAddr, connections: u32, pace: Pace, until: Until) -> Self {
        Self {
            address,
            transport: Transport::Http,
            connections,
            pace,
            until,
        }
    }
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Closed loop: as soon as the connection's last answer is there.
    Closed,
    /// Open loop: at equal distances, that many per second over all connections.
    Open(u64),
}

/// When no more requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// After that many.
    Requests(u64),
    /// After that much time.
    Elapsed(Duration),
}

impl Until {
    /// Returns the longest that a load may take before its overtime begins.
    pub(crate) fn longest(self) -> Duration {
        match self {
            Until::Requests(_) => Duration::from_secs(LOAD_SECONDS_MAX),
            Until::Elapsed(span) => span,
        }
    }

    /// Computes how many arrivals an open loop has in all.
    fn planned(self, per_second: u64) -> u64 {
        match self {
            Until::Requests(count) => count,
            Until::Elapsed(span) => {
                let count = u128::from(per_second) * span.as_nanos() / 1_000_000_000;
                u64::try_from(count).unwrap_or(u64::MAX)
            }
        }
    }
}

/// The arrivals of one load, shared by its workers.
#[derive(Debug)]
pub(crate) struct Arrivals {
    plan: LoadPlan,
    started: BootTime,
    taken: AtomicU64,
}

impl Arrivals {
    pub(crate) fn new(plan: LoadPlan, started: BootTime) -> Self {
        Self {
            plan,
            started,
            taken: AtomicU64::new(0),
        }
    }

    /// Takes the next arrival: when it is planned, which in the open loop may be past or to come.
    /// None when the load is over.
    pub(crate) fn take(&self, now: BootTime) -> Option<BootTime> {
        match (self.plan.pace, self.plan.until) {
            (Pace::Closed, Until::Elapsed(span)) => (now.since(self.started) < span).then_some(now),
            (Pace::Closed, Until::Requests(count)) => (self.take_one() < count).then_some(now),
            (Pace::Open(per_second), until) => {
                let arrival = self.take_one();
                let is_planned = arrival < until.planned(per_second);
                is_planned.then(|| self.started.plus(offset(arrival, per_second)))
            }
        }
    }

    /// Counts arrivals of the open loop that no connection was free to take.
    pub(crate) fn missed(&self) -> u64 {
        match self.plan.pace {
            Pace::Closed => 0,
            Pace::Open(per_second) => {
                let planned = self.plan.until.planned(per_second);
                planned.saturating_sub(self.taken.load(Ordering::Relaxed))
            }
        }
    }

    fn take_one(&self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed)
    }
}

/// Computes when an arrival is planned, from the start.
fn offset(arrival: u64, per_second: u64) -> Duration {
    let nanos = u128::from(arrival) * 1_000_000_000 / u128::from(per_second.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(pace: Pace, until: Until) -> Arrivals {
        let plan = LoadPlan::http(SocketAddr::from(([127, 0, 0, 1], 1)), 1, pace, until);
        Arrivals::new(plan, BootTime::default())
    }

    #[test]
    fn an_open_loop_plans_equal_distances_and_counts_arrivals_not_taken() {
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
