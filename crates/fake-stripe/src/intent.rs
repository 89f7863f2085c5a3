//! Intents and their charges: which status permits what, and their JSON. Amounts are integers in
//! minor units.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cards::{Card, Decline};

/// The status of an intent, by Stripe's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    RequiresPaymentMethod,
    /// It has a payment method that was not charged yet.
    RequiresConfirmation,
    RequiresAction,
    Processing,
    /// As [`Status::Processing`], and it cannot be cancelled.
    OutOfReach,
    RequiresCapture,
    Succeeded,
    Canceled,
}

impl Status {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::RequiresPaymentMethod => "requires_payment_method",
            Self::RequiresConfirmation => "requires_confirmation",
            Self::RequiresAction => "requires_action",
            Self::Processing | Self::OutOfReach => "processing",
            Self::RequiresCapture => "requires_capture",
            Self::Succeeded => "succeeded",
            Self::Canceled => "canceled",
        }
    }

    /// Tells whether a buyer may pay it.
    pub(super) const fn may_confirm(self) -> bool {
        matches!(
            self,
            Self::RequiresPaymentMethod | Self::RequiresConfirmation | Self::RequiresAction
        )
    }

    /// Tells whether it is authorised and not captured.
    pub(super) const fn may_capture(self) -> bool {
        matches!(self, Self::RequiresCapture)
    }

    /// Tells whether its bank has not approved or declined yet.
    pub(super) const fn is_undecided(self) -> bool {
        matches!(self, Self::Processing | Self::OutOfReach)
    }

    /// Tells whether it may be cancelled.
    pub(super) const fn may_cancel(self) -> bool {
        !matches!(self, Self::Succeeded | Self::Canceled | Self::OutOfReach)
    }
}

/// A try to charge a card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Charge {
    pub(super) id: String,
    pub(super) amount: i64,
    pub(super) captured: i64,
    /// What Stripe calls refunded: also what was authorised and not captured.
    pub(super) refunded: i64,
    pub(super) is_declined: bool,
    pub(super) created_ms: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) client_secret: String,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) captures_itself: bool,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) status: Status,
    /// The payment method of the last call that had one, unless it was declined.
    #[serde(default)]
    pub(super) payment_method: Option<String>,
    pub(super) charge: Option<Charge>,
    pub(super) declines: u32,
    pub(super) decline: Option<Decline>,
    pub(super) cancellation_reason: Option<String>,
    /// The page where the buyer authenticates, while the bank asks for it.
    pub(super) bank_page: Option<String>,
    pub(super) created_ms: i64,
    /// Ids of its refunds.
    pub(super) refunds: Vec<String>,
}

impl Intent {
    /// Tells whether no money of it can move any more, unless a refund fails.
    pub(super) fn is_over(&self) -> bool {
        let is_refunded = self.status == Status::Succeeded && self.refundable() == 0;
        is_refunded || self.status == Status::Canceled
    }

    /// Finds the card of its payment method; `None` if it has none.
    pub(super) fn card(&self) -> Option<Card> {
        self.payment_method.as_deref().and_then(Card::of)
    }

    /// Finds the booking it was made for, `booking` of its metadata.
    pub(super) fn booking(&self) -> Option<&String> {
        self.metadata.get("booking")
    }

    /// Returns the amount that is authorised and not captured.
    pub(super) fn capturable(&self) -> i64 {
        match (self.status, &self.charge) {
            (Status::RequiresCapture, Some(charge)) => charge.amount,
            _ => 0,
        }
    }

    /// Returns the amount that is captured and not refunded.
    pub(super) fn refundable(&self) -> i64 {
        match (self.status, &self.charge) {
            (Status::Succeeded, Some(charge)) => charge.amount - charge.refunded,
            _ => 0,
        }
    }

    /// Builds its JSON as Stripe's, with the charge in full or by its id.
    pub(super) fn json(&self, charge_in_full: Expansion) -> Value {
        let charge = self.charge.as_ref().map(|charge| match charge_in_full {
            Expansion::Named => Value::from(charge.id.clone()),
            Expansion::InFull => self.charge_json(charge),
        });
        let received = self.charge.as_ref().map_or(0, |charge| charge.captured);
        let next_action = self
            .bank_page
            .as_ref()
            .map(|url| json!({ "type": "redirect_to_url", "redirect_to_url": { "url": url } }));
        json!({
            "id": self.id,
            "object": "payment_intent",
            "amount": self.amount,
            "amount_capturable": self.capturable(),
            "amount_received": received,
            "cancellation_reason": self.cancellation_reason,
            "capture_method": if self.captures_itself { "automatic" } else { "manual" },
            "client_secret": self.client_secret,
            "created": self.created_ms / 1_000,
            "currency": self.currency,
            "last_payment_error": self.decline.map(decline_json),
            "latest_charge": charge,
            "livemode": false,
            "metadata": self.metadata,
            "next_action": next_action,
            "payment_method": self.payment_method,
            "status": self.status.as_str(),
        })
    }

    /// Builds the JSON of a charge of this intent as Stripe's.
    pub(super) fn charge_json(&self, charge: &Charge) -> Value {
        json!({
            "id": charge.id,
            "object": "charge",
            "amount": charge.amount,
            "amount_captured": charge.captured,
            "amount_refunded": charge.refunded,
            "captured": charge.captured > 0,
            "created": charge.created_ms / 1_000,
            "currency": self.currency,
            "livemode": false,
            "metadata": self.metadata,
            "payment_intent": self.id,
            "refunded": charge.refunded == charge.amount,
            "status": if charge.is_declined { "failed" } else { "succeeded" },
        })
    }
}

/// How an object inside another is shown: by its id, or in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expansion {
    Named,
    /// With all of its fields.
    InFull,
}

fn decline_json(decline: Decline) -> Value {
    json!({
        "type": "card_error",
        "code": decline.code,
        "decline_code": decline.reason,
        "message": decline.message,
    })
}
