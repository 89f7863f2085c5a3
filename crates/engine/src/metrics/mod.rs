//! What is counted and timed inside the engine (api.md 5). Never labelled by seat, hold or holder.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use soldonce_core::{Applied, Cause, Rejection};

use crate::ledger::Done;
use crate::webhook::Then;

/// How a command ended, for a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// `ok`, `own`, `replayed`, or the rejection's code; of a webhook `delivered`, `failed`, `given_up`.
    pub outcome: &'static str,
}

/// A step at the payment provider and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StepLabel {
    /// `authorise`, `capture`, `cancel`, `refund`.
    pub step: &'static str,
    /// `ok`, or why it was not done.
    pub outcome: &'static str,
}

/// What the reconciler found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct FoundLabel {
    /// In words, such as `paid, not fulfilled`.
    pub what: &'static str,
}

/// Which shield refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ShieldLabel {
    pub shield: ShieldKind,
}

/// A kind of shield.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(
    non_camel_case_types,
    reason = "the label's value is the variant's name"
)]
pub enum ShieldKind {
    /// In this process.
    local,
    /// Between servers.
    redis,
}

/// All metrics of an engine.
#[derive(Debug)]
pub struct Metrics {
    /// Hold requests by outcome.
    pub hold_requests: Family<OutcomeLabel, Counter>,
    /// How long hold requests took in the engine, seconds.
    pub hold_seconds: Family<OutcomeLabel, Histogram, fn() -> Histogram>,
    /// Confirms by outcome.
    pub confirms: Family<OutcomeLabel, Counter>,
    /// Extensions by outcome.
    pub holds_extended: Family<OutcomeLabel, Counter>,
    /// Refusals by the shield.
    pub shield_refusals: Family<ShieldLabel, Counter>,
    /// Requests that passed because the shield between servers did not answer.
    pub shield_misses: Counter,
    /// Notes to that shield that it did not get.
    pub shield_notes_dropped: Counter,
    /// Units named in refusals.
    pub units_conflicted: Counter,
    /// Final-sale conflicts: confirms whose hold was over, or whose units another has.
    pub confirm_conflicts: Counter,
    /// Attempts to deliver webhooks.
    pub webhook_attempts: Family<OutcomeLabel, Counter>,
    /// Steps at the payment provider.
    pub payments: Family<StepLabel, Counter>,
    /// Bookings with something left to be done at the provider, as far as one look goes.
    pub outbox_pending: Gauge,
    /// Of these, those tried in vain so often that a person should look: alert on it.
    pub outbox_stuck: Gauge,
    /// Bookings that the last look could not compare with the provider: alert on it.
    pub unreconciled: Gauge,
    /// What the reconciler found and settled, by what it was.
    pub reconciled: Family<FoundLabel, Counter>,
    /// Writes refused because of an older fence.
    pub stale_writes: Counter,
    /// Units that this server sold: by confirms, by payments and directly.
    pub units_sold: Counter,
    /// Holds that the clock ended.
    pub holds_expired: Counter,
    /// Holds that are not over.
    pub holds_live: Gauge,
    /// How old the oldest commit is that feed and maps do not show, seconds: alert on it.
    pub feed_lag: Gauge<f64, AtomicU64>,
    /// Times the store refused what the server remembered of an event: alert on it.
    pub ledger_disbelieved: Counter,
    /// 1 while the ledger takes commands.
    pub ledger_writable: Gauge,
    /// How far the ledger's clock is ahead of this machine's wall clock, seconds.
    pub clock_ahead: Gauge<f64, AtomicU64>,
    batch_size: Histogram,
    commit_seconds: Histogram,
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        let ledger_writable = Gauge::default();
        ledger_writable.set(1);
        Self {
            hold_requests: Family::default(),
            hold_seconds: Family::new_with_constructor(seconds),
            confirms: Family::default(),
            holds_extended: Family::default(),
            shield_refusals: Family::default(),
            shield_misses: Counter::default(),
            shield_notes_dropped: Counter::default(),
            units_conflicted: Counter::default(),
            confirm_conflicts: Counter::default(),
            webhook_attempts: Family::default(),
            payments: Family::default(),
            outbox_pending: Gauge::default(),
            outbox_stuck: Gauge::default(),
            unreconciled: Gauge::default(),
            reconciled: Family::default(),
            stale_writes: Counter::default(),
            units_sold: Counter::default(),
            holds_expired: Counter::default(),
            holds_live: Gauge::default(),
            feed_lag: Gauge::default(),
            ledger_disbelieved: Counter::default(),
            ledger_writable,
            clock_ahead: Gauge::default(),
            batch_size: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            commit_seconds: seconds(),
        }
    }
}

/// Makes fields part of a registry, in this order: their names there, and what they are.
macro_rules! register {
    ($metrics:ident, $registry:ident, $($field:ident: $name:literal, $about:literal;)+) => {
        $($registry.register($name, $about, $metrics.$field.clone());)+
    };
}

impl Metrics {
    /// Makes the metrics part of a registry, under `soldonce_`.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry.sub_registry_with_prefix("soldonce");
        register! { self, r,
            hold_requests: "hold_requests", "Hold requests";
            hold_seconds: "hold_seconds", "Time of hold requests";
            confirms: "confirms", "Confirms";
            webhook_attempts: "webhook_attempts", "Attempts to deliver webhooks";
            payments: "payments", "Steps at the payment provider";
            outbox_pending: "outbox_pending", "Bookings with something left to be done at the provider";
            outbox_stuck: "outbox_stuck",
                "Bookings whose next step at the payment provider was tried in vain again and again";
            unreconciled: "payments_unreconciled",
                "Bookings that the last look could not compare with the payment provider";
            reconciled: "payments_reconciled", "Payments that no notice told of, found by the reconciler";
            holds_extended: "holds_extended", "Extensions of holds";
            shield_refusals: "shield_refusals", "Refusals by the shield";
            shield_misses: "shield_misses", "Requests that the shield between servers did not answer";
            shield_notes_dropped: "shield_notes_dropped", "Notes that the shield between servers did not get";
            units_conflicted: "units_conflicted", "Units in refusals";
            confirm_conflicts: "confirm_conflicts", "Final-sale conflicts";
            stale_writes: "stale_writes", "Writes with an older fence";
            units_sold: "units_sold", "Units sold";
            holds_expired: "holds_expired", "Holds ended by the clock";
            holds_live: "holds_live", "Holds that are not over";
            feed_lag: "feed_lag_seconds", "Age of the oldest commit that feed and maps do not show";
            ledger_disbelieved: "ledger_disbelieved",
                "Times the store refused what the server remembered of an event";
            ledger_writable: "ledger_writable", "1 while commands are taken";
            clock_ahead: "ledger_clock_ahead_seconds", "How far the ledger's clock is ahead of this machine's";
            batch_size: "ledger_batch_size", "Commands per commit";
            commit_seconds: "ledger_commit_seconds", "Time of commits";
        }
    }

    /// Counts an attempt to deliver a webhook.
    pub(crate) fn posted(&self, then: Then) {
        let outcome = match then {
            Then::Delivered => "delivered",
            Then::Again(_) | Then::Disable => "failed",
            Then::GiveUp => "given_up",
        };
        let label = OutcomeLabel { outcome };
        self.webhook_attempts.get_or_create(&label).inc();
    }

    /// Counts the units that were sold, and the holds that the clock ended, whether the sweeper wrote them down or who
    /// took their units.
    pub(crate) fn applied(&self, applied: &Applied) {
        let steps = || {
            let commits = applied.commits.iter();
            commits.flat_map(|commit| &commit.transitions)
        };
        let is_sale = |cause| matches!(cause, Cause::Confirmed | Cause::SoldDirectly);
        let sold = steps().filter(|step| is_sale(step.cause)).count();
        let ended = steps().filter(|step| step.cause == Cause::Expired);
        let mut ended: Vec<_> = ended.filter_map(|step| step.hold).collect();
        // All units of a hold end together.
        ended.dedup();
        self.units_sold
            .inc_by(u64::try_from(sold).unwrap_or_default());
        self.holds_expired
            .inc_by(u64::try_from(ended.len()).unwrap_or_default());
    }

    /// Counts a confirm.
    pub(crate) fn confirmed(&self, done: Result<&Done, &Rejection>) {
        let outcome = match done {
            Ok(Done::Replayed(_)) => "replayed",
            Ok(Done::Fresh { .. }) => "ok",
            Err(rejection) => rejection.code(),
        };
        self.confirms.get_or_create(&OutcomeLabel { outcome }).inc();
        if let Err(Rejection::HoldExpired | Rejection::UnitUnavailable(_)) = done {
            self.confirm_conflicts.inc();
        }
    }

    pub(crate) fn batch(&self, commands: usize, commit: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
        self.batch_size.observe(commands as f64);
        self.commit_seconds.observe(commit.as_secs_f64());
    }

    pub(crate) fn ledger_failed(&self) {
        self.ledger_writable.set(0);
    }

    /// Counts a refusal.
    pub fn refused(&self, rejection: &Rejection) {
        if let Rejection::UnitUnavailable(refusal) = rejection {
            let units = u64::try_from(refusal.conflicts.len()).unwrap_or_default();
            self.units_conflicted.inc_by(units);
        }
        if let Rejection::StaleFence(_) = rejection {
            self.stale_writes.inc();
        }
    }
}
