//! Bookings and their lines.

use std::collections::BTreeMap;

use soldonce_core::{
    Amount, Booking, BookingId, BookingState, EventNo, Fence, HoldId, Line, LineState,
    PaymentState, Timestamp, UnitNo, Version,
};
use tokio_postgres::Row;

use super::{Columns, Id};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::codes::value;
use crate::ledger::rows::payments::payment_from_json;

const TABLE: &str = "bookings";
const LINES: &str = "lines";

pub(in super::super) const BOOKINGS: &str = "-- bookings
SELECT id, event_no, caller, holder, hold, state, fence, reference, payment, created_at,
       confirmed_at, version, payment_detail
FROM bookings WHERE id = ANY ($1)";

pub(in super::super) const LINES_OF: &str = "-- lines_of
SELECT booking, unit_no, price, version, state FROM lines WHERE booking = ANY ($1)
ORDER BY booking, n";

/// Those whose hold waits for money: the end of the hold moves them without naming them.
pub(in super::super) const PENDING_BOOKINGS: &str = "-- pending_bookings
SELECT booking FROM holds
WHERE state = 1 AND id IN (SELECT owner FROM units WHERE event_no = $1 AND state = 1)";

pub(in super::super) const BOOKINGS_OF_HOLDER: &str = "-- bookings_of_holder
SELECT id FROM bookings WHERE holder_key = $1 AND id < $2 ORDER BY id DESC LIMIT $3";

pub(in super::super) const BOOKINGS_AFTER: &str = "-- bookings_after
SELECT id FROM bookings WHERE event_no = $1 AND id > $2 ORDER BY id LIMIT $3";

/// Those whose payment is not at its end, or whose money must go back.
pub(in super::super) const UNSETTLED_BOOKINGS: &str = "-- unsettled_bookings
SELECT id FROM bookings WHERE (payment < 4 OR payment = 10 OR state = 6) AND (created_at < $1 OR created_at > $2)
ORDER BY created_at LIMIT $3";

pub(in super::super) const EVENT_OF_BOOKING: &str = "-- event_of_booking
SELECT event_no FROM bookings WHERE id = $1";

/// Which of these units some booking has as sold.
pub(in super::super) const SOLD_UNITS: &str = "-- sold_units
SELECT unit_no FROM lines WHERE event_no = $1 AND unit_no = ANY ($2) AND state = 1 ORDER BY unit_no";

/// A booking and how often it has changed.
pub(in super::super) struct BookingRow {
    pub(in super::super) booking: Booking,
    pub(in super::super) version: i64,
}

fn read_one(row: &Row) -> Result<BookingRow, Damaged> {
    let columns = Columns::new(row, TABLE);
    let (id, hold, state): (Id, Option<Id>, i16) =
        (columns.get(0)?, columns.get(4)?, columns.get(5)?);
    let (payment, detail): (Option<i16>, Option<String>) = (columns.get(8)?, columns.get(12)?);
    let payment = match (payment, detail) {
        (None, None) => None,
        (Some(state), Some(json)) => {
            let state = value(&PaymentState::ALL, state.into(), TABLE)?;
            Some(Box::new(payment_from_json(state, &json)?))
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(Damaged::new(TABLE, "half a payment is there"));
        }
    };
    let confirmed_at: Option<i64> = columns.get(10)?;
    let booking = Booking {
        id: BookingId::from_bytes(id.0),
        event: EventNo(columns.small(1)?),
        holder: columns.holder(2, 3)?,
        hold: hold.map(|id| HoldId::from_bytes(id.0)),
        state: value(&BookingState::ALL, state.into(), TABLE)?,
        fence: Fence(columns.unsigned(6)?),
        lines: Vec::new(),
        reference: columns.text(7)?,
        payment,
        created_at: Timestamp::from_ms(columns.get(9)?),
        confirmed_at: confirmed_at.map(Timestamp::from_ms),
    };
    Ok(BookingRow {
        booking,
        version: columns.get(11)?,
    })
}

/// Bookings with their lines, by id.
pub(in super::super) fn read(bookings: &[Row], lines: &[Row]) -> Result<Vec<BookingRow>, Damaged> {
    let mut found = BTreeMap::new();
    for row in bookings {
        let row = read_one(row)?;
        found.insert(row.booking.id, row);
    }
    for row in lines {
        let columns = Columns::new(row, LINES);
        let (booking, state): (Id, i16) = (columns.get(0)?, columns.get(4)?);
        let line = Line {
            unit: UnitNo(columns.small(1)?),
            price: Amount::from_minor(columns.get(2)?),
            version: Version(columns.unsigned(3)?),
            state: value(&LineState::ALL, state.into(), LINES)?,
        };
        if let Some(row) = found.get_mut(&BookingId::from_bytes(booking.0)) {
            row.booking.lines.push(line);
        }
    }
    Ok(found.into_values().collect())
}
