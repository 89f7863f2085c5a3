//! An event's policy as the API writes it: what is left out stays as it is.

use serde::{Deserialize, Serialize};
use soldonce_core::{Adjacency, LatePayment, OnPaymentFailure, Policy, Span};
use soldonce_engine::reply::Rfc3339;
use utoipa::ToSchema;

use super::json::{Nullable, Time};

/// A part of a policy. `null` takes a limit or a time away.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyRequest {
    hold_ttl_ms: Option<u64>,
    hold_max_ms: Option<u64>,
    units_per_hold_max: Option<u32>,
    units_per_holder_max: Option<u32>,
    #[serde(default)]
    #[schema(value_type = Option<u32>)]
    units_bought_per_holder_max: Nullable<u32>,
    payment_window_ms: Option<u64>,
    retry_window_ms: Option<u64>,
    late_payment: Option<LateWord>,
    on_payment_failure: Option<FailureWord>,
    adjacency: Option<AdjacencyWord>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    sale_opens_at: Nullable<Time>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    sale_closes_at: Nullable<Time>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    cancel_until: Nullable<Time>,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum LateWord {
    Refuse,
    IfStillFree,
    Refund,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailureWord {
    Keep,
    Release,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum AdjacencyWord {
    None,
    NoOrphan,
}

impl PolicyRequest {
    /// Puts what was asked for in its place.
    pub(super) fn apply(self, to: &mut Policy) {
        let spans = [
            (self.hold_ttl_ms, &mut to.hold_ttl),
            (self.hold_max_ms, &mut to.hold_max),
            (self.payment_window_ms, &mut to.payment_window),
            (self.retry_window_ms, &mut to.retry_window),
        ];
        for (asked, span) in spans {
            *span = asked.map_or(*span, Span::from_ms);
        }
        let counts = [
            (self.units_per_hold_max, &mut to.units_per_hold_max),
            (self.units_per_holder_max, &mut to.units_per_holder_max),
        ];
        for (asked, count) in counts {
            *count = asked.unwrap_or(*count);
        }
        let times = [
            (self.sale_opens_at, &mut to.sale_opens_at),
            (self.sale_closes_at, &mut to.sale_closes_at),
            (self.cancel_until, &mut to.cancel_until),
        ];
        for (asked, time) in times {
            *time = asked.or(time.map(Time)).map(|time| time.0);
        }
        to.units_bought_per_holder_max = self
            .units_bought_per_holder_max
            .or(to.units_bought_per_holder_max);
        to.late_payment = self.late_payment.map_or(to.late_payment, Into::into);
        to.on_payment_failure = self
            .on_payment_failure
            .map_or(to.on_payment_failure, Into::into);
        to.adjacency = self.adjacency.map_or(to.adjacency, Into::into);
    }
}

/// A whole policy.
#[derive(Serialize)]
pub(super) struct PolicyBody {
    hold_ttl_ms: u64,
    hold_max_ms: u64,
    units_per_hold_max: u32,
    units_per_holder_max: u32,
    units_bought_per_holder_max: Option<u32>,
    payment_window_ms: u64,
    retry_window_ms: u64,
    late_payment: LateWord,
    on_payment_failure: FailureWord,
    adjacency: AdjacencyWord,
    sale_opens_at: Option<Rfc3339>,
    sale_closes_at: Option<Rfc3339>,
    cancel_until: Option<Rfc3339>,
}

impl PolicyBody {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            hold_ttl_ms: policy.hold_ttl.ms(),
            hold_max_ms: policy.hold_max.ms(),
            units_per_hold_max: policy.units_per_hold_max,
            units_per_holder_max: policy.units_per_holder_max,
            units_bought_per_holder_max: policy.units_bought_per_holder_max,
            payment_window_ms: policy.payment_window.ms(),
            retry_window_ms: policy.retry_window.ms(),
            late_payment: policy.late_payment.into(),
            on_payment_failure: policy.on_payment_failure.into(),
            adjacency: policy.adjacency.into(),
            sale_opens_at: policy.sale_opens_at.map(Rfc3339),
            sale_closes_at: policy.sale_closes_at.map(Rfc3339),
            cancel_until: policy.cancel_until.map(Rfc3339),
        }
    }
}

/// Both ways between a word of the API and a rule of `core`.
macro_rules! same {
    ($word:ident, $rule:ident: $($variant:ident),*) => {
        impl From<$word> for $rule {
            fn from(word: $word) -> Self {
                match word { $($word::$variant => Self::$variant),* }
            }
        }
        impl From<$rule> for $word {
            fn from(rule: $rule) -> Self {
                match rule { $($rule::$variant => Self::$variant),* }
            }
        }
    };
}

same!(LateWord, LatePayment: Refuse, IfStillFree, Refund);
same!(FailureWord, OnPaymentFailure: Keep, Release);
same!(AdjacencyWord, Adjacency: None, NoOrphan);
