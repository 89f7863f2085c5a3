//! Checks the tables against the audit: unit rows, holds and bookings must all refer to the same
//! units, in the state after their last audit row (I3, I20).

use std::collections::BTreeMap;

use soldonce_core::{
    Amount, Booking, BookingId, BookingState, Cause, Event, EventNo, Fence, HeldUnit, Hold,
    HoldTerms, LineState, Unit, UnitNo, UnitState,
};

use super::VerifyReport;
use super::walk::{Ends, HoldEnd};

/// A unit of the ledger, by event and number.
type Place = (EventNo, UnitNo);

/// The unit rows of some events, and the holds and bookings that own units.
#[derive(Default)]
pub(crate) struct Books<'a> {
    events: BTreeMap<EventNo, &'a Event>,
    /// The holds of each event, also those that are over.
    stated: BTreeMap<EventNo, Vec<HoldRow>>,
    live: Vec<Hold>,
    rows: BTreeMap<Place, Row>,
    shared: BTreeMap<BookingId, SharedMoney>,
}

/// The row of a hold without its units.
struct HoldRow {
    terms: HoldTerms,
    state: &'static str,
    fence: Fence,
}

/// A unit row, and whether its owner was found; true if it needs none.
struct Row {
    unit: Unit,
    is_owned: bool,
}

/// The money of a booking that belongs to others since an exchange: by its row, and by theirs.
#[derive(Default, PartialEq, Eq)]
struct SharedMoney {
    event: Option<EventNo>,
    carried: Amount,
    credits: Amount,
}

impl<'a> Books<'a> {
    pub(crate) fn new(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let events = events.into_iter().map(|event| (event.no, event));
        Self {
            events: events.collect(),
            ..Self::default()
        }
    }

    /// Adds a hold: its terms for the auditor, and the whole of it if it is not over.
    pub(crate) fn add_hold(&mut self, hold: Hold, report: &mut VerifyReport) {
        // The row of a dropped event is still to be deleted.
        if self.event(hold.event).is_none() {
            return;
        }
        report.holds += 1;
        let stated = HoldRow {
            terms: HoldTerms::from(&hold),
            state: hold.state.as_str(),
            fence: hold.fence,
        };
        self.stated.entry(hold.event).or_default().push(stated);
        if !hold.state.is_terminal() {
            self.live.push(hold);
        }
    }

    /// Lists the terms of the holds of an event.
    pub(crate) fn terms(&self, event: EventNo) -> Vec<HoldTerms> {
        let stated = self.stated.get(&event).into_iter().flatten();
        stated.map(|stated| stated.terms.clone()).collect()
    }

    /// Checks that the row of a unit has the state after its last audit row.
    pub(crate) fn check_unit(
        &mut self,
        event: &Event,
        (no, unit): (UnitNo, Unit),
        left: &Ends,
        report: &mut VerifyReport,
    ) {
        report.units += 1;
        let audited = left.units.get(&no).copied().unwrap_or_default();
        if audited != unit {
            let detail = format!("the row says {unit:?}, the audit {audited:?}");
            find(report, event, no, "I3 stored state", &detail);
        }
        let is_owned = !has_owner(unit.state);
        self.rows.insert((event.no, no), Row { unit, is_owned });
    }

    /// Checks that every unit in the audit has a row.
    pub(crate) fn check_rows(&self, event: &Event, left: &Ends, report: &mut VerifyReport) {
        for no in left.units.keys() {
            if !self.rows.contains_key(&(event.no, *no)) {
                let detail = "the audit knows it, and it has no row";
                find(report, event, *no, "I3 stored state", detail);
            }
        }
    }

    /// Checks that the holds of an event have the state and the fence of their last audit rows.
    pub(crate) fn check_stated(&mut self, event: &Event, left: &Ends, report: &mut VerifyReport) {
        for HoldRow {
            terms,
            state,
            fence,
        } in self.stated.remove(&event.no).unwrap_or_default()
        {
            let said = match left.holds.get(&terms.id) {
                None => "no unit was ever held by it".to_owned(),
                Some(left) if !leaves(left.cause, state) => {
                    let cause = left.cause.as_str();
                    format!("it is {state}, but its units were {cause} last")
                }
                Some(HoldEnd { fence: audited, .. }) if *audited != fence => {
                    format!("its fence is {}, the audit says {}", fence.0, audited.0)
                }
                Some(_) => continue,
            };
            let detail = format!("{}: {said}", terms.id);
            report.find(Some(event), "I20 hold and audit", detail);
        }
    }

    /// Checks that the units of each live hold are held by it, until its end and under its fence.
    pub(crate) fn check_holds(&mut self, report: &mut VerifyReport) {
        for hold in std::mem::take(&mut self.live) {
            for claimed in &hold.units {
                self.claimed(&hold, claimed, report);
            }
        }
    }

    fn claimed(&mut self, hold: &Hold, claimed: &HeldUnit, report: &mut VerifyReport) {
        let expected = Unit {
            state: UnitState::Held {
                hold: hold.id,
                until: hold.expires_at,
            },
            fence: hold.fence,
            version: claimed.version,
        };
        let unit = self.own((hold.event, claimed.unit));
        if unit != expected
            && let Some(event) = self.event(hold.event)
        {
            let detail = format!("{} is live, but the unit is {unit:?}", hold.id);
            find(report, event, claimed.unit, "I3 hold and unit", &detail);
        }
    }

    /// Checks that a booking's state fits its lines, and that its sold lines have their units.
    pub(crate) fn check_booking(&mut self, booking: &Booking, report: &mut VerifyReport) {
        let Some(event) = self.event(booking.event) else {
            return;
        };
        report.bookings += 1;
        self.add_shares(booking);
        let is_sold = |state: LineState| state == LineState::Sold;
        let any_sold = booking.lines.iter().any(|line| is_sold(line.state));
        if any_sold != booking.state.owns_units() {
            let state = booking.state.as_str();
            let detail = format!("{} is {state}, with sold lines: {any_sold}", booking.id);
            report.find(Some(event), "I3 booking", detail);
        }
        let all_sold = booking.lines.iter().all(|line| is_sold(line.state));
        if booking.state == BookingState::Confirmed && !all_sold {
            let detail = format!("{} is confirmed, not all of its lines sold", booking.id);
            report.find(Some(event), "I3 booking", detail);
        }
        for line in booking.lines.iter().filter(|line| is_sold(line.state)) {
            let unit = self.own((booking.event, line.unit));
            if unit.state != UnitState::Sold(booking.id) || unit.version != line.version {
                let detail = format!("{} has it as sold, but the unit is {unit:?}", booking.id);
                find(report, event, line.unit, "I1 booking and unit", &detail);
            }
        }
    }

    fn add_shares(&mut self, booking: &Booking) {
        let Some(payment) = &booking.payment else {
            return;
        };
        if payment.carried > Amount::ZERO {
            let shared = self.shared.entry(booking.id).or_default();
            shared.carried = payment.carried;
            shared.event = Some(booking.event);
        }
        if let Some(given) = payment.exchange.as_ref()
            && payment.credit > Amount::ZERO
        {
            let shared = self.shared.entry(given.booking).or_default();
            shared.credits = Amount::sum([shared.credits, payment.credit].into_iter());
            shared.event = Some(booking.event);
        }
    }

    /// Checks that the money that a booking carries for others is the sum of their credits.
    pub(crate) fn check_shares(&mut self, report: &mut VerifyReport) {
        for (id, shared) in std::mem::take(&mut self.shared) {
            if shared.carried != shared.credits {
                let (carried, credits) = (shared.carried.minor(), shared.credits.minor());
                let detail = format!("{id} carries {carried} for others, who count on {credits}");
                let event = shared.event.and_then(|event| self.event(event));
                report.find(event, "I17 exchanged money", detail);
            }
        }
    }

    /// Finds units that are held or sold without an owner.
    pub(crate) fn check_ownerless(&self, report: &mut VerifyReport) {
        for ((event, no), row) in self.rows.iter().filter(|(_, row)| !row.is_owned) {
            if let Some(event) = self.event(*event) {
                let detail = format!("{:?}, and there is no such owner", row.unit.state);
                find(report, event, *no, "I3 hold and unit", &detail);
            }
        }
    }

    fn event(&self, event: EventNo) -> Option<&'a Event> {
        self.events.get(&event).copied()
    }

    /// Marks a unit as owned and returns it; a default unit if it has no row.
    fn own(&mut self, place: Place) -> Unit {
        match self.rows.get_mut(&place) {
            Some(row) => {
                row.is_owned = true;
                row.unit
            }
            None => Unit::default(),
        }
    }
}

/// Tells whether a hold is in `state` if the last change of its units had this cause.
fn leaves(cause: Cause, state: &str) -> bool {
    let word = match cause {
        Cause::Held | Cause::Extended | Cause::Changed | Cause::Unpinned => "active",
        Cause::Pinned => "pinned",
        Cause::Released => "released",
        Cause::Expired => "expired",
        Cause::Revoked => "revoked",
        Cause::Confirmed | Cause::Exchanged => "consumed",
        Cause::ClockCorrected => return matches!(state, "active" | "pinned"),
        // These causes do not belong to a hold.
        Cause::SoldDirectly | Cause::Cancelled | Cause::Blocked | Cause::Unblocked => return true,
    };
    word == state
}

fn has_owner(state: UnitState) -> bool {
    match state {
        UnitState::Held { .. } | UnitState::Sold(_) => true,
        UnitState::Free | UnitState::Blocked => false,
    }
}

fn find(report: &mut VerifyReport, event: &Event, no: UnitNo, what: &str, detail: &str) {
    let name = event.chart.unit_name(no);
    report.find(Some(event), what, format!("unit {name}: {detail}"));
}
