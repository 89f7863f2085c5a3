//! Refunds: money goes back the way it came, never more than was paid, and each part once.

use super::Inventory;
use super::work::Work;
use crate::{
    Amount, Answer, Authority, BookingId, BookingState, Effect, Invalid, Payment, Rejection,
};

impl Inventory {
    /// Refunds money through the provider that it was paid through: never more than is left. After
    /// an exchange that cost more, some of it lies with the booking whose lines were given back.
    pub(super) fn refund(&mut self, work: &mut Work<'_>, id: BookingId, amount: Amount) {
        let payment = self.known_booking(id).payment.as_ref();
        let left = payment.map(|payment| payment.left());
        let mut next = left.map(|left| (id, amount.min(left)));
        while let Some((id, amount)) = next {
            let missing = amount.less(self.refund_own(work, id, amount));
            next = self.take_credit(work, id, missing);
        }
    }

    /// Refunds money of a booking's own payment, at most what is left of it; returns how much.
    fn refund_own(&mut self, work: &mut Work<'_>, id: BookingId, amount: Amount) -> Amount {
        let payment = self.known_booking(id).payment.as_ref();
        let left = payment.map_or(Amount::ZERO, |payment| payment.own_left());
        let amount = amount.min(left);
        if amount == Amount::ZERO {
            return amount;
        }
        let Some(payment) = &mut self.booking_mut(work, id).payment else {
            return Amount::ZERO;
        };
        payment.returned = Amount::sum([payment.returning(), amount].into_iter());
        let total = payment.returned;
        work.effects.push(Effect::Refund {
            booking: id,
            amount,
            total,
        });
        amount
    }

    /// Takes what a booking's own payment lacks from the booking whose lines were given back for it; returns
    /// which one, and how much.
    fn take_credit(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        missing: Amount,
    ) -> Option<(BookingId, Amount)> {
        let payment = self.known_booking(id).payment.as_ref()?;
        let source = payment.exchange.as_ref()?.booking;
        let taken = missing.min(payment.credit);
        if taken == Amount::ZERO {
            return None;
        }
        let payment = self.booking_mut(work, id).payment.as_mut()?;
        payment.credit = payment.credit.less(taken);
        let of_source = self.booking_mut(work, source).payment.as_mut()?;
        of_source.carried = of_source.carried.less(taken);
        Some((source, taken))
    }

    /// Refunds again the money that was sent back and bounced.
    pub(super) fn send_again(&mut self, work: &mut Work<'_>, id: BookingId) {
        let Some(payment) = &self.known_booking(id).payment else {
            return;
        };
        let total = payment.returned;
        let amount = total.less(payment.gone_back());
        if amount > Amount::ZERO {
            work.effects.push(Effect::Refund {
                booking: id,
                amount,
                total,
            });
        }
    }

    /// Refunds money of a booking that keeps its units, for staff.
    pub(super) fn send_money_back(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        amount: Amount,
    ) -> Result<Answer, Rejection> {
        let left = self.require_money(id)?.left();
        if left == Amount::ZERO {
            let text = "nothing is left that could go back".to_owned();
            return Err(Invalid::new("amount", text).into());
        }
        if amount <= Amount::ZERO || amount > left {
            let text = format!("between 1 and {} can go back", left.minor());
            return Err(Invalid::new("amount", text).into());
        }
        self.refund(work, id, amount);
        Ok(self.answer_booking(id))
    }

    /// Notes that staff settled elsewhere what is still to go back. They name the amount, which another refund may
    /// have raised meanwhile.
    pub(super) fn settle_refund(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        amount: Amount,
    ) -> Result<Answer, Rejection> {
        let owed = self.require_money(id)?.owed();
        if owed == Amount::ZERO || amount != owed {
            let text = format!("what is still to go back is {}", owed.minor());
            return Err(Invalid::new("amount", text).into());
        }
        let booking = self.booking_mut(work, id);
        if booking.state == BookingState::NeedsRefund {
            booking.state = BookingState::Refunded;
        }
        if let Some(payment) = &mut booking.payment {
            payment.elsewhere = Amount::sum([payment.elsewhere, owed].into_iter());
        }
        Ok(self.answer_booking(id))
    }

    /// Returns the payment of a booking, for staff, if its money came.
    fn require_money(&self, id: BookingId) -> Result<&Payment, Rejection> {
        let booking = self.require_booking(id, Authority::Staff)?;
        let payment = booking.payment.as_deref();
        let come = payment.filter(|payment| payment.state.has_come());
        come.ok_or(Rejection::BookingNotConfirmed)
    }
}
