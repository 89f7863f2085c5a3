//! The interface to payment providers. A provider is asked to do one step at a time, each with a
//! key that makes it safe to ask again; it decides nothing about bookings. Its answers are a mirror
//! (model.md 6): amounts, currency and account are compared with the booking's by the caller.
//!
//! Reading order: the trait below, its answers ([`Intent`]), its errors ([`ProviderError`]), its
//! webhooks ([`Notice`]), the first provider (`stripe`).

mod intent;
pub mod limits;
mod name;
mod notice;
pub mod stripe;

use std::future::Future;
use std::pin::Pin;

use soldonce_core::{Amount, BookingId, Currency, InvalidId, Span, text_id};

use limits::GIVEN_KEY_BYTES_MAX;
use name::token;

pub use intent::{ClientSecret, Intent, IntentId};
pub use notice::{AccountId, Notice, NoticeId, Subject};

/// The result of every call on a provider. Dropping it does not undo what the provider took.
pub type ProviderFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, ProviderError>> + Send + 'a>>;

/// Takes money for bookings: authorise, capture, void, refund, state.
///
/// There is no search by booking: providers search what was true some time ago, so a caller that
/// does not know whether an intent was made creates it again with the same key and is given it.
///
/// # Cancel safety
/// Every call, dropped, may still be carried out: repeat it with the same key.
pub trait PaymentProvider: Send + Sync + 'static {
    /// Returns its name, for a label.
    fn name(&self) -> &'static str;

    /// Checks that the provider charges a price. What costs nothing never gets to it.
    ///
    /// # Errors
    /// Says why it would refuse the payment of one unit.
    fn require_chargeable(&self, _currency: Currency, _price: Amount) -> Result<(), String> {
        Ok(())
    }

    /// Checks that the provider refunds an amount. One that it refuses for good would keep all
    /// later refunds of the booking waiting.
    ///
    /// # Errors
    /// Says why it would refuse it.
    fn require_refundable(&self, _currency: Currency, _amount: Amount) -> Result<(), String> {
        Ok(())
    }

    /// Creates an intent to pay a booking: nothing is reserved yet.
    ///
    /// # Errors
    /// [`ProviderError`]; after `Unknown` or `Busy`, ask again with the same key.
    fn create(&self, ask: CreateIntent) -> ProviderFuture<'_, Intent>;

    /// Reads an intent as the provider has it now, with the totals of its charge.
    ///
    /// # Errors
    /// [`ProviderError`]; `Refused` with status 404 when there is none.
    fn retrieve<'a>(&'a self, intent: &'a IntentId) -> ProviderFuture<'a, Intent>;

    /// Takes the money that an intent has reserved, all of it; returns the intent as it is
    /// afterwards, also when it was taken before.
    ///
    /// # Errors
    /// [`ProviderError`]; `Refused` when nothing is reserved (any more): retrieve it.
    fn capture<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent>;

    /// Cancels an intent whose money was not taken: what it has reserved is free again, and it
    /// can't be paid any more. Returns the intent as it is afterwards, also when it was cancelled
    /// before.
    ///
    /// # Errors
    /// [`ProviderError`]; `Refused` when the money was taken: retrieve it.
    fn cancel<'a>(&'a self, intent: &'a IntentId, key: ProviderKey) -> ProviderFuture<'a, Intent>;

    /// Refunds `amount` of the taken money; returns the intent as it is afterwards.
    ///
    /// # Errors
    /// [`ProviderError`]; `Refused` when less than that is left to give back, or the refund of this
    /// key failed at the buyer's bank ([`stripe::REFUND_FAILED`]): another needs another key.
    fn refund<'a>(
        &'a self,
        intent: &'a IntentId,
        amount: Amount,
        key: ProviderKey,
    ) -> ProviderFuture<'a, Intent>;
}

/// A request for a new intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIntent {
    /// The booking; the provider stores it with the intent and sends it in notices.
    pub booking: BookingId,
    pub amount: Amount,
    pub currency: Currency,
    /// The idempotency key of this step.
    pub key: ProviderKey,
}

text_id! {
    /// The idempotency key of one step of one booking, stored before the call: a provider carries the step out once,
    /// however often it is asked with it.
    ProviderKey, token, GIVEN_KEY_BYTES_MAX
}

impl ProviderKey {
    /// Builds the key of a step, such as `capture` or `refund-2`, of a booking.
    ///
    /// # Errors
    /// [`InvalidId`] when the step is no legal text for a key.
    pub fn of(booking: BookingId, step: &str) -> Result<Self, InvalidId> {
        Self::parse(&format!("{booking}.{step}"))
    }
}

/// Why a provider did not carry out a step. Says what to do next, and carries no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The buyer's bank refused. Nothing happened; another card may do.
    #[error("the payment was declined ({code})")]
    Declined {
        /// The provider's word for why.
        code: String,
    },
    /// The provider refused, and nothing happened. The same again is refused again: retrieve the
    /// intent to see its state.
    #[error("the provider refused with status {status}, `{code}`: {message}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// The provider's word for why; empty if it gave none.
        code: String,
        /// The provider's text for people, for the log only.
        message: String,
    },
    /// The outcome is unknown: no answer, half an answer, or one that says so. Ask again
    /// with the same key.
    #[error("it is not known whether the provider did it ({0}): ask again with the same key")]
    Unknown(String),
    /// Too much is asked, or the same key is at work just now. Nothing happened by this call; ask
    /// again later with the same key.
    #[error("the provider is busy: ask again with the same key")]
    Busy {
        /// How long to wait, if the provider said so.
        retry_after: Option<Span>,
    },
    /// The provider does not know us or does not let us. Nothing happened; a person must repair the
    /// settings.
    #[error("the provider does not accept this key ({0}): look at the payment settings")]
    Misconfigured(String),
}

impl ProviderError {
    /// Tells whether the same call with the same key may have another outcome.
    pub const fn may_be_repeated(&self) -> bool {
        match self {
            Self::Unknown(_) | Self::Busy { .. } => true,
            Self::Declined { .. } | Self::Refused { .. } | Self::Misconfigured(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_derived_from_booking_and_step() {
        let booking = BookingId::from_bits(7);
        let key = ProviderKey::of(booking, "refund-2").unwrap();
        assert_eq!(key.as_str(), format!("{booking}.refund-2"));
        assert_eq!(ProviderKey::parse(key.as_str()), Ok(key));
        for step in ["a b", "a\n", "a/b", "é", &"a".repeat(254)] {
            assert!(ProviderKey::of(booking, step).is_err(), "{step:?}");
        }
    }

    #[test]
    fn a_name_at_the_provider_is_no_path() {
        let wrong = ". .. pi_1/capture pi_1?a pi_1# pi%2f".split(' ');
        for text in wrong.chain(["", "pi_1\r\n", &"a".repeat(256)]) {
            assert!(IntentId::parse(text).is_err(), "{text:?}");
        }
        assert_eq!(
            IntentId::parse("pi_3MtwBw").map(|id| id.as_str().to_owned()),
            Ok("pi_3MtwBw".to_owned())
        );
    }

    #[test]
    fn a_client_secret_is_not_shown() {
        let secret = ClientSecret::new("pi_1_secret_x");
        assert_eq!(format!("{secret:?}"), "ClientSecret { .. }");
        assert_eq!(secret.expose(), "pi_1_secret_x");
    }
}
