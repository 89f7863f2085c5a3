//! Counters and timers of the engine (api.md 5). Never labelled by seat, hold or holder.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use soldonce_core::{Applied, Cause, Rejection};

use crate::ledger::Done;
use crate::webhook::Then;

/// The target of the spans that a server may export, all at level `info`.
pub const SPANS: &str = "soldonce_spans";

/// Labels, each a name and a value.
pub type Labels<const N: usize = 1> = [(&'static str, &'static str); N];

/// Defines [`Metrics`]: of each its type, first value if not the default, name and description.
macro_rules! metrics {
    ($($(#[$more:meta])* $seen:vis $field:ident: $kind:ty $(= $first:expr)?, $name:literal, $about:literal;)+) => {
        /// All metrics of an engine.
        #[derive(Debug)]
        pub struct Metrics {
            $(#[doc = concat!($about, ".")] $(#[$more])* $seen $field: $kind,)+
        }

        impl Default for Metrics {
            fn default() -> Self {
                Self { $($field: metrics!(@first $($first)?),)+ }
            }
        }

        impl Metrics {
            /// Registers the metrics under `soldonce_`, in the order of their fields.
            pub fn register(&self, registry: &mut Registry) {
                let r = registry.sub_registry_with_prefix("soldonce");
                $(r.register($name, $about, self.$field.clone());)+
            }
        }
    };
    (@first) => { Default::default() };
    (@first $first:expr) => { $first };
}

metrics! {
    /// By `outcome`: `ok`, `own`, `replayed`, `unreadable`, `provider`, or the rejection's code.
    pub hold_requests: Family<Labels, Counter>, "hold_requests", "Hold requests";
    /// Measured in the engine.
    pub hold_seconds: Family<Labels, Histogram, fn() -> Histogram> = Family::new_with_constructor(seconds),
        "hold_seconds", "Time of hold requests";
    pub confirms: Family<Labels, Counter>, "confirms", "Confirms";
    /// By `outcome`: `delivered`, `failed`, `given_up`.
    pub webhook_attempts: Family<Labels, Counter>, "webhook_attempts", "Attempts to deliver webhooks";
    /// By `step`, `notice` for a notice that does not match, and `outcome`.
    pub payments: Family<Labels<2>, Counter>, "payments", "Steps at the payment provider";
    /// At most as many as one look at the outbox finds.
    pub outbox_pending: Gauge, "outbox_pending", "Bookings with something left to be done at the provider";
    /// A person should look: alert on it.
    pub outbox_stuck: Gauge, "outbox_stuck",
        "Bookings whose next step at the payment provider was tried in vain again and again";
    /// Alert on it.
    pub unreconciled: Gauge, "payments_unreconciled",
        "Bookings that the last look could not compare with the payment provider";
    /// Settled, by `what` it was, such as `paid, not fulfilled`.
    pub reconciled: Family<Labels, Counter>, "payments_reconciled",
        "Payments that no notice told of, found by the reconciler";
    pub holds_extended: Family<Labels, Counter>, "holds_extended", "Extensions of holds";
    /// By `shield`: `local` in this process, `redis` between servers.
    pub shield_refusals: Family<Labels, Counter>, "shield_refusals", "Refusals by the shield";
    /// These requests go on to the ledger.
    pub shield_misses: Counter, "shield_misses", "Requests that the shield between servers did not answer";
    pub shield_notes_dropped: Counter, "shield_notes_dropped", "Notes that the shield between servers did not get";
    pub units_conflicted: Counter, "units_conflicted", "Units in refusals";
    /// Confirms whose hold was over, or whose units another has.
    pub confirm_conflicts: Counter, "confirm_conflicts", "Final-sale conflicts";
    /// Refused.
    pub stale_writes: Counter, "stale_writes", "Writes with an older fence";
    /// By this server: by confirms, by payments and directly.
    pub units_sold: Counter, "units_sold", "Units sold";
    pub holds_expired: Counter, "holds_expired", "Holds ended by the clock";
    pub holds_live: Gauge, "holds_live", "Holds that are not over";
    /// Alert on it.
    pub feed_lag: Gauge<f64, AtomicU64>, "feed_lag_seconds", "Age of the oldest commit that feed and maps may lack";
    /// Alert on it.
    pub ledger_disbelieved: Counter, "ledger_disbelieved",
        "Times the store refused what the server remembered of an event";
    pub ledger_writable: Gauge = writable(), "ledger_writable", "1 while commands are taken";
    pub clock_ahead: Gauge<f64, AtomicU64>, "ledger_clock_ahead_seconds",
        "How far the ledger's clock is ahead of this machine's";
    batch_size: Histogram = Histogram::new(exponential_buckets(1.0, 2.0, 11)),
        "ledger_batch_size", "Commands per commit";
    commit_seconds: Histogram = seconds(), "ledger_commit_seconds", "Time of commits";
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_1, 2.0, 16))
}

fn writable() -> Gauge {
    let writable = Gauge::default();
    writable.set(1);
    writable
}

impl Metrics {
    /// Counts an attempt to deliver a webhook.
    pub(crate) fn posted(&self, then: Then) {
        let outcome = match then {
            Then::Delivered => "delivered",
            Then::Again(_) | Then::Disable => "failed",
            Then::GiveUp => "given_up",
        };
        let label = [("outcome", outcome)];
        self.webhook_attempts.get_or_create(&label).inc();
    }

    /// Counts the units that were sold, and the holds that the clock ended, whether the sweeper
    /// wrote them down or a command that took their units.
    pub(crate) fn applied(&self, applied: &Applied) {
        let is_sale = |cause| matches!(cause, Cause::Confirmed | Cause::SoldDirectly);
        let sold = applied.steps().filter(|step| is_sale(step.cause)).count();
        let ended = applied.steps().filter(|step| step.cause == Cause::Expired);
        let mut ended: Vec<_> = ended.filter_map(|step| step.hold).collect();
        // All units of a hold end together.
        ended.dedup();
        let count = |number: usize| u64::try_from(number).unwrap_or_default();
        self.units_sold.inc_by(count(sold));
        self.holds_expired.inc_by(count(ended.len()));
    }

    /// Counts a request to hold, and how long it took.
    pub(crate) fn hold_asked(&self, outcome: &'static str, took: Duration) {
        let label = [("outcome", outcome)];
        self.hold_requests.get_or_create(&label).inc();
        let seconds = self.hold_seconds.get_or_create(&label);
        seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn extended(&self, done: Result<&Done, &Rejection>) {
        let outcome = done.map_or_else(Rejection::code, |_| "ok");
        let label = [("outcome", outcome)];
        self.holds_extended.get_or_create(&label).inc();
    }

    pub(crate) fn confirmed(&self, done: Result<&Done, &Rejection>) {
        let outcome = match done {
            Ok(Done::Replayed(_)) => "replayed",
            Ok(Done::Fresh { .. }) => "ok",
            Err(rejection) => rejection.code(),
        };
        self.confirms.get_or_create(&[("outcome", outcome)]).inc();
        if let Err(Rejection::HoldExpired | Rejection::UnitUnavailable(_)) = done {
            self.confirm_conflicts.inc();
        }
    }

    pub(crate) fn batch(&self, commands: usize, commit: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "a batch is far below 2^52")]
        self.batch_size.observe(commands as f64);
        self.commit_seconds.observe(commit.as_secs_f64());
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
