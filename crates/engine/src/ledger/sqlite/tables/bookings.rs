//! Bookings. Their lines are in `lines`.

use std::ops::Range;

use rusqlite::{Connection, Params, Row, params};
use soldonce_core::{Booking, BookingId, EventNo, Holder, Line, LineState, Timestamp};

use super::summed::RowWriter;
use super::{all_rows, each_row, first_row, lines, summed};
use crate::ledger::rows::bookings::{detail, get, put};
use crate::ledger::rows::checksum::Checksum;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::most;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::{MadeAt, Page};

const TABLE: &str = "bookings";

statements! {
    INSERT_BOOKING = "-- insert_booking
INSERT INTO bookings (id, event_no, caller, holder, hold, state, fence, lines, sold, reference,
                      payment, created_at, confirmed_at, payment_detail, checksum, holder_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

    UPDATE_BOOKING = "-- update_booking
UPDATE bookings SET state = ?6, fence = ?7, lines = ?8, sold = ?9, payment = ?11, confirmed_at = ?13,
                    payment_detail = ?14, checksum = ?15
WHERE id = ?1 AND event_no = ?2 AND caller = ?3 AND holder = ?4 AND hold IS ?5
  AND reference IS ?10 AND created_at = ?12 AND holder_key = ?16";

    BOOKING = concat!(
        "-- booking\nSELECT",
        booking_columns!(" lines, sold,"),
        ", checksum FROM bookings WHERE id = ?1
  AND NOT EXISTS (SELECT 1 FROM dropped_events d WHERE d.event_no = bookings.event_no)"
    );

    ALL_BOOKINGS = concat!(
        "-- all_bookings\nSELECT",
        booking_columns!(" lines, sold,"),
        ", checksum FROM bookings ORDER BY id"
    );

    BOOKINGS_OF_HOLDER = "-- bookings_of_holder
SELECT id FROM bookings WHERE holder_key = ?1 AND caller = ?2 AND holder = ?3 AND id < ?4
  AND NOT EXISTS (SELECT 1 FROM dropped_events d WHERE d.event_no = bookings.event_no)
ORDER BY id DESC LIMIT ?5";

    BOOKINGS_AFTER = "-- bookings_after
SELECT id FROM bookings WHERE event_no = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

    UNSETTLED_BOOKINGS = concat!(
        "-- unsettled_bookings
SELECT id FROM bookings WHERE (",
        unsettled!(),
        ") AND (created_at < ?1 OR created_at > ?2)
  AND (created_at, id) > (?4, ?5)
ORDER BY created_at, id LIMIT ?3"
    );
}

/// A booking without its lines, as all of them are read at start.
#[derive(Clone, Debug)]
pub(crate) struct BookingRow {
    /// The booking, its lines missing.
    pub(crate) booking: Booking,
    /// How many lines it has.
    pub(crate) lines: u32,
    /// How many of them are sold.
    pub(crate) sold: u32,
}

/// Hashes a holder to the key of the index by which its bookings are found. The key is narrow,
/// because every sale writes it to a random page of the index.
pub(super) fn holder_key(holder: &Holder) -> i64 {
    let sum = Checksum::of("holder").bytes(holder.caller.bytes());
    sum.text(holder.name.as_str()).to_i64()
}

fn count(lines: usize) -> u32 {
    u32::try_from(lines).unwrap_or(u32::MAX)
}

impl BookingRow {
    fn of(booking: &Booking) -> (u32, u32) {
        let sold = |line: &&Line| line.state == LineState::Sold;
        let sold = booking.lines.iter().filter(sold).count();
        (count(booking.lines.len()), count(sold))
    }

    fn and_line(mut self, row: &Row<'_>) -> Result<Self, Fault> {
        let (_n, line) = lines::read(&self.booking, row)?;
        self.booking.lines.push(line);
        Ok(self)
    }

    /// Returns the booking; fails with `Damaged` unless it has all of its lines.
    fn whole(self) -> Result<Booking, Fault> {
        let Self {
            mut booking,
            lines,
            sold,
        } = self;
        // An exchange adds lines behind those that stay.
        booking.lines.sort_by_key(|line| line.unit);
        if Self::of(&booking) == (lines, sold) {
            return Ok(booking);
        }
        let what = format!("{} has not {lines} lines with {sold} sold", booking.id);
        Err(Fault::damaged("lines", what))
    }

    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let counts = |row: &mut Reader<'_>| Ok((row.get()?, row.get()?));
        let read = |row: &mut Reader<'_>| get(row, counts);
        let name = |(booking, _): &(Booking, _)| booking.id.to_string();
        let (booking, (lines, sold)) = summed::read(row, TABLE, read, name)?;
        Ok(Self {
            booking,
            lines,
            sold,
        })
    }
}

/// Writes each booking in its state after the batch, with its lines; `is_new` tells which are not
/// yet in the file.
pub(crate) fn write(
    connection: &Connection,
    bookings: &[&Booking],
    is_new: impl Fn(BookingId) -> bool,
) -> Result<(), Fault> {
    let mut insert = RowWriter::new(connection, INSERT_BOOKING, TABLE)?;
    let mut update = RowWriter::new(connection, UPDATE_BOOKING, TABLE)?;
    for booking in bookings {
        let writer = if is_new(booking.id) {
            &mut insert
        } else {
            &mut update
        };
        let (lines, sold) = BookingRow::of(booking);
        let detail = detail(booking)?;
        let [id, event, caller, holder, hold, state, fence, rest @ ..] =
            put(booking, detail.as_deref());
        let counts = [Column::Small(lines), Column::Small(sold)];
        let first = [id, event, caller, holder, hold, state, fence];
        let row = [&first[..], &counts, &rest].concat();
        writer.write_with(&row, &[Column::Long(holder_key(&booking.holder))])?;
    }
    lines::write(connection, bookings, is_new)
}

/// Finds a booking with its lines; `None` if it is unknown or its event was dropped.
pub(crate) fn find(connection: &Connection, id: BookingId) -> Result<Option<Booking>, Fault> {
    let row = first_row(connection, BOOKING, [id.bytes()], BookingRow::read)?;
    row.map(|row| with_lines(connection, row)).transpose()
}

fn with_lines(connection: &Connection, mut row: BookingRow) -> Result<Booking, Fault> {
    let lines = lines::of(connection, &row.booking)?;
    row.booking.lines = lines.into_iter().map(|(_, line)| line).collect();
    row.whole()
}

/// Reads the bookings whose ids a statement selects.
fn bookings_selected_by(
    connection: &Connection,
    sql: &'static str,
    values: impl Params,
) -> Result<Vec<Booking>, Fault> {
    let id = |row: &Row<'_>| Ok(BookingId::from_bytes(row.get(0)?));
    let ids: Vec<BookingId> = all_rows(connection, sql, values, id)?;
    let found = ids.into_iter().map(|id| find(connection, id).transpose());
    found.flatten().collect()
}

/// Passes every booking without its lines to `take`.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(BookingRow) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_row(connection, ALL_BOOKINGS, [], |row| {
        take(BookingRow::read(row)?)
    })
}

/// Passes every booking with its lines to `take`, by one scan of both tables. A damaged one is
/// passed as its fault, and the scan goes on.
pub(crate) fn each_whole(
    connection: &Connection,
    mut take: impl FnMut(Result<Booking, Fault>),
) -> Result<(), Fault> {
    let mut of_bookings = connection.prepare(ALL_BOOKINGS)?;
    let mut of_lines = connection.prepare(lines::ALL_LINES)?;
    let mut rows = of_bookings.query([])?;
    let mut lines = of_lines.query([])?;
    let mut line = lines.next()?;
    while let Some(row) = rows.next()? {
        let id: [u8; 16] = row.get(0)?;
        let mut booking = BookingRow::read(row);
        while let Some(row) = line {
            let owner: [u8; 16] = row.get(0)?;
            if owner > id {
                break;
            }
            // Lines of no booking are counted elsewhere, as stray rows.
            if owner == id {
                booking = booking.and_then(|booking| booking.and_line(row));
            }
            line = lines.next()?;
        }
        take(booking.and_then(BookingRow::whole));
    }
    Ok(())
}

/// Reads bookings of a holder, newest first.
pub(crate) fn of_holder(
    connection: &Connection,
    holder: &Holder,
    (before, limit): Page<BookingId>,
) -> Result<Vec<Booking>, Fault> {
    let key = holder_key(holder);
    let before = before.map_or([u8::MAX; 16], |id| *id.bytes());
    let (caller, name) = (holder.caller.bytes(), holder.name.as_str());
    let values = params![key, caller, name, before, most(limit)];
    bookings_selected_by(connection, BOOKINGS_OF_HOLDER, values)
}

/// Reads bookings of an event, in the order of ids.
pub(crate) fn page(
    connection: &Connection,
    event: EventNo,
    (after, limit): Page<BookingId>,
) -> Result<Vec<Booking>, Fault> {
    let after = after.map_or([0; 16], |id| *id.bytes());
    let values = params![event.0, after, most(limit)];
    bookings_selected_by(connection, BOOKINGS_AFTER, values)
}

/// Reads bookings whose payment has not ended, or whose money must go back, unless made in
/// `recent`: older ones, and those made before the clock was set back. Oldest first.
pub(crate) fn unsettled(
    connection: &Connection,
    recent: Range<Timestamp>,
    (after, limit): Page<MadeAt>,
) -> Result<Vec<Booking>, Fault> {
    let (at, id) = after.unwrap_or((Timestamp::MIN, BookingId::from_bytes([0; 16])));
    let values = params![
        recent.start.ms(),
        recent.end.ms(),
        most(limit),
        at.ms(),
        id.bytes()
    ];
    bookings_selected_by(connection, UNSETTLED_BOOKINGS, values)
}
