//! Intents and their charges: which state follows which, and what each is in JSON. Amounts are
//! integers in minor units.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cards::{Card, Decline};

/// What an intent is, in Stripe's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    RequiresPaymentMethod,
    /// Its card is named and not yet charged.
    RequiresConfirmation,
    RequiresAction,
    Processing,
    /// As [`Status::Processing`], at a bank that cannot be called back.
    OutOfReach,
    RequiresCapture,
    Succeeded,
    Canceled,
}

impl Status {
    const fn as_str(self) -> &'static str {
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

    /// Whether a buyer may pay it.
    pub(super) const fn may_confirm(self) -> bool {
        matches!(
            self,
            Self::RequiresPaymentMethod | Self::RequiresConfirmation | Self::RequiresAction
        )
    }

    /// Whether a bank has not said yes or no yet.
    pub(super) const fn is_undecided(self) -> bool {
        matches!(self, Self::Processing | Self::OutOfReach)
    }

    /// Whether it may be given up.
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
    /// What Stripe calls refunded: also what was reserved and is not taken.
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
    /// The card that was named last, unless it was declined.
    #[serde(default)]
    pub(super) payment_method: Option<String>,
    pub(super) charge: Option<Charge>,
    pub(super) declines: u32,
    pub(super) decline: Option<Decline>,
    pub(super) cancellation_reason: Option<String>,
    /// The page where the buyer authenticates, while the bank asks for it.
    pub(super) bank_page: Option<String>,
    pub(super) created_ms: i64,
    /// Names of the refunds made of it.
    pub(super) refunds: Vec<String>,
}

impl Intent {
    /// Whether no money of it can move any more, unless a refund comes back.
    pub(super) fn is_over(&self) -> bool {
        match self.status {
            Status::Canceled => true,
            Status::Succeeded => self.refundable() == 0,
            Status::RequiresPaymentMethod
            | Status::RequiresConfirmation
            | Status::RequiresAction
            | Status::Processing
            | Status::OutOfReach
            | Status::RequiresCapture => false,
        }
    }

    /// The card of its payment method.
    pub(super) fn card(&self) -> Option<Card> {
        self.payment_method.as_deref().and_then(Card::of)
    }

    /// The booking it was made for.
    pub(super) fn booking(&self) -> Option<&String> {
        self.metadata.get("booking")
    }

    /// What is reserved and not taken.
    pub(super) fn capturable(&self) -> i64 {
        match (self.status, &self.charge) {
            (Status::RequiresCapture, Some(charge)) => charge.amount,
            _ => 0,
        }
    }

    /// What is taken and not given back.
    pub(super) fn refundable(&self) -> i64 {
        match (self.status, &self.charge) {
            (Status::Succeeded, Some(charge)) => charge.amount - charge.refunded,
            _ => 0,
        }
    }

    /// As Stripe shows it; the charge in full if the caller wants it so.
    pub(super) fn json(&self, charge_in_full: Shown) -> Value {
        let charge = self.charge.as_ref().map(|charge| match charge_in_full {
            Shown::Named => Value::from(charge.id.clone()),
            Shown::InFull => self.charge_json(charge),
        });
        let capture_method = if self.captures_itself {
            "automatic"
        } else {
            "manual"
        };
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
            "capture_method": capture_method,
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

    /// A charge of this intent as Stripe shows it.
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

/// How a thing inside another is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Named,
    /// With all it has.
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
