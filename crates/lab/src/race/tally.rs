//! What a cell counted: every buyer of every round is in exactly one of won, refused, failed.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::contender::Outcome;
use crate::limits::{LATENCY_DIGITS, LATENCY_US_MAX};

/// The counts of one cell.
#[derive(Debug)]
pub(super) struct Tally {
    latencies_us: Histogram<u32>,
    pub(super) winners: u64,
    /// By the code of the refusal.
    pub(super) refused: BTreeMap<String, u64>,
    /// By kind.
    pub(super) errors: BTreeMap<String, u64>,
    /// From the first question of each round to its last answer, added up.
    raced: Duration,
}

/// The figures of one cell.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// Requests: buyers x rounds.
    pub(super) requests: u64,
    pub(super) winners: u64,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) errors: BTreeMap<String, u64>,
    /// Microseconds from a buyer's question to the answer, whatever it was.
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
    /// Answers a second while a round was running.
    pub(super) answers_per_s: u64,
}

impl Tally {
    /// # Panics
    /// Never: the bounds of the histogram are constants.
    pub(super) fn new() -> Self {
        let latencies_us = Histogram::new_with_max(LATENCY_US_MAX, LATENCY_DIGITS)
            .expect("the bounds of the histogram are legal constants");
        Self {
            latencies_us,
            winners: 0,
            refused: BTreeMap::new(),
            errors: BTreeMap::new(),
            raced: Duration::ZERO,
        }
    }

    /// Counts one answer.
    pub(super) fn count(&mut self, outcome: &Outcome, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latencies_us.saturating_record(micros);
        match outcome {
            Outcome::Won(_) => self.winners += 1,
            Outcome::Refused(why) => *self.refused.entry((*why).to_owned()).or_default() += 1,
            Outcome::Failed(kind) => *self.errors.entry(kind.clone()).or_default() += 1,
        }
    }

    /// A winner who could not confirm is none.
    pub(super) fn recount_winner(&mut self, kind: String) {
        self.winners = self.winners.saturating_sub(1);
        *self.errors.entry(kind).or_default() += 1;
    }

    /// Adds the time of one round.
    pub(super) fn raced(&mut self, took: Duration) {
        self.raced += took;
    }

    pub(super) fn figures(self) -> Figures {
        let at = |quantile| self.latencies_us.value_at_quantile(quantile);
        let requests = self.latencies_us.len();
        let nanos = self.raced.as_nanos().max(1);
        let rate = u128::from(requests) * 1_000_000_000 / nanos;
        Figures {
            requests,
            winners: self.winners,
            p50_us: at(0.5),
            p99_us: at(0.99),
            max_us: self.latencies_us.max(),
            answers_per_s: u64::try_from(rate).unwrap_or(u64::MAX),
            refused: self.refused,
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_in_one_count() {
        let mut tally = Tally::new();
        let ms = Duration::from_millis;
        tally.count(&Outcome::Won(None), ms(1));
        tally.count(&Outcome::Won(None), ms(2));
        tally.count(&Outcome::Refused("unit_unavailable"), ms(3));
        tally.count(&Outcome::Failed("deadlock 40P01".to_owned()), ms(1_000));
        tally.recount_winner("confirm: overloaded".to_owned());
        tally.raced(ms(500));
        let figures = tally.figures();
        let counts = [&figures.refused, &figures.errors].map(|counts| counts.values().sum());
        assert_eq!((figures.winners, counts), (1, [1, 2]));
        assert_eq!((figures.requests, figures.answers_per_s), (4, 8));
        assert_eq!((figures.p50_us, figures.max_us / 1_000), (2_000, 1_000));
    }
}
