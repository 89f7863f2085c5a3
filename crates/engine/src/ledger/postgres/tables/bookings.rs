//! Bookings and their lines.

use soldonce_core::Booking;

use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, bookings};

pub(in super::super) const BOOKINGS: &str = concat!(
    "-- bookings\nSELECT",
    booking_columns!(""),
    ", version FROM bookings WHERE id = ANY ($1)
  AND NOT EXISTS (SELECT FROM dropped_events d WHERE d.event_no = bookings.event_no)"
);

pub(in super::super) const LINES_OF: &str = concat!(
    "-- lines_of\nSELECT booking, ",
    line_columns!(),
    " FROM lines WHERE booking = ANY ($1) ORDER BY booking, n"
);

/// Selects bookings whose hold waits for a payment: the end of the hold changes them without naming
/// them.
pub(in super::super) const PENDING_BOOKINGS: &str = "-- pending_bookings
SELECT booking FROM holds
WHERE state = 1 AND id IN (SELECT owner FROM units WHERE event_no = $1 AND state = 1)";

pub(in super::super) const BOOKINGS_OF_HOLDER: &str = "-- bookings_of_holder
SELECT id FROM bookings WHERE holder_key = $1 AND id < $2
  AND NOT EXISTS (SELECT FROM dropped_events d WHERE d.event_no = bookings.event_no)
ORDER BY id DESC LIMIT $3";

pub(in super::super) const BOOKINGS_AFTER: &str = "-- bookings_after
SELECT id FROM bookings WHERE event_no = $1 AND id > $2 ORDER BY id LIMIT $3";

pub(in super::super) const UNSETTLED_BOOKINGS: &str = concat!(
    "-- unsettled_bookings
SELECT id FROM bookings WHERE (",
    unsettled!(),
    ") AND (created_at < $1 OR created_at > $2)
  AND (created_at, id) > ($4, $5)
ORDER BY created_at, id LIMIT $3"
);

pub(in super::super) const EVENT_OF_BOOKING: &str = "-- event_of_booking
SELECT event_no FROM bookings WHERE id = $1
  AND NOT EXISTS (SELECT FROM dropped_events d WHERE d.event_no = bookings.event_no)";

/// Selects those of these units that some booking has as sold.
pub(in super::super) const SOLD_UNITS: &str = "-- sold_units
SELECT unit_no FROM lines WHERE event_no = $1 AND unit_no = ANY ($2) AND state = 1 ORDER BY unit_no";

pub(in super::super) struct BookingRow {
    pub(in super::super) booking: Booking,
    pub(in super::super) version: i64,
}

/// Reads a booking without its lines.
pub(in super::super) fn get(row: &mut Reader<'_>) -> Result<BookingRow, Damaged> {
    let (booking, ()) = bookings::get(row, |_| Ok(()))?;
    let version = row.get()?;
    Ok(BookingRow { booking, version })
}
