//! What the tables say beside the audit: unit rows, holds and bookings must all tell of the same
//! units, in the state in which the audit leaves them (I3, I20).

use std::collections::BTreeMap;

use rusqlite::Connection;
use soldonce_core::{
    Booking, BookingState, Event, EventNo, HeldUnit, Hold, HoldTerms, LineState, Unit, UnitNo,
    UnitState,
};

use super::VerifyReport;
use super::walk::UnitsLeft;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::{bookings, holds, units};

/// A unit of the ledger.
type Place = (EventNo, UnitNo);

/// The units of all events as their rows say, and who is to have them.
pub(super) struct Books<'a> {
    events: &'a [Event],
    terms: BTreeMap<EventNo, Vec<HoldTerms>>,
    live: Vec<Hold>,
    rows: BTreeMap<Place, Row>,
}

/// A unit row, and whether its owner was met.
struct Row {
    unit: Unit,
    is_owned: bool,
}

impl<'a> Books<'a> {
    pub(super) fn new(events: &'a [Event]) -> Self {
        Self {
            events,
            terms: BTreeMap::new(),
            live: Vec::new(),
            rows: BTreeMap::new(),
        }
    }

    /// Reads all holds: the terms of each for the auditor, and those that are not over whole.
    pub(super) fn read_holds(
        &mut self,
        connection: &Connection,
        report: &mut VerifyReport,
    ) -> Result<(), Fault> {
        holds::each(connection, |hold| match hold {
            Ok(hold) => {
                report.holds += 1;
                let terms = HoldTerms::from(&hold);
                self.terms.entry(hold.event).or_default().push(terms);
                if !hold.state.is_terminal() {
                    self.live.push(hold);
                }
            }
            Err(fault) => report.fault(None, &fault),
        })
    }

    /// The terms of the holds of an event.
    pub(super) fn take_terms(&mut self, event: EventNo) -> Vec<HoldTerms> {
        self.terms.remove(&event).unwrap_or_default()
    }

    /// The unit rows of an event are what its audit leaves.
    pub(super) fn check_units(
        &mut self,
        connection: &Connection,
        event: &Event,
        left: &UnitsLeft,
        report: &mut VerifyReport,
    ) -> Result<(), Fault> {
        units::each_of(connection, event.no, |row| match row {
            Err(fault) => report.fault(Some(event), &fault),
            Ok(row) => {
                report.units += 1;
                let audited = left.get(&row.no);
                if audited != Some(&row.unit) {
                    let detail = format!("the row says {:?}, the audit {audited:?}", row.unit);
                    find(report, event, row.no, "I3 stored state", &detail);
                }
                let (unit, is_owned) = (row.unit, !has_owner(row.unit.state));
                self.rows.insert((event.no, row.no), Row { unit, is_owned });
            }
        })?;
        for no in left.keys() {
            if !self.rows.contains_key(&(event.no, *no)) {
                let detail = "the audit knows it, and it has no row";
                find(report, event, *no, "I3 stored state", detail);
            }
        }
        Ok(())
    }

    /// A hold that is not over has exactly its units, until its end and under its fence.
    pub(super) fn check_holds(&mut self, report: &mut VerifyReport) {
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

    /// A booking has exactly the units of its sold lines.
    pub(super) fn check_bookings(
        &mut self,
        connection: &Connection,
        report: &mut VerifyReport,
    ) -> Result<(), Fault> {
        bookings::each_whole(connection, |booking| match booking {
            Ok(booking) => self.booking(&booking, report),
            Err(fault) => report.fault(None, &fault),
        })
    }

    fn booking(&mut self, booking: &Booking, report: &mut VerifyReport) {
        report.bookings += 1;
        let Some(event) = self.event(booking.event) else {
            return;
        };
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

    /// Whatever is held or sold and belongs to nobody.
    pub(super) fn check_ownerless(&self, report: &mut VerifyReport) {
        for ((event, no), row) in self.rows.iter().filter(|(_, row)| !row.is_owned) {
            if let Some(event) = self.event(*event) {
                let detail = format!("{:?}, and there is no such owner", row.unit.state);
                find(report, event, *no, "I3 hold and unit", &detail);
            }
        }
    }

    fn event(&self, event: EventNo) -> Option<&'a Event> {
        self.events.get(event.index())
    }

    /// The unit of which an owner was met.
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
