//! The counts of a load. Every request sent is in exactly one of: answered by status, failed by kind.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::stats::{Latencies, LatencyUs, add_counts, per_second};

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadError {
    /// The server did not take the connection.
    Connect,
    /// The connection ended before the whole answer.
    Closed,
    NotHttp,
    /// The answer gives no length beforehand.
    Chunked,
    /// The answer is beyond the bounds.
    TooLarge,
    /// No answer by the end of the overtime.
    Unanswered,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct LoadReport {
    /// Answers per second.
    pub(crate) rate_per_s: u64,
    /// Latencies of the answered requests, from the planned time on in the open loop.
    pub(crate) latency_us: LatencyUs,
    /// Answers by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Requests without answer, by kind.
    pub(crate) errors: BTreeMap<LoadError, u64>,
    /// Requests sent: all answers and errors.
    pub(crate) sent: u64,
    /// Planned requests of an open loop that were never sent, because no connection was free.
    pub(crate) missed: u64,
    /// From the first request to the last answer, milliseconds.
    pub(crate) took_ms: u64,
}

impl LoadReport {
    pub(crate) fn count(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// Tells whether requests were sent, none of those that were planned was left out, and each was answered with
    /// one of these statuses.
    pub(crate) fn is_answered_with(&self, expected: &[u16]) -> bool {
        let good = self.statuses.iter();
        let good = good.filter(|(status, _)| expected.contains(status));
        let good: u64 = good.map(|(_, count)| count).sum();
        self.missed == 0 && self.sent > 0 && good == self.sent
    }

    /// Describes the answers with another status than these, and the requests without an answer.
    pub(crate) fn odd_answers(&self, expected: &[u16]) -> Vec<String> {
        let odd = self.statuses.iter();
        let odd = odd.filter(|(status, _)| !expected.contains(status));
        let odd = odd.map(|(status, count)| format!("{count} answers of status {status}"));
        let failed = self.errors.iter();
        let failed = failed.map(|(error, count)| format!("{count} without an answer: {error:?}"));
        odd.chain(failed).collect()
    }
}

/// The counts of one connection, or of several added up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    latencies: Latencies,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<LoadError, u64>,
    sent: u64,
}

impl Tally {
    pub(crate) fn count_sent(&mut self) {
        self.sent += 1;
    }

    pub(crate) fn count_answer(&mut self, status: u16, latency: Duration) {
        self.latencies.record(latency);
        *self.statuses.entry(status).or_default() += 1;
    }

    pub(crate) fn count_error(&mut self, error: LoadError) {
        *self.errors.entry(error).or_default() += 1;
    }

    /// Counts a request that was sent and is in no other count.
    pub(crate) fn count_unanswered(&mut self) {
        let open = self.sent - self.latencies.count() - self.errors.values().sum::<u64>();
        if open > 0 {
            *self.errors.entry(LoadError::Unanswered).or_default() += open;
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.latencies.add(&other.latencies);
        self.statuses = add_counts([&self.statuses, &other.statuses]);
        self.errors = add_counts([&self.errors, &other.errors]);
        self.sent += other.sent;
    }

    pub(crate) fn report(self, took: Duration, missed: u64) -> LoadReport {
        LoadReport {
            rate_per_s: per_second(self.latencies.count(), took),
            latency_us: self.latencies.figures(),
            statuses: self.statuses,
            errors: self.errors,
            sent: self.sent,
            missed,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_was_never_sent_is_as_bad_as_one_without_the_right_answer() {
        let report = |statuses: &[u16], missed| {
            let mut tally = Tally::default();
            for status in statuses {
                tally.count_sent();
                tally.count_answer(*status, Duration::from_millis(1));
            }
            tally.report(Duration::from_secs(1), missed)
        };
        let is_good = |report: LoadReport| report.is_answered_with(&[200, 201]);
        assert!(is_good(report(&[200, 201, 200], 0)));
        assert!(!is_good(report(&[200, 201], 1)), "one was never sent");
        assert!(!is_good(report(&[200, 409], 0)), "another status");
        assert!(!is_good(report(&[], 0)), "nothing was measured");
        let mut unanswered = Tally::default();
        unanswered.count_sent();
        unanswered.count_unanswered();
        assert!(!is_good(unanswered.report(Duration::from_secs(1), 0)));
    }
}
