//! What a load counted. Every request sent is in exactly one of: answered by status, failed by
//! kind.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::limits::{LATENCY_DIGITS, LATENCY_US_MAX};

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadError {
    /// The server did not take the connection.
    Connect,
    /// The connection ended before the whole answer.
    Closed,
    /// The answer is not HTTP/1.1 as understood here.
    NotHttp,
    /// The answer gives no length beforehand.
    Chunked,
    /// The answer is beyond the bounds.
    TooLarge,
    /// No answer by the end of the overtime.
    Unanswered,
}

/// A finished load.
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

/// The average and quantiles, in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LatencyUs {
    pub(crate) avg: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p99_9: u64,
    pub(crate) max: u64,
}

/// The counts of one connection, or of several added up.
#[derive(Debug)]
pub(crate) struct Tally {
    latencies_us: Histogram<u32>,
    /// Of all latencies.
    sum_us: u64,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<LoadError, u64>,
    sent: u64,
}

impl Tally {
    /// # Panics
    /// Never: the bounds of the histogram are constants.
    pub(crate) fn new() -> Self {
        let latencies_us = Histogram::new_with_max(LATENCY_US_MAX, LATENCY_DIGITS)
            .expect("the bounds of the histogram are legal constants");
        Self {
            latencies_us,
            sum_us: 0,
            statuses: BTreeMap::new(),
            errors: BTreeMap::new(),
            sent: 0,
        }
    }

    pub(crate) fn count_sent(&mut self) {
        self.sent += 1;
    }

    pub(crate) fn count_answer(&mut self, status: u16, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.latencies_us.saturating_record(micros);
        self.sum_us = self.sum_us.saturating_add(micros);
        *self.statuses.entry(status).or_default() += 1;
    }

    pub(crate) fn count_error(&mut self, error: LoadError) {
        *self.errors.entry(error).or_default() += 1;
    }

    /// Counts a request that was sent and is in no other count.
    pub(crate) fn count_unanswered(&mut self) {
        let open = self.sent - self.answered() - self.errors.values().sum::<u64>();
        if open > 0 {
            *self.errors.entry(LoadError::Unanswered).or_default() += open;
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.latencies_us
            .add(&other.latencies_us)
            .expect("all histograms of a load have the same bounds");
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (error, count) in &other.errors {
            *self.errors.entry(*error).or_default() += count;
        }
        self.sent += other.sent;
    }

    pub(crate) fn report(self, took: Duration, missed: u64) -> LoadReport {
        let at = |quantile| self.latencies_us.value_at_quantile(quantile);
        let latency_us = LatencyUs {
            avg: self.sum_us / self.answered().max(1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: self.latencies_us.max(),
        };
        LoadReport {
            rate_per_s: per_second(self.answered(), took),
            latency_us,
            sent: self.sent,
            statuses: self.statuses,
            errors: self.errors,
            missed,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn answered(&self) -> u64 {
        self.statuses.values().sum()
    }
}

fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / took.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}
