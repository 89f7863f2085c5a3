//! Refunds: their status and their JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The status of a refund, by Stripe's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RefundStatus {
    Succeeded,
    Failed,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) intent: String,
    pub(super) charge: String,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) status: RefundStatus,
    pub(super) created_ms: i64,
}

impl Refund {
    /// Builds its JSON as Stripe's.
    pub(super) fn json(&self) -> Value {
        let (status, reason) = match self.status {
            RefundStatus::Succeeded => ("succeeded", None),
            RefundStatus::Failed => ("failed", Some("expired_or_canceled_card")),
        };
        json!({
            "id": self.id,
            "object": "refund",
            "amount": self.amount,
            "charge": self.charge,
            "created": self.created_ms / 1_000,
            "currency": self.currency,
            "failure_reason": reason,
            "metadata": self.metadata,
            "payment_intent": self.intent,
            "status": status,
        })
    }
}
