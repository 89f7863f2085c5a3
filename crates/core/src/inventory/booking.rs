//! What happens to bookings: box-office sale, cancel by line, exchange.

use super::Inventory;
use super::work::Work;
use crate::limits::UNITS_PER_STAFF_COMMAND_MAX;
use crate::unit::Step;
use crate::{
    Amount, Answer, Authority, Booking, BookingId, BookingState, Cause, Effect, EventNo, Holder,
    Invalid, Line, LineChoice, LineState, OnHold, PaymentState, Rejection, Selection, Text, UnitNo,
    UnitState,
};

/// For whom units are sold without a hold.
pub(super) struct Buyer {
    pub(super) booking: BookingId,
    pub(super) holder: Holder,
    pub(super) reference: Option<Text>,
}

impl Inventory {
    pub(super) fn sell(
        &mut self,
        work: &mut Work<'_>,
        event: EventNo,
        selection: &Selection,
        buyer: Buyer,
    ) -> Result<Answer, Rejection> {
        let book = self.book(event)?;
        book.event.require_on_sale(work.now)?;
        require_staff_count(selection)?;
        let units = self.claim_named(book, work.now, selection, &buyer.holder)?;
        let priced = super::hold::held_units(book, &units);
        self.end_overdue_holds(work, event, &units);
        let fence = self.next_fence(event, &units);
        let mut lines = Vec::with_capacity(units.len());
        for held in priced {
            let to = UnitState::Sold(buyer.booking);
            let step = Step {
                to,
                fence,
                cause: Cause::SoldDirectly,
                hold: None,
            };
            let version = self.step(work, event, held.unit, step);
            let (unit, price, state) = (held.unit, held.price, LineState::Sold);
            lines.push(Line {
                unit,
                price,
                version,
                state,
            });
        }
        self.book_mut(event)
            .count_bought(&buyer.holder, count(lines.len()));
        let booking = Booking {
            id: buyer.booking,
            event,
            holder: buyer.holder,
            hold: None,
            state: BookingState::Confirmed,
            fence,
            lines,
            reference: buyer.reference,
            payment: None,
            created_at: work.now,
            confirmed_at: Some(work.now),
        };
        self.add_booking(work, booking.clone());
        Ok(Answer::Booked(booking))
    }

    pub(super) fn cancel(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        by: Authority,
        choice: &LineChoice,
    ) -> Result<Answer, Rejection> {
        let booking = self.require_booking(id, by)?;
        require_sold(booking)?;
        self.require_before_deadline(work, booking, by)?;
        let units = self.chosen_lines(booking, choice)?;
        let back = self.give_back(work, id, &units, Cause::Cancelled);
        self.refund(work, id, back);
        Ok(Answer::Booking(self.booking_mut(id).clone()))
    }

    /// Owners may cancel until the event's deadline, staff always.
    fn require_before_deadline(
        &self,
        work: &Work<'_>,
        booking: &Booking,
        by: Authority,
    ) -> Result<(), Rejection> {
        match self.book(booking.event)?.event.policy.cancel_until {
            Some(until) if until <= work.now && by != Authority::Staff => {
                Err(Rejection::CancelClosed(until))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The sold lines that are meant, sorted and distinct.
    fn chosen_lines(
        &self,
        booking: &Booking,
        choice: &LineChoice,
    ) -> Result<Vec<UnitNo>, Rejection> {
        let sold = || {
            booking
                .lines
                .iter()
                .filter(|line| line.state == LineState::Sold)
        };
        let LineChoice::Some { units, places } = choice else {
            return Ok(sold().map(|line| line.unit).collect());
        };
        let chart = &self.book(booking.event)?.event.chart;
        let name = |unit: &UnitNo| chart.unit_name(*unit).to_string();
        let (of_booking, foreign): (Vec<UnitNo>, Vec<UnitNo>) = units
            .iter()
            .partition(|unit| booking.line(**unit).is_some());
        if !foreign.is_empty() {
            return Err(Rejection::UnknownUnit(foreign.iter().map(name).collect()));
        }
        let is_sold = |unit: &UnitNo| sold().any(|line| line.unit == *unit);
        let (mut chosen, gone): (Vec<UnitNo>, Vec<UnitNo>) =
            of_booking.iter().partition(|u| is_sold(u));
        if !gone.is_empty() {
            return Err(Rejection::AlreadyCancelled(gone));
        }
        for (area, quantity) in places.areas() {
            let of_area = sold()
                .map(|line| line.unit)
                .filter(|unit| chart.area_no_of(*unit) == Some(*area) && !units.contains(unit));
            let wanted = UnitNo(*quantity).index();
            let found: Vec<UnitNo> = of_area.take(wanted).collect();
            if found.len() != wanted {
                let id = chart
                    .area(*area)
                    .map(|area| area.id.to_string())
                    .unwrap_or_default();
                return Err(Rejection::UnknownUnit(vec![id]));
            }
            chosen.extend(found);
        }
        if chosen.is_empty() {
            return Err(Invalid::new("units", "name at least one line".to_owned()).into());
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }

    /// Frees sold lines and tells what they had cost.
    fn give_back(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        units: &[UnitNo],
        cause: Cause,
    ) -> Amount {
        let mut booking = self
            .bookings
            .remove(&id)
            .expect("the command looked it up before");
        let mut back = Vec::with_capacity(units.len());
        let meant = |line: &&mut Line| {
            line.state == LineState::Sold && units.binary_search(&line.unit).is_ok()
        };
        for line in booking.lines.iter_mut().filter(meant) {
            let fence = self.unit_fence(booking.event, line.unit).next();
            let step = Step {
                to: UnitState::Free,
                fence,
                cause,
                hold: None,
            };
            line.version = self.step(work, booking.event, line.unit, step);
            line.state = LineState::Cancelled;
            back.push(line.price);
        }
        self.book_mut(booking.event)
            .count_given_back(&booking.holder, count(back.len()));
        let any_sold = booking
            .lines
            .iter()
            .any(|line| line.state == LineState::Sold);
        booking.state = if any_sold {
            BookingState::PartlyCancelled
        } else {
            BookingState::Cancelled
        };
        self.bookings.insert(id, booking);
        work.changed_booking(id);
        Amount::sum(back.into_iter())
    }

    /// Money that was paid through the provider goes back through it.
    fn refund(&self, work: &mut Work<'_>, booking: BookingId, amount: Amount) {
        let paid = self
            .bookings
            .get(&booking)
            .and_then(|booking| booking.payment);
        let has_money =
            paid.is_some_and(|state| state.has_money() || state == PaymentState::PartlyRefunded);
        if has_money && amount > Amount::ZERO {
            work.effects.push(Effect::Refund { booking, amount });
        }
    }

    pub(super) fn exchange(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        give: &[UnitNo],
        on: OnHold,
    ) -> Result<Answer, Rejection> {
        let booking = self.require_booking(id, on.by)?;
        require_sold(booking)?;
        let hold = self.require_hold(on.hold, on.by)?;
        hold.require_active(work.now, on.fence)?;
        if hold.event != booking.event {
            let text = "the hold is of another event than the booking".to_owned();
            return Err(Invalid::new("hold", text).into());
        }
        let choice = LineChoice::Some {
            units: give.to_vec(),
            places: Selection::default(),
        };
        let units = self.chosen_lines(booking, &choice)?;
        let old = units
            .iter()
            .filter_map(|unit| booking.line(*unit))
            .map(|line| line.price);
        let (old, new) = (Amount::sum(old), hold.total());
        if new > old {
            return Err(Rejection::PaymentRequired);
        }
        self.give_back(work, id, &units, Cause::Exchanged);
        let lines = self.sell_hold(work, on.hold, id, Cause::Exchanged);
        let any_left = {
            let booking = self.booking_mut(id);
            booking.lines.retain(|line| {
                line.state != LineState::Cancelled || units.binary_search(&line.unit).is_err()
            });
            booking.lines.extend(lines);
            booking.lines.sort_by_key(|line| line.unit);
            booking
                .lines
                .iter()
                .any(|line| line.state == LineState::Cancelled)
        };
        let booking = self.booking_mut(id);
        booking.state = if any_left {
            BookingState::PartlyCancelled
        } else {
            BookingState::Confirmed
        };
        let difference = old.checked_sub(new).unwrap_or_default();
        self.refund(work, id, difference);
        Ok(Answer::Booking(self.booking_mut(id).clone()))
    }
}

/// Passes a booking whose lines own units.
fn require_sold(booking: &Booking) -> Result<(), Rejection> {
    match booking.state {
        BookingState::Confirmed | BookingState::PartlyCancelled => Ok(()),
        BookingState::Cancelled => Err(Rejection::AlreadyCancelled(
            booking.lines.iter().map(|line| line.unit).collect(),
        )),
        BookingState::PendingPayment
        | BookingState::Failed
        | BookingState::Expired
        | BookingState::NeedsRefund
        | BookingState::Refunded => Err(Rejection::BookingNotConfirmed),
    }
}

/// Passes a number of units that staff may name at once.
pub(super) fn require_staff_count(selection: &Selection) -> Result<(), Rejection> {
    let limit = count(UNITS_PER_STAFF_COMMAND_MAX);
    match selection.count() {
        0 => Err(Invalid::new("units", "name at least one unit".to_owned()).into()),
        named if named > limit => Err(Rejection::TooManyUnits { limit }),
        _ => Ok(()),
    }
}

fn count(units: usize) -> u32 {
    u32::try_from(units).unwrap_or(u32::MAX)
}
