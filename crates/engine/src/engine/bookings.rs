//! Bookings: confirm, cancel, box-office sale, and reading them.

use soldonce_core::{
    Authority, Booking, BookingId, Chart, Command, Difference, EventId, Fence, GivenLines, HoldId,
    HolderName, Invalid, LineChoice, Rejection, Text,
};

use super::{Engine, EngineError, ListPage, NamedUnits, Reply};
use crate::caller::{Call, HoldSecret};
use crate::limits::LIST_MAX;
use crate::reply;

/// Lines of a booking to give back in exchange.
#[derive(Clone, Debug)]
pub struct GivenAsk<'a> {
    pub booking: BookingId,
    /// Which lines, places by their ids.
    pub release: NamedUnits<'a>,
}

/// A request to swap lines of a booking for the units of a hold.
#[derive(Clone, Debug)]
pub struct ExchangeAsk<'a> {
    /// The lines to give back.
    pub given: GivenAsk<'a>,
    /// The hold with the new units.
    pub hold: HoldId,
    /// The fence of the hold that the caller knows.
    pub fence: Option<Fence>,
}

/// A request to sell free units at once.
#[derive(Clone, Debug)]
pub struct SellAsk<'a> {
    pub units: NamedUnits<'a>,
    pub holder: Option<HolderName>,
    /// The caller's own text for it.
    pub reference: Option<Text>,
}

impl Engine {
    /// Turns a hold into a booking without a provider. Needs an idempotency key.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`; every rejection of model.md 5 for *confirm*; `PaymentRequired` when a
    /// shopper confirms what costs something, unless the operator gives it away
    /// ([`Engine::with_free_sales`]).
    ///
    /// # Cancel safety
    /// Dropped, the booking may have been made: ask again with the same key.
    pub async fn confirm(
        &self,
        call: &Call,
        hold: HoldId,
        fence: Option<Fence>,
        reference: Option<Text>,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        let on = self.on_hold(call, hold, fence)?;
        let booking = self.parts.ids.booking();
        let command = if self.is_vouched(&call.caller) {
            Command::Confirm {
                on,
                booking,
                reference,
            }
        } else {
            Command::ConfirmFree {
                on,
                booking,
                reference,
            }
        };
        let done = self.submit(call, command).await;
        self.parts.metrics.confirmed(done.as_ref());
        self.reply(done?)
    }

    /// Sells free units at once.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`; every rejection of model.md 3 for FREE > SOLD.
    ///
    /// # Cancel safety
    /// Dropped, the booking may have been made: ask again with the same key.
    pub async fn sell(
        &self,
        call: &Call,
        event: &EventId,
        ask: SellAsk<'_>,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        let event = self.live(event).await?.event();
        let selection = ask.units.wanted(&event.chart)?;
        let holder = call.caller.holder(ask.holder)?;
        let (event, booking, reference) = (event.no, self.parts.ids.booking(), ask.reference);
        let command = Command::Sell {
            event,
            selection,
            holder,
            booking,
            reference,
        };
        self.reply(self.submit(call, command).await?)
    }

    /// Cancels lines of a booking; nothing named means all. Needs an idempotency key.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`, `BookingNotFound`, `AlreadyCancelled`, `CancelClosed`,
    /// `UnknownUnit`.
    ///
    /// # Cancel safety
    /// Dropped, the lines may be cancelled: ask again with the same key.
    pub async fn cancel(
        &self,
        call: &Call,
        id: BookingId,
        units: &NamedUnits<'_>,
    ) -> Result<Reply, EngineError> {
        require_key(call)?;
        let (found, by) = self.own_booking(call, call.booking_proof(), id).await?;
        let lines = if units.is_empty() {
            LineChoice::All
        } else {
            let (units, places) = units.owned(&self.event_of(found.event)?.chart)?;
            LineChoice::Some { units, places }
        };
        let command = Command::Cancel {
            booking: id,
            by,
            lines,
        };
        self.reply(self.submit(call, command).await?)
    }

    /// Swaps lines of a booking for the units of a hold, in one commit; what these cost less is
    /// refunded. Needs an idempotency key. What they cost more takes a checkout of the hold
    /// ([`Engine::checkout`]); without a payment provider, a caller with a key vouches for it.
    ///
    /// # Errors
    /// `IdempotencyKeyMissing`, `BookingNotFound`, `HoldNotFound` and why the hold cannot be used,
    /// `PaymentRequired` when they cost more, `AlreadyCancelled`, `CancelClosed`, `UnknownUnit`.
    ///
    /// # Cancel safety
    /// Dropped, they may be swapped: ask again with the same key.
    pub async fn exchange(&self, call: &Call, ask: ExchangeAsk<'_>) -> Result<Reply, EngineError> {
        require_key(call)?;
        let on = self.on_hold(call, ask.hold, ask.fence)?;
        let given = self.given_lines(call, &ask.given).await?;
        let difference = if self.provider().is_none() && self.is_vouched(&call.caller) {
            Difference::Vouched
        } else {
            Difference::Unpaid
        };
        let command = Command::Exchange {
            given,
            on,
            difference,
        };
        self.reply(self.submit(call, command).await?)
    }

    /// Finds the lines, by their units, of a booking that the caller may act on. The right to a
    /// hold is not enough: its secret proves that hold, and no booking of the same holder.
    pub(super) async fn given_lines(
        &self,
        call: &Call,
        ask: &GivenAsk<'_>,
    ) -> Result<GivenLines, EngineError> {
        let secret = call.booking_secret.as_ref();
        let (found, _) = self.own_booking(call, secret, ask.booking).await?;
        Ok(lines_of(ask, &self.event_of(found.event)?.chart)?)
    }

    /// Returns a booking as it is stored, with its secret.
    ///
    /// # Errors
    /// `BookingNotFound`, also for a foreign one.
    pub async fn booking(&self, call: &Call, id: BookingId) -> Result<Reply, EngineError> {
        let (booking, _) = self.own_booking(call, call.booking_proof(), id).await?;
        let event = self.event_of(booking.event)?;
        Ok(self.answered(reply::booking(&event, &booking)))
    }

    /// Lists the caller's bookings of one holder, newest first, a page at a time.
    ///
    /// # Errors
    /// `Invalid` when a shopper names a holder or a key does not.
    pub async fn bookings_of(
        &self,
        call: &Call,
        holder: Option<HolderName>,
        after: Option<BookingId>,
    ) -> Result<ListPage<BookingId>, EngineError> {
        let holder = call.caller.holder(holder)?;
        let bookings = self.parts.ledger.bookings_of(holder, (after, LIST_MAX));
        let bookings = bookings.await?;
        let mut found = Vec::with_capacity(bookings.len());
        for booking in &bookings {
            found.push(reply::booking(&*self.event_of(booking.event)?, booking));
        }
        let last = bookings.get(LIST_MAX - 1);
        Ok(ListPage {
            found,
            next: last.map(|booking| booking.id),
            seq: None,
        })
    }

    /// Returns a booking that the caller may see, and by what right. `secret` is the booking's or
    /// its hold's; one that is sent must be right.
    async fn own_booking(
        &self,
        call: &Call,
        secret: Option<&HoldSecret>,
        id: BookingId,
    ) -> Result<(Booking, Authority), EngineError> {
        let missing = || EngineError::from(Rejection::BookingNotFound);
        let booking = self.parts.ledger.booking(id).await?.ok_or_else(missing)?;
        let by = match (secret, booking.hold) {
            (None, _) => call.caller.authority(),
            (Some(HoldSecret(text)), _) if self.parts.secrets.opens_booking(id, text) => {
                call.caller.authority_by_secret()
            }
            (Some(_), None) => return Err(missing()),
            (Some(secret), Some(hold)) if !self.opens(secret, hold) => return Err(missing()),
            (Some(_), Some(_)) => call.caller.authority_by_secret(),
        };
        let may_act = by.may_act_for(&booking.holder);
        may_act.then_some((booking, by)).ok_or_else(missing)
    }
}

fn lines_of(ask: &GivenAsk<'_>, chart: &Chart) -> Result<GivenLines, Rejection> {
    let (units, places) = ask.release.owned(chart)?;
    if places.count() > 0 {
        let text = "name each place by its id, such as `floor.17`".to_owned();
        return Err(Invalid::new("release", text).into());
    }
    let booking = ask.booking;
    Ok(GivenLines { booking, units })
}

pub(super) fn require_key(call: &Call) -> Result<(), Rejection> {
    if call.key.is_some() {
        Ok(())
    } else {
        Err(Rejection::IdempotencyKeyMissing)
    }
}
