//! Latency quantiles, rates, medians over runs and ratios within a run.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::limits::{LATENCY_DIGITS, LATENCY_US_MAX};

/// Latencies, to three digits.
#[derive(Debug)]
pub(crate) struct Latencies {
    us: Histogram<u32>,
    sum_us: u64,
}

/// The average and quantiles, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct LatencyUs {
    pub(crate) avg: u64,
    pub(crate) p50: u64,
    pub(crate) p90: u64,
    pub(crate) p99: u64,
    pub(crate) p99_9: u64,
    pub(crate) max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let us = Histogram::new_with_max(LATENCY_US_MAX, LATENCY_DIGITS)
            .expect("the bounds of the histogram are legal constants");
        Self { us, sum_us: 0 }
    }
}

impl Latencies {
    pub(crate) fn record(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.us.saturating_record(micros);
        self.sum_us = self.sum_us.saturating_add(micros);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let added = self.us.add(&other.us);
        added.expect("all histograms have the same bounds");
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    pub(crate) fn count(&self) -> u64 {
        self.us.len()
    }

    pub(crate) fn figures(&self) -> LatencyUs {
        let at = |quantile| self.us.value_at_quantile(quantile);
        LatencyUs {
            avg: self.sum_us / self.count().max(1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: self.us.max(),
        }
    }
}

impl LatencyUs {
    /// Returns the median of each figure by itself.
    pub(crate) fn median(all: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> u64| median(all.iter().map(figure)).unwrap_or_default();
        Self {
            avg: middle(|one| one.avg),
            p50: middle(|one| one.p50),
            p90: middle(|one| one.p90),
            p99: middle(|one| one.p99),
            p99_9: middle(|one| one.p99_9),
            max: middle(|one| one.max),
        }
    }
}

pub(crate) fn per_second(count: u64, took: Duration) -> u64 {
    let rate = u128::from(count) * 1_000_000_000 / took.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Returns the middle value; of an even number the lower of the two. None of none.
pub(crate) fn median(values: impl IntoIterator<Item = u64>) -> Option<u64> {
    let mut values: Vec<u64> = values.into_iter().collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

/// Writes 1,234 thousandths as `1.234`.
pub(crate) fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

/// Returns the median of `own / other` in thousandths, each pair being of the same run.
pub(crate) fn median_ratio(
    own: impl IntoIterator<Item = u64>,
    other: impl IntoIterator<Item = u64>,
) -> Option<u64> {
    let pairs = own.into_iter().zip(other);
    median(pairs.map(|(own, other)| own.saturating_mul(1_000) / other.max(1)))
}

/// Runs of one measurement: figures are medians, and ratios are taken within each run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series<'a, T>(pub(crate) &'a [T]);

impl<T> Series<'_, T> {
    /// Returns the median of a figure; 0 of no runs.
    pub(crate) fn median(&self, figure: fn(&T) -> u64) -> u64 {
        median(self.0.iter().map(figure)).unwrap_or_default()
    }

    /// Returns the median of `own / other` in thousandths; 0 of no runs.
    pub(crate) fn ratio(&self, own: fn(&T) -> u64, other: fn(&T) -> u64) -> u64 {
        median_ratio(self.0.iter().map(own), self.0.iter().map(other)).unwrap_or_default()
    }
}

/// Adds up counts by their key.
pub(crate) fn add_counts<'a, K: Ord + Clone + 'a>(
    all: impl IntoIterator<Item = &'a BTreeMap<K, u64>>,
) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (key, count) in all.into_iter().flatten() {
        *sums.entry(key.clone()).or_default() += count;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_a_value_that_occurred() {
        assert_eq!(median([]), None);
        assert_eq!(median([9, 1]), Some(1));
        assert_eq!(median([9, 1, 5]), Some(5));
    }

    #[test]
    fn ratios_are_taken_within_a_run() {
        assert_eq!(median_ratio([500, 90, 0], [1_000, 100, 0]), Some(500));
        assert_eq!(median_ratio([1], []), None);
        // Of the medians it would be 1.5.
        let runs = Series(&[(10, 30), (20, 20), (30, 100)]);
        assert_eq!(
            (runs.median(|run| run.0), runs.median(|run| run.1)),
            (20, 30)
        );
        assert_eq!(runs.ratio(|run| run.1, |run| run.0), 3_000);
    }

    #[test]
    fn latencies_of_two_connections_add_up() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        for ms in [1, 2, 3] {
            one.record(Duration::from_millis(ms));
        }
        other.record(Duration::from_secs(1));
        one.add(&other);
        let figures = one.figures();
        assert_eq!((one.count(), figures.avg, figures.p50), (4, 251_500, 2_000));
        assert_eq!(
            (
                figures.max / 1_000,
                per_second(4, Duration::from_millis(500))
            ),
            (1_000, 8)
        );
    }
}
