//! What a provider has of one booking's payment.

use std::fmt;
use std::sync::Arc;

use soldonce_core::{Amount, BookingId, Currency, PaymentState};

use crate::limits::PROVIDER_ID_BYTES_MAX;

name_at_provider! {
    /// The provider's name for an intent to pay.
    IntentId, PROVIDER_ID_BYTES_MAX
}

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// With this the buyer's browser pays an intent, and no other. Not shown in `Debug`, never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(Arc<str>);

impl ClientSecret {
    /// The secret of this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text, for the buyer only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(..)")
    }
}

/// An intent as the provider had it at one moment. Its totals are absolute, not steps: to take note
/// of one twice, or of an older one after a newer one, is harmless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The provider's name for it.
    pub id: IntentId,
    /// For the buyer's browser.
    pub client_secret: Option<ClientSecret>,
    /// What the payment is.
    ///
    /// After `Declined` a buyer may pay it with another card, until it is cancelled.
    pub state: PaymentState,
    /// Whether money may still come by it.
    pub may_be_paid: bool,
    /// Why the last try was declined, in the provider's word.
    pub decline: Option<String>,
    pub amount: Amount,
    /// How much of it was taken, in all.
    pub captured: Amount,
    /// How much of that the buyer has back.
    pub refunded: Amount,
    /// How much of what was sent back, in all, came back again: refunds that failed at the buyer's
    /// bank. Not every answer knows of it; then it is nothing, and `refunded` may be too much.
    pub bounced: Amount,
    pub currency: Currency,
    /// The booking it was made for, as the provider has it; none when it was made elsewhere.
    pub booking: Option<BookingId>,
}
