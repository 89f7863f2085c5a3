//! Prices and policies as JSON. A name that is not known is refused: it was written by a newer
//! version, and a rule must not be lost.

use serde::{Deserialize, Serialize};
use soldonce_core::{Adjacency, Amount, LatePayment, OnPaymentFailure, Policy, Span, Timestamp};

use super::Damaged;

const TABLE: &str = "events";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyColumns {
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
    sale_opens_at: Option<i64>,
    sale_closes_at: Option<i64>,
    cancel_until: Option<i64>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LateWord {
    Refuse,
    IfStillFree,
    Refund,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FailureWord {
    Keep,
    Release,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AdjacencyWord {
    None,
    NoOrphan,
}

pub(crate) fn policy_to_json(policy: &Policy) -> Result<String, Damaged> {
    let columns = PolicyColumns {
        hold_ttl_ms: policy.hold_ttl.ms(),
        hold_max_ms: policy.hold_max.ms(),
        units_per_hold_max: policy.units_per_hold_max,
        units_per_holder_max: policy.units_per_holder_max,
        units_bought_per_holder_max: policy.units_bought_per_holder_max,
        payment_window_ms: policy.payment_window.ms(),
        retry_window_ms: policy.retry_window.ms(),
        late_payment: match policy.late_payment {
            LatePayment::Refuse => LateWord::Refuse,
            LatePayment::IfStillFree => LateWord::IfStillFree,
            LatePayment::Refund => LateWord::Refund,
        },
        on_payment_failure: match policy.on_payment_failure {
            OnPaymentFailure::Keep => FailureWord::Keep,
            OnPaymentFailure::Release => FailureWord::Release,
        },
        adjacency: match policy.adjacency {
            Adjacency::None => AdjacencyWord::None,
            Adjacency::NoOrphan => AdjacencyWord::NoOrphan,
        },
        sale_opens_at: policy.sale_opens_at.map(Timestamp::ms),
        sale_closes_at: policy.sale_closes_at.map(Timestamp::ms),
        cancel_until: policy.cancel_until.map(Timestamp::ms),
    };
    serde_json::to_string(&columns).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn policy_from_json(json: &str) -> Result<Policy, Damaged> {
    let unreadable = |error: serde_json::Error| Damaged::new(TABLE, format!("policy: {error}"));
    let columns: PolicyColumns = serde_json::from_str(json).map_err(unreadable)?;
    Ok(Policy {
        hold_ttl: Span::from_ms(columns.hold_ttl_ms),
        hold_max: Span::from_ms(columns.hold_max_ms),
        units_per_hold_max: columns.units_per_hold_max,
        units_per_holder_max: columns.units_per_holder_max,
        units_bought_per_holder_max: columns.units_bought_per_holder_max,
        payment_window: Span::from_ms(columns.payment_window_ms),
        retry_window: Span::from_ms(columns.retry_window_ms),
        late_payment: match columns.late_payment {
            LateWord::Refuse => LatePayment::Refuse,
            LateWord::IfStillFree => LatePayment::IfStillFree,
            LateWord::Refund => LatePayment::Refund,
        },
        on_payment_failure: match columns.on_payment_failure {
            FailureWord::Keep => OnPaymentFailure::Keep,
            FailureWord::Release => OnPaymentFailure::Release,
        },
        adjacency: match columns.adjacency {
            AdjacencyWord::None => Adjacency::None,
            AdjacencyWord::NoOrphan => Adjacency::NoOrphan,
        },
        sale_opens_at: columns.sale_opens_at.map(Timestamp::from_ms),
        sale_closes_at: columns.sale_closes_at.map(Timestamp::from_ms),
        cancel_until: columns.cancel_until.map(Timestamp::from_ms),
    })
}

pub(crate) fn prices_to_json(prices: &[Amount]) -> Result<String, Damaged> {
    let minor: Vec<i64> = prices.iter().map(|price| price.minor()).collect();
    serde_json::to_string(&minor).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn prices_from_json(json: &str) -> Result<Vec<Amount>, Damaged> {
    let minor: Vec<i64> = serde_json::from_str(json)
        .map_err(|error| Damaged::new(TABLE, format!("prices: {error}")))?;
    Ok(minor.into_iter().map(Amount::from_minor).collect())
}
