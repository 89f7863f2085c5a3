//! The intent of one booking's payment, as a provider has it.

use std::sync::Arc;

use soldonce_core::{Amount, BookingId, Currency, PaymentState, text_id};

use super::name::token;
use crate::limits::PROVIDER_ID_BYTES_MAX;

text_id! {
    /// The provider's name for an intent to pay.
    IntentId, token, PROVIDER_ID_BYTES_MAX
}

/// The secret with which the buyer's browser pays one intent. Not shown in `Debug`, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(Arc<str>);

impl ClientSecret {
    /// Wraps the text of a secret.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text, for the buyer only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// An intent as the provider had it at one moment. Its totals are absolute, not steps: to take note
/// of one twice, or of an older one after a newer one, is harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The provider's name for it.
    pub id: IntentId,
    /// The secret for the buyer's browser.
    pub client_secret: Option<ClientSecret>,
    /// The state of the payment.
    ///
    /// After `Declined` a buyer may pay it with another card, until it is cancelled.
    pub state: PaymentState,
    /// Whether money may still come by it: it can be paid, or its payment is being processed.
    pub may_be_paid: bool,
    pub amount: Amount,
    /// The amount that was taken, in all.
    pub captured: Amount,
    /// The part of that which the buyer has back.
    pub refunded: Amount,
    /// The part of what was sent back, in all, that came back again: refunds that failed at the
    /// buyer's bank. Not every answer knows of it; then it is zero, and `refunded` may be too much.
    pub bounced: Amount,
    pub currency: Currency,
    /// The booking it was made for, as the provider has it; `None` when it was made elsewhere.
    pub booking: Option<BookingId>,
}
