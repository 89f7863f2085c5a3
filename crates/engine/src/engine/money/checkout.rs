//! Calls of buyers and staff about money.

use soldonce_core::{Amount, BookingId, Command, Fence, HoldId, Invalid, Rejection, Text};

use super::StepError;
use crate::caller::Call;
use crate::engine::bookings::require_key;
use crate::engine::{Engine, EngineError, GivenAsk, Reply};

/// A request to begin payment.
#[derive(Clone, Debug, Default)]
pub struct CheckoutAsk<'a> {
    /// The fence of the hold that the caller knows.
    pub fence: Option<Fence>,
    /// The caller's own text for the booking.
    pub reference: Option<Text>,
    /// Lines of another booking that are given back in exchange.
    pub exchange: Option<GivenAsk<'a>>,
}

impl Engine {
    /// Begins payment: pins the hold, opens a booking, and asks the provider for an intent that the
    /// buyer pays. Needs an idempotency key. In exchange for lines of another booking only the
    /// difference is paid: they are given back in the commit that sells the hold.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`; every rejection of model.md 4 for *checkout*; those of
    /// [`Engine::exchange`], `Invalid` when it costs no more, `PaymentInProgress` while the money of
    /// the lines is not taken; [`EngineError::Provider`] when the provider did not make the intent yet:
    /// the hold is pinned all the same, and the same request again goes on.
    ///
    /// # Cancel safety
    /// Dropped, payment may have begun: ask again with the same key.
    pub async fn checkout(
        &self,
        call: &Call,
        hold: HoldId,
        ask: CheckoutAsk<'_>,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        if self.provider().is_none() {
            let text = "no payment provider is set here: confirm the hold instead".to_owned();
            return Err(Rejection::from(Invalid::new("checkout", text)).into());
        }
        let on = self.on_hold(call, hold, ask.fence)?;
        let exchange = match &ask.exchange {
            Some(given) => Some(self.given_lines(call, given).await?),
            None => None,
        };
        let command = Command::Checkout {
            on,
            booking: self.parts.ids.booking(),
            reference: ask.reference,
            exchange,
        };
        let begun = self.reply(self.submit(call, command).await?)?;
        let booking = BookingId::from_bytes(begun.stored.subject);
        let intent = self.to_be_paid(booking).await.map_err(StepError::told)?;
        Ok(Reply {
            intent: Some(intent),
            ..begun
        })
    }

    /// Ends a payment that the buyer gave up: the hold is as the event's policy says after a failed
    /// payment, and the intent is cancelled. With `booking`, that payment alone: asked again late, it
    /// ends no later one.
    ///
    /// # Errors
    /// As [`Engine::release`].
    ///
    /// # Cancel safety
    /// Dropped, it may have been given up: repeat.
    pub async fn abandon(
        &self,
        call: &Call,
        hold: HoldId,
        fence: Option<Fence>,
        booking: Option<BookingId>,
    ) -> Result<Reply, EngineError> {
        let on = self.on_hold(call, hold, fence)?;
        self.reply(self.submit(call, Command::Abandon { on, booking }).await?)
    }

    /// Refunds money of a booking that keeps its units. Needs an idempotency key.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`, `BookingNotFound`, `BookingNotConfirmed` when there is no money,
    /// `Invalid` when it is more than is left, or no amount that the provider moves.
    ///
    /// # Cancel safety
    /// Dropped, it may be on its way: ask again with the same key.
    pub async fn refund(
        &self,
        call: &Call,
        booking: BookingId,
        amount: Amount,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        let event = self.event_of_booking(booking).await;
        if let (Some(provider), Some(event)) = (self.provider(), event) {
            let refundable = provider.require_refundable(event.currency, amount);
            refundable.map_err(|why| Rejection::from(Invalid::new("amount", why)))?;
        }
        let command = Command::Refund { booking, amount };
        self.reply(self.submit(call, command).await?)
    }

    /// Records that staff settled elsewhere what is still to go back, all of it: the provider is not asked for it any
    /// more. Needs an idempotency key.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`, `BookingNotFound`, `BookingNotConfirmed` when there is no money,
    /// `Invalid` when something else is to go back, or nothing.
    ///
    /// # Cancel safety
    /// Dropped, it may be recorded: ask again with the same key.
    pub async fn settle_refund(
        &self,
        call: &Call,
        booking: BookingId,
        amount: Amount,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        let command = Command::SettleRefund { booking, amount };
        let settled = self.reply(self.submit(call, command).await?)?;
        let (by, request, amount) = (call.caller.id(), &call.request, amount.minor());
        tracing::info!(%booking, amount, %by, %request, "staff settled a refund elsewhere");
        Ok(settled)
    }
}
