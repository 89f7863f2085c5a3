//! Cancel: lines of a booking give their units back, each line once (model.md 5).

use super::Inventory;
use super::work::{KNOWN, Work};
use crate::number::{count, index};
use crate::unit::{Owner, Step};
use crate::{
    Amount, Answer, AreaNo, Authority, Booking, BookingId, BookingState, Cause, Chart, Invalid,
    LineChoice, LineState, Rejection, UnitNo, UnitState,
};

impl Inventory {
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
        let units = match choice {
            LineChoice::All => sold_units(booking).collect(),
            LineChoice::Some { units, places } => {
                let chart = &self.book(booking.event)?.event.chart;
                chosen_lines(chart, booking, units, places.areas())?
            }
        };
        let back = self.give_back(work, id, &units, Cause::Cancelled);
        self.refund(work, id, back);
        Ok(self.answer_booking(id))
    }

    /// Refuses owners from the event's deadline on, which is its start by default; never staff.
    pub(super) fn require_before_deadline(
        &self,
        work: &Work<'_>,
        booking: &Booking,
        by: Authority,
    ) -> Result<(), Rejection> {
        let event = &self.book(booking.event)?.event;
        match event.policy.cancel_until.of(event.starts_at) {
            Some(until) if until <= work.now && by != Authority::Staff => {
                Err(Rejection::CancelClosed(until))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Frees sold lines and returns what they had cost. `units` is sorted.
    pub(super) fn give_back(
        &mut self,
        work: &mut Work<'_>,
        id: BookingId,
        units: &[UnitNo],
        cause: Cause,
    ) -> Amount {
        self.remember_booking(id);
        let mut booking = self.bookings.remove(&id).expect(KNOWN);
        let mut back = Vec::with_capacity(units.len());
        for line in &mut booking.lines {
            if line.state != LineState::Sold || units.binary_search(&line.unit).is_err() {
                continue;
            }
            let step = Step {
                to: UnitState::Free,
                fence: self.unit_fence(booking.event, line.unit).next(),
                cause,
                by: Owner::Booking(id),
            };
            line.version = self.step(work, booking.event, line.unit, step);
            line.state = LineState::Cancelled;
            back.push(line.price);
        }
        self.remember_bought(booking.event, &booking.holder);
        self.book_mut(booking.event)
            .count_given_back(&booking.holder, count(back.len()));
        booking.state = if sold_units(&booking).next().is_some() {
            BookingState::PartlyCancelled
        } else {
            BookingState::Cancelled
        };
        self.bookings.insert(id, booking);
        work.changed_booking(id);
        Amount::sum(back.into_iter())
    }
}

/// Checks that a booking has lines that own units.
pub(super) fn require_sold(booking: &Booking) -> Result<(), Rejection> {
    match booking.state {
        BookingState::Confirmed | BookingState::PartlyCancelled => Ok(()),
        BookingState::Cancelled => Err(Rejection::AlreadyCancelled(booking.units())),
        BookingState::PendingPayment
        | BookingState::Failed
        | BookingState::Expired
        | BookingState::NeedsRefund
        | BookingState::Refunded => Err(Rejection::BookingNotConfirmed),
    }
}

/// Returns the units that a booking owns, in unit order.
pub(super) fn sold_units(booking: &Booking) -> impl Iterator<Item = UnitNo> {
    let sold = |line: &&crate::Line| line.state == LineState::Sold;
    booking.lines.iter().filter(sold).map(|line| line.unit)
}

/// Returns the units of the lines that are meant, sorted and distinct, all of them sold.
///
/// # Errors
/// `UnknownUnit` for what the booking never had, `AlreadyCancelled` for what it has no more,
/// `Invalid` when nothing is meant.
pub(super) fn chosen_lines<'a>(
    chart: &Chart,
    booking: &Booking,
    units: &[UnitNo],
    places: impl IntoIterator<Item = (&'a AreaNo, &'a u32)>,
) -> Result<Vec<UnitNo>, Rejection> {
    let mut chosen = units.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    let sold: Vec<UnitNo> = sold_units(booking).collect();
    let is_sold = |unit: &UnitNo| sold.binary_search(unit).is_ok();
    let lines = &booking.lines;
    let was_line = |unit: &UnitNo| lines.binary_search_by_key(unit, |line| line.unit).is_ok();
    let gone: Vec<UnitNo> = chosen.iter().copied().filter(|u| !is_sold(u)).collect();
    let (gone, foreign): (Vec<UnitNo>, Vec<UnitNo>) = gone.into_iter().partition(was_line);
    if !foreign.is_empty() {
        let name = |unit: &UnitNo| chart.unit_name(*unit).to_string();
        return Err(Rejection::UnknownUnit(foreign.iter().map(name).collect()));
    }
    if !gone.is_empty() {
        return Err(Rejection::AlreadyCancelled(gone));
    }
    let named = chosen.clone();
    for (area, quantity) in places {
        let of_area = sold.iter().copied().filter(|unit| {
            chart.area_no_of(*unit) == Some(*area) && named.binary_search(unit).is_err()
        });
        let wanted = index(*quantity);
        let before = chosen.len();
        chosen.extend(of_area.take(wanted));
        if chosen.len() - before != wanted {
            return Err(Rejection::UnknownUnit(vec![chart.area_name(*area)]));
        }
    }
    if chosen.is_empty() {
        return Err(Invalid::new("units", "name at least one line".to_owned()).into());
    }
    chosen.sort_unstable();
    Ok(chosen)
}
