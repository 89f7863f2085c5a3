//! An operator's correction of the ledger's clock: it goes back, and with it the end of every hold. Only
//! its commits may have an earlier time than those before them.

use super::Inventory;
use super::work::Work;
use crate::unit::{Owner, Step};
use crate::{
    Answer, Applied, BookingId, Cause, EventNo, HoldId, Invalid, Line, LineState, Origin,
    Rejection, Span, Text, Timestamp, UnitNo, UnitState,
};

impl Inventory {
    /// Sets the ledger's clock back by `by`, to `now`, so that every hold keeps the time it has
    /// left. Every event gets a commit that says so: one step of each held unit, or of one unit
    /// that stays as it is. No command, since a running server has shown the later time.
    ///
    /// # Errors
    /// `BookingNotFound` when [`Inventory::marked_booking`] is not in memory; then nothing changed.
    pub fn correct_clock(
        &mut self,
        now: Timestamp,
        by: Span,
        origin: &Origin,
    ) -> Result<Applied, Rejection> {
        let mut work = Work::new(now, origin);
        work.reason = Some(reason(by)?);
        let events: Vec<EventNo> = self.events().map(|event| event.no).collect();
        for event in &events {
            if self.live_holds(*event) == 0 {
                self.require_owner(*event)?;
            }
        }
        self.clock = now;
        let mut corrected = 0;
        for event in events {
            let book = self.book_mut(event);
            book.open_at = book.open_at.minus(by);
            let holds: Vec<HoldId> = book.ends.iter().map(|(_, id)| *id).collect();
            for hold in &holds {
                self.set_back(&mut work, *hold, by);
            }
            if holds.is_empty() {
                self.mark(&mut work, event);
            }
            corrected += holds.len();
        }
        Ok(work.finish(self, Answer::ClockCorrected(corrected)))
    }

    /// Returns the booking that must be in memory before the clock is corrected: that of the unit
    /// which shows the correction, in an event that is sold out.
    pub fn marked_booking(&self, event: EventNo) -> Option<BookingId> {
        if self.live_holds(event) > 0 {
            return None;
        }
        match self.marked(event) {
            Some((_, UnitState::Sold(booking))) => Some(booking),
            Some((_, UnitState::Free | UnitState::Held { .. } | UnitState::Blocked)) | None => None,
        }
    }

    fn require_owner(&self, event: EventNo) -> Result<(), Rejection> {
        match self.marked_booking(event) {
            Some(booking) if self.booking(booking).is_none() => Err(Rejection::BookingNotFound),
            Some(_) | None => Ok(()),
        }
    }

    /// Finds the unit that shows it in an event without live holds: one that is not sold, if any.
    fn marked(&self, event: EventNo) -> Option<(UnitNo, UnitState)> {
        let units = self.seating(event)?.units();
        let mut numbered = (0..).map(UnitNo).zip(units.iter().map(|unit| unit.state));
        let first = numbered.next()?;
        let is_sold = |state: UnitState| matches!(state, UnitState::Sold(_));
        if !is_sold(first.1) {
            return Some(first);
        }
        let other = numbered.find(|(_, state)| !is_sold(*state));
        Some(other.unwrap_or(first))
    }

    fn set_back(&mut self, work: &mut Work<'_>, id: HoldId, by: Span) {
        self.change_hold(work, id, |this, work, hold| {
            hold.expires_at = hold.expires_at.minus(by);
            hold.max_expires_at = hold.max_expires_at.minus(by);
            this.restate_units(work, hold, Cause::ClockCorrected);
        });
    }

    fn mark(&mut self, work: &mut Work<'_>, event: EventNo) {
        let Some((unit, state)) = self.marked(event) else {
            return;
        };
        let step = Step {
            to: state,
            fence: self.unit_fence(event, unit),
            cause: Cause::ClockCorrected,
            by: state.into(),
        };
        let version = self.step(work, event, unit, step);
        let Owner::Booking(booking) = step.by else {
            return;
        };
        let lines = &mut self.booking_mut(work, booking).lines;
        let is_sold = |line: &&mut Line| line.unit == unit && line.state == LineState::Sold;
        for line in lines.iter_mut().filter(is_sold) {
            line.version = version;
        }
    }
}

/// Writes the reason of the commits, which the auditor parses.
fn reason(by: Span) -> Result<Text, Rejection> {
    let text = format!("the clock is set back by {} ms", by.ms());
    Text::parse(&text).map_err(|error| Invalid::new("by", error.to_string()).into())
}
