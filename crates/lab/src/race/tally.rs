//! The counts of a cell: every buyer of every round is in exactly one of won, refused, failed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::outcome::Outcome;
use crate::kit::{Latencies, per_second};

/// The counts of one cell.
#[derive(Debug, Default)]
pub(super) struct Tally {
    latencies: Latencies,
    winners: u64,
    refused: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
    /// From the first request of each round to its last answer, added up.
    raced: Duration,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    /// Requests: buyers x rounds.
    pub(super) requests: u64,
    pub(super) winners: u64,
    /// By the code of the refusal.
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) errors: BTreeMap<String, u64>,
    /// Microseconds from a buyer's request to any answer.
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
    /// Answers a second while a round was running.
    pub(super) answers_per_s: u64,
}

impl Tally {
    pub(super) fn count(&mut self, outcome: &Outcome, took: Duration) {
        self.latencies.record(took);
        match outcome {
            Outcome::Won(_) => self.winners += 1,
            Outcome::Refused(why) => *self.refused.entry((*why).to_owned()).or_default() += 1,
            Outcome::Failed(kind) => *self.errors.entry(kind.clone()).or_default() += 1,
        }
    }

    /// Adds the time of one round.
    pub(super) fn raced(&mut self, took: Duration) {
        self.raced += took;
    }

    pub(super) fn figures(self) -> Figures {
        let latency = self.latencies.figures();
        let requests = self.latencies.count();
        Figures {
            requests,
            winners: self.winners,
            refused: self.refused,
            errors: self.errors,
            p50_us: latency.p50,
            p99_us: latency.p99,
            max_us: latency.max,
            answers_per_s: per_second(requests, self.raced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_in_one_count() {
        let mut tally = Tally::default();
        let ms = Duration::from_millis;
        tally.count(&Outcome::Won(None), ms(1));
        tally.count(&Outcome::Failed("overloaded".to_owned()), ms(2));
        tally.count(&Outcome::Refused("unit_unavailable"), ms(3));
        tally.count(&Outcome::Failed("deadlock 40P01".to_owned()), ms(1_000));
        tally.raced(ms(500));
        let figures = tally.figures();
        let counts = [&figures.refused, &figures.errors].map(|counts| counts.values().sum());
        assert_eq!((figures.winners, counts), (1, [1, 2]));
        assert_eq!((figures.requests, figures.answers_per_s), (4, 8));
        assert_eq!((figures.p50_us, figures.max_us / 1_000), (2_000, 1_000));
    }
}
