//! Stripe's intents, charges and refunds, and their conversion to our types (model.md 6).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use soldonce_core::{Amount, Currency, PaymentState, words};

use super::REFUND_FAILED;
use crate::payment::{ClientSecret, Intent, IntentId, ProviderError};

words! {
    /// The status of an intent, in Stripe's words. An unknown one is an error, not a guess.
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(super) Status:
    RequiresPaymentMethod = "requires_payment_method",
    RequiresConfirmation = "requires_confirmation",
    RequiresAction = "requires_action",
    Processing = "processing",
    RequiresCapture = "requires_capture",
    Succeeded = "succeeded",
    Canceled = "canceled",
}

impl Status {
    /// Tells whether money may still come by it.
    const fn may_be_paid(self) -> bool {
        match self {
            Self::RequiresPaymentMethod
            | Self::RequiresConfirmation
            | Self::RequiresAction
            | Self::Processing => true,
            Self::RequiresCapture | Self::Succeeded | Self::Canceled => false,
        }
    }
}

#[derive(Debug, Deserialize)]
struct IntentShape {
    id: String,
    amount: i64,
    #[serde(default)]
    amount_received: i64,
    currency: String,
    status: Status,
    client_secret: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    last_payment_error: Option<IgnoredAny>,
    cancellation_reason: Option<String>,
    #[serde(default)]
    latest_charge: ChargeShape,
}

/// The charge of an intent: in full where that was asked for, else its name.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum ChargeShape {
    InFull(FullCharge),
    Named(String),
    /// Null: it was never charged.
    Never(()),
    /// A notice is written in the version of its endpoint: before 2022-11-15 it has no such member.
    #[default]
    #[serde(skip)]
    Untold,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct FullCharge {
    amount: i64,
    amount_captured: i64,
    amount_refunded: i64,
    status: ChargeStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChargeStatus {
    Succeeded,
    Pending,
    Failed,
}

/// An intent in our types, with its status at Stripe.
#[derive(Clone, Debug)]
pub(super) struct StripeIntent {
    pub(super) intent: Intent,
    pub(super) status: Status,
    /// Whether its state depends on its charge, which was not given in full.
    pub(super) is_half: bool,
}

/// Parses an answer. One that cannot be read is an outcome that is not known.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

/// Parses the intent of an answer.
pub(super) fn intent(body: &[u8]) -> Result<StripeIntent, ProviderError> {
    seen(&read(body)?)
}

/// Parses the intent of a notice.
pub(super) fn intent_of_notice(value: serde_json::Value) -> Result<StripeIntent, ProviderError> {
    let shape: IntentShape = serde_json::from_value(value).map_err(|error| unreadable(&error))?;
    seen(&shape)
}

/// Says where the error is, not what is there: an answer may hold a client secret.
fn unreadable(error: &serde_json::Error) -> ProviderError {
    let (line, column) = (error.line(), error.column());
    let why = format!("the answer cannot be read at line {line}, column {column}");
    ProviderError::Unknown(why)
}

fn odd(what: &str) -> ProviderError {
    ProviderError::Unknown(format!("the answer has an odd {what}"))
}

fn seen(shape: &IntentShape) -> Result<StripeIntent, ProviderError> {
    let amount = |minor: i64, what| {
        let amount = (minor >= 0).then(|| Amount::from_minor(minor));
        amount.ok_or_else(|| odd(what))
    };
    let charge = match &shape.latest_charge {
        ChargeShape::InFull(charge) => Some(*charge),
        ChargeShape::Named(name) if name.is_empty() => return Err(odd("charge")),
        ChargeShape::Named(_) | ChargeShape::Never(()) | ChargeShape::Untold => None,
    };
    let captured = charge.map_or(shape.amount_received, |charge| charge.amount_captured);
    let refunded = charge.map_or(Some(0), FullCharge::given_back);
    let refunded = refunded.ok_or_else(|| odd("refunded amount"))?;
    let (state, is_half) = state(shape, charge, refunded);
    let currency = Currency::parse(&shape.currency.to_ascii_uppercase());
    let booking = shape.metadata.get("booking");
    let client_secret = shape.client_secret.as_deref().map(ClientSecret::new);
    let intent = Intent {
        id: IntentId::parse(&shape.id).map_err(|_| odd("name"))?,
        client_secret,
        state,
        may_be_paid: shape.status.may_be_paid(),
        amount: amount(shape.amount, "amount")?,
        captured: amount(captured, "captured amount")?,
        refunded: amount(refunded, "refunded amount")?,
        bounced: Amount::ZERO,
        currency: currency.ok_or_else(|| odd("currency"))?,
        booking: booking.and_then(|booking| booking.parse().ok()),
    };
    Ok(StripeIntent {
        intent,
        status: shape.status,
        is_half,
    })
}

impl StripeIntent {
    /// Adds what its refunds say. They were asked for later than the intent, so what it says of
    /// them by itself may be older.
    pub(super) fn with(mut self, refunds: &RefundsShape) -> Result<Self, ProviderError> {
        let (made, bounced) = refunds.totals().ok_or_else(|| odd("sum of refunds"))?;
        let refunded = made.checked_sub(bounced).ok_or_else(|| odd("refund"))?;
        self.intent.bounced = bounced;
        self.intent.refunded = refunded;
        self.intent.state = taken(self.intent.captured, refunded);
        Ok(self)
    }
}

impl FullCharge {
    /// Computes what was refunded of what was taken; `None` if the amounts make no sense. Stripe
    /// also counts as refunded what was reserved and never taken.
    fn given_back(self) -> Option<i64> {
        if self.amount_captured == 0 {
            return Some(0);
        }
        let never_taken = self.amount.checked_sub(self.amount_captured)?;
        let given_back = self.amount_refunded.checked_sub(never_taken)?;
        (given_back <= self.amount_captured).then_some(given_back)
    }
}

/// Converts the state, and tells whether it depends on a charge that was only named or left out.
fn state(shape: &IntentShape, charge: Option<FullCharge>, refunded: i64) -> (PaymentState, bool) {
    let is_half = matches!(
        shape.latest_charge,
        ChargeShape::Named(_) | ChargeShape::Untold
    );
    match shape.status {
        Status::RequiresPaymentMethod if shape.last_payment_error.is_some() => {
            (PaymentState::Declined, false)
        }
        Status::RequiresPaymentMethod | Status::RequiresConfirmation => {
            (PaymentState::Created, false)
        }
        Status::RequiresAction => (PaymentState::ActionRequired, false),
        Status::Processing => (PaymentState::Processing, false),
        Status::RequiresCapture => (PaymentState::Authorised, false),
        // Just captured, its notice says so in full; refunds have notices of their own.
        Status::Succeeded => {
            let captured = charge.map_or(i64::MAX, |charge| charge.amount_captured);
            let (captured, refunded) = (Amount::from_minor(captured), Amount::from_minor(refunded));
            (taken(captured, refunded), false)
        }
        Status::Canceled => (given_up(shape, charge), is_half),
    }
}

fn taken(captured: Amount, refunded: Amount) -> PaymentState {
    match refunded {
        Amount::ZERO => PaymentState::Captured,
        part if part < captured => PaymentState::PartlyRefunded,
        _ => PaymentState::Refunded,
    }
}

/// Tells how a cancelled intent ended: Stripe gives up by itself what was reserved for too long.
fn given_up(shape: &IntentShape, charge: Option<FullCharge>) -> PaymentState {
    let was_reserved = charge.is_some_and(|charge| charge.status == ChargeStatus::Succeeded);
    match shape.cancellation_reason.as_deref() {
        _ if !was_reserved => PaymentState::Failed,
        Some("automatic" | "expired") => PaymentState::Lapsed,
        Some(_) | None => PaymentState::Voided,
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RefundShape {
    id: String,
    amount: i64,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

impl RefundShape {
    /// Returns the status of a refund that failed; `None` if it did not.
    fn failure(&self) -> Option<&str> {
        let status = self.status.as_deref();
        status.filter(|status| matches!(*status, "failed" | "canceled"))
    }

    /// Fails if the refund failed or was cancelled.
    pub(super) fn require_alive(&self) -> Result<(), ProviderError> {
        match self.failure() {
            Some(status) => Err(ProviderError::Refused {
                status: 200,
                code: REFUND_FAILED.to_owned(),
                message: format!("the refund is {status}: another needs another key"),
            }),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RefundsShape {
    data: Vec<RefundShape>,
    #[serde(default)]
    pub(super) has_more: bool,
}

impl RefundsShape {
    /// Appends the page that comes after them.
    pub(super) fn and(mut self, next: Self) -> Self {
        self.data.extend(next.data);
        self.has_more = next.has_more;
        self
    }

    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns the id that the next page begins after, if there is one.
    pub(super) fn next_after(&self) -> Option<&str> {
        let last = self.data.last().filter(|_| self.has_more);
        last.map(|refund| refund.id.as_str())
    }

    /// Finds the refund that was made with this key.
    pub(super) fn of_key(&self, key: &str) -> Option<&RefundShape> {
        let is_own =
            |refund: &&RefundShape| refund.metadata.get("key").map(String::as_str) == Some(key);
        self.data.iter().find(is_own)
    }

    /// Sums what was sent back in all, and what of it came back again; `None` if that is no amount.
    fn totals(&self) -> Option<(Amount, Amount)> {
        let mut totals = (Amount::ZERO, Amount::ZERO);
        for refund in &self.data {
            let amount = (refund.amount > 0).then(|| Amount::from_minor(refund.amount))?;
            totals.0 = totals.0.checked_add(amount)?;
            if refund.failure().is_some() {
                totals.1 = totals.1.checked_add(amount)?;
            }
        }
        Some(totals)
    }
}
