//! What the tables say beside the audit: unit rows, holds and bookings must all tell of the same
//! units, in the state in which the audit leaves them (I3, I20).

use std::collections::BTreeMap;

use rusqlite::Connection;
use soldonce_core::{
    Booking, BookingId, BookingState, Event, Hold, HoldId, LineState, Unit, UnitNo, UnitState,
};

use super::VerifyReport;
use super::walk::UnitsLeft;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::{bookings, holds, units};

pub(super) fn check(
    connection: &Connection,
    event: &Event,
    left: &UnitsLeft,
    report: &mut VerifyReport,
) -> Result<(), Fault> {
    let mut books = Books {
        event,
        left,
        owners: Owners::default(),
        report,
    };
    units::each_of(connection, event.no, |row| match row {
        Ok(row) => books.unit(row.no, row.unit),
        Err(fault) => books.report.fault(Some(event), &fault),
    })?;
    books.missing_units();
    holds::each_of(connection, event.no, |hold| match hold {
        Ok(hold) => books.hold(&hold),
        Err(fault) => books.report.fault(Some(event), &fault),
    })?;
    bookings::each_of(connection, event.no, |booking| match booking {
        Ok(booking) => books.booking(&booking),
        Err(fault) => books.report.fault(Some(event), &fault),
    })?;
    books.ownerless();
    Ok(())
}

/// Units by who has them, as the unit rows say; taken off as their owners are met.
#[derive(Default)]
struct Owners {
    rows: BTreeMap<UnitNo, Unit>,
    held: BTreeMap<UnitNo, HoldId>,
    sold: BTreeMap<UnitNo, BookingId>,
}

struct Books<'a> {
    event: &'a Event,
    left: &'a UnitsLeft,
    owners: Owners,
    report: &'a mut VerifyReport,
}

impl Books<'_> {
    fn unit(&mut self, no: UnitNo, row: Unit) {
        self.report.units += 1;
        match self.left.get(&no) {
            Some(audited) if *audited == row => {}
            audited => {
                let detail = format!("the row says {row:?}, the audit {audited:?}");
                self.find(no, "I3 stored state", &detail);
            }
        }
        match row.state {
            UnitState::Held { hold, .. } => {
                self.owners.held.insert(no, hold);
            }
            UnitState::Sold(booking) => {
                self.owners.sold.insert(no, booking);
            }
            UnitState::Free | UnitState::Blocked => {}
        }
        self.owners.rows.insert(no, row);
    }

    fn missing_units(&mut self) {
        let missing: Vec<UnitNo> = self
            .left
            .keys()
            .filter(|no| !self.owners.rows.contains_key(no))
            .copied()
            .collect();
        for no in missing {
            self.find(
                no,
                "I3 stored state",
                "the audit knows it, and it has no row",
            );
        }
    }

    /// A hold that is not over has exactly its units, until its end and under its fence.
    fn hold(&mut self, hold: &Hold) {
        if hold.state.is_terminal() {
            return;
        }
        for held in &hold.units {
            let expected = UnitState::Held {
                hold: hold.id,
                until: hold.expires_at,
            };
            let row = self
                .owners
                .rows
                .get(&held.unit)
                .copied()
                .unwrap_or_default();
            if row.state != expected || row.fence != hold.fence || row.version != held.version {
                let detail = format!("{} is live, but the unit is {row:?}", hold.id);
                self.find(held.unit, "I3 hold and unit", &detail);
            }
            self.owners.held.remove(&held.unit);
        }
    }

    /// A booking has exactly the units of its sold lines.
    fn booking(&mut self, booking: &Booking) {
        self.report.bookings += 1;
        let sold = booking
            .lines
            .iter()
            .filter(|line| line.state == LineState::Sold);
        if !booking.state.owns_units() && sold.clone().next().is_some() {
            let detail = format!(
                "{} is {}, with sold lines",
                booking.id,
                booking.state.as_str()
            );
            self.report.find(Some(self.event), "I3 booking", detail);
        }
        if booking.state == BookingState::Confirmed && sold.clone().next().is_none() {
            let detail = format!("{} is confirmed, without a sold line", booking.id);
            self.report.find(Some(self.event), "I3 booking", detail);
        }
        for line in sold {
            let row = self
                .owners
                .rows
                .get(&line.unit)
                .copied()
                .unwrap_or_default();
            if row.state != UnitState::Sold(booking.id) || row.version != line.version {
                let detail = format!("{} has it as sold, but the unit is {row:?}", booking.id);
                self.find(line.unit, "I1 booking and unit", &detail);
            }
            self.owners.sold.remove(&line.unit);
        }
    }

    /// Whatever is held or sold and belongs to nobody.
    fn ownerless(&mut self) {
        let held = std::mem::take(&mut self.owners.held);
        for (no, hold) in held {
            self.find(
                no,
                "I3 hold and unit",
                &format!("held by {hold}, which is not live"),
            );
        }
        let sold = std::mem::take(&mut self.owners.sold);
        for (no, booking) in sold {
            let detail = format!("sold to {booking}, which has no such line");
            self.find(no, "I1 booking and unit", &detail);
        }
    }

    fn find(&mut self, no: UnitNo, what: &str, detail: &str) {
        let name = self.event.chart.unit_name(no);
        self.report
            .find(Some(self.event), what, format!("unit {name}: {detail}"));
    }
}
