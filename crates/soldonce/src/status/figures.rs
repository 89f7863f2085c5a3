//! Figures of a server, from one or two scrapes of its metrics.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scrape::Scrape;

/// Answers to holds that are no refusal.
const HELD: [&str; 3] = ["outcome=\"ok\"", "outcome=\"own\"", "outcome=\"replayed\""];

/// Figures of a server at one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// None where rates need an earlier scrape and it is missing.
    #[serde(flatten)]
    pub(super) rates: Option<Rates>,
    pub(super) holds_live: f64,
    /// How far the feed and the seat maps are behind.
    pub(super) feed_lag_seconds: f64,
    pub(super) connections: f64,
    pub(super) money: Money,
}

/// What was counted: in all the time of a server, or in each second between two looks.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Rates {
    /// Units that were sold.
    pub(super) sold: f64,
    /// Holds that were answered.
    pub(super) held: f64,
    /// Holds that were refused.
    pub(super) refused: f64,
    /// Answers 500.
    pub(super) defects: f64,
    /// Time of a hold in the engine, milliseconds.
    pub(super) hold_ms: Spread,
    /// Time of a commit, milliseconds.
    pub(super) commit_ms: Spread,
    /// Commands that a commit carried: how much waits for the one before.
    pub(super) commands_a_commit: f64,
}

/// Median and 99th percentile, milliseconds. Zero where nothing was counted.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Bookings whose money is not settled.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Money {
    /// Something is left to be done at the provider.
    pub(super) pending: f64,
    /// Of these, those whose retries keep failing.
    pub(super) stuck: f64,
    /// Could not be compared with the provider.
    pub(super) unreconciled: f64,
}

impl Figures {
    /// Builds the figures of this moment, with the rates of what was counted until then.
    pub(super) fn of(now: &Scrape, rates: Option<Rates>) -> Self {
        Self {
            rates,
            holds_live: now.max("soldonce_holds_live"),
            feed_lag_seconds: now.max("soldonce_feed_lag_seconds"),
            connections: now.sum("soldonce_connections", &[]),
            money: Money {
                pending: now.max("soldonce_outbox_pending"),
                stuck: now.max("soldonce_outbox_stuck"),
                unreconciled: now.max("soldonce_payments_unreconciled"),
            },
        }
    }
}

impl Rates {
    /// Computes rates: how much the counters rose, divided by `seconds`.
    pub(super) fn of(risen: &Scrape, seconds: f64) -> Self {
        let counted = |name: &str, labels: &[&str]| risen.sum(name, labels) / seconds;
        let spread = |name: &str| Spread::of(risen.buckets(name));
        let asked = counted("soldonce_hold_requests_total", &[]);
        let held = counted("soldonce_hold_requests_total", &HELD);
        let commits = counted("soldonce_ledger_batch_size_count", &[]);
        let commands = counted("soldonce_ledger_batch_size_sum", &[]);
        let commands_a_commit = if commits > 0.0 {
            commands / commits
        } else {
            0.0
        };
        Self {
            sold: counted("soldonce_units_sold_total", &[]),
            held,
            refused: asked - held,
            defects: counted("soldonce_http_requests_total", &["status=\"500\""]),
            hold_ms: spread("soldonce_hold_seconds"),
            commit_ms: spread("soldonce_ledger_commit_seconds"),
            commands_a_commit,
        }
    }
}

impl Spread {
    fn of(buckets: BTreeMap<u64, f64>) -> Self {
        let buckets: Vec<(u64, f64)> = buckets.into_iter().collect();
        Self {
            p50: quantile(&buckets, 0.5),
            p99: quantile(&buckets, 0.99),
        }
    }

    pub(super) fn shown(self) -> String {
        format!("{:.1} {:.1}", self.p50, self.p99)
    }
}

/// Computes a quantile in milliseconds, as `histogram_quantile` of Prometheus: within a bucket
/// times are spread evenly, and what is above all bounds counts as the last of them.
fn quantile(buckets: &[(u64, f64)], share: f64) -> f64 {
    let all = buckets.last().map_or(0.0, |(_, count)| *count);
    let rank = all * share;
    let (mut bound_below, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *bound == u64::MAX {
            break;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "bounds are microseconds of minutes at most"
        )]
        let bound = *bound as f64 / 1e3;
        if *count >= rank && *count > below {
            return bound_below + (bound - bound_below) * (rank - below) / (count - below);
        }
        (bound_below, below) = (bound, *count);
    }
    bound_below * f64::from(u8::from(all > 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "\
# TYPE soldonce_units_sold_total counter
soldonce_units_sold_total 10
soldonce_hold_requests_total{outcome=\"ok\"} 20
soldonce_hold_requests_total{outcome=\"unit_unavailable\"} 5
soldonce_ledger_commit_seconds_bucket{le=\"0.001\"} 4
soldonce_ledger_commit_seconds_bucket{le=\"0.002\"} 4
soldonce_ledger_commit_seconds_bucket{le=\"+Inf\"} 4
";

    const AFTER: &str = "\
soldonce_units_sold_total 30
soldonce_hold_requests_total{outcome=\"ok\"} 60
soldonce_hold_requests_total{outcome=\"unit_unavailable\"} 25
soldonce_ledger_commit_seconds_bucket{le=\"0.001\"} 4
soldonce_ledger_commit_seconds_bucket{le=\"0.002\"} 104
soldonce_ledger_commit_seconds_bucket{le=\"+Inf\"} 104
soldonce_ledger_batch_size_sum 30
soldonce_ledger_batch_size_count 10
soldonce_feed_lag_seconds 0.25
soldonce_holds_live 7
nonsense
";

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9
    }

    #[test]
    fn a_server_that_did_nothing_yet_shows_zeros_without_a_sign() {
        let nothing = Scrape::default();
        let figures = Figures::of(&nothing, Some(Rates::of(&nothing, 1.0)));
        let shown = serde_json::to_string(&figures).unwrap();
        assert!(
            shown.contains("\"sold\":0.0") && !shown.contains('-'),
            "{shown}"
        );
    }

    #[test]
    fn counters_are_of_a_second_and_gauges_as_they_are() {
        let now = Scrape::read(AFTER);
        let rates = Rates::of(&now.since(&Scrape::read(BEFORE)), 2.0);
        assert!(close(rates.sold, 10.0) && close(rates.held, 20.0));
        assert!(close(rates.refused, 10.0) && close(rates.commands_a_commit, 3.0));
        // A hundred commits took between one and two milliseconds.
        assert!(close(rates.commit_ms.p50, 1.5) && close(rates.commit_ms.p99, 1.99));
        assert!(close(rates.hold_ms.p99, 0.0));
        let figures = Figures::of(&now, None);
        assert!(close(figures.holds_live, 7.0) && close(figures.feed_lag_seconds, 0.25));
    }

    #[test]
    fn a_server_that_began_anew_is_counted_from_its_start() {
        let (before, after) = (Scrape::read(AFTER), Scrape::read(BEFORE));
        let rates = Rates::of(&after.since(&before), 1.0);
        assert!(close(rates.sold, 10.0), "{rates:?}");
    }

    #[test]
    fn servers_of_one_ledger_are_added_up_and_its_gauges_are_not() {
        let mut both = Scrape::read(AFTER);
        both.add(&Scrape::read(AFTER));
        let rates = Rates::of(&both, 1.0);
        assert!(close(rates.sold, 60.0));
        assert!(close(rates.commit_ms.p50, 1.0 + (104.0 - 8.0) / 200.0));
        assert!(close(Figures::of(&both, None).holds_live, 7.0));
    }
}
