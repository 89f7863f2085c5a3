//! The units of bookings. A unit has one sold line at most (`guards.sql`).

use rusqlite::{Connection, Row, params};
use soldonce_core::{Booking, BookingId, EventNo, Line, LineState};

use super::all_rows;
use super::summed::RowWriter;
use crate::ledger::rows::bookings::{get_line, put_line};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "lines";

statements! {
    DELETE_LINE = "-- delete_line
DELETE FROM lines WHERE booking = ?1 AND n = ?2";

    UPDATE_LINE = "-- update_line
UPDATE OR FAIL lines SET price = ?5, version = ?6, state = ?7, checksum = ?8
WHERE booking = ?1 AND n = ?2 AND event_no = ?3 AND unit_no = ?4";

    INSERT_LINE = "-- insert_line
INSERT OR FAIL INTO lines (booking, n, event_no, unit_no, price, version, state, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

    LINES_OF = concat!(
        "-- lines_of\nSELECT booking, n, event_no, ",
        line_columns!(),
        ", checksum FROM lines WHERE booking = ?1 ORDER BY n"
    );

    pub(super) ALL_LINES = concat!(
        "-- all_lines\nSELECT booking, n, event_no, ",
        line_columns!(),
        ", checksum FROM lines ORDER BY booking, n"
    );
}

/// Writes the lines that changed, in place. Those that stop being sold are first, so that a line
/// that becomes sold meets no other sold one of its unit.
pub(super) fn write(
    connection: &Connection,
    bookings: &[&Booking],
    is_new: impl Fn(BookingId) -> bool,
) -> Result<(), Fault> {
    let mut delete = connection.prepare_cached(DELETE_LINE)?;
    let (mut changed, mut new) = (Vec::new(), Vec::new());
    for booking in bookings {
        let old = if is_new(booking.id) {
            Vec::new()
        } else {
            of(connection, booking)?
        };
        let next = old.iter().map(|(n, _)| n + 1).max().unwrap_or(0);
        let change = LineChange::new(&booking.lines, old);
        for n in change.gone {
            let rows = delete.execute(params![booking.id.bytes(), n])?;
            one_row("delete_line", rows)?;
        }
        let of_booking = |(n, line)| (booking, n, line);
        changed.extend(change.changed.into_iter().map(of_booking));
        new.extend((next..).zip(change.new).map(of_booking));
    }
    changed.sort_by_key(|(_, _, line)| line.state == LineState::Sold);
    let mut update = RowWriter::new(connection, UPDATE_LINE, TABLE)?;
    for (booking, n, line) in changed {
        write_line(&mut update, booking, n, line)?;
    }
    let mut insert = RowWriter::new(connection, INSERT_LINE, TABLE)?;
    for (booking, n, line) in new {
        write_line(&mut insert, booking, n, line)?;
    }
    Ok(())
}

/// The difference of a booking's lines to those in the file, so that only changes are written.
struct LineChange<'a> {
    gone: Vec<i64>,
    changed: Vec<(i64, &'a Line)>,
    new: Vec<&'a Line>,
}

impl<'a> LineChange<'a> {
    fn new(lines: &'a [Line], mut old: Vec<(i64, Line)>) -> Self {
        let mut take = |is_it: &dyn Fn(&Line) -> bool| {
            let at = old.iter().position(|(_, line)| is_it(line))?;
            Some(old.remove(at).0)
        };
        let mut differ: Vec<&Line> = lines.iter().collect();
        differ.retain(|line| take(&|old| old == *line).is_none());
        let (mut changed, mut new) = (Vec::new(), Vec::new());
        for line in differ {
            match take(&|old| old.unit == line.unit) {
                Some(n) => changed.push((n, line)),
                None => new.push(line),
            }
        }
        let gone = old.into_iter().map(|(n, _)| n).collect();
        Self { gone, changed, new }
    }
}

/// Reads the lines of a booking, each with its number.
pub(super) fn of(connection: &Connection, booking: &Booking) -> Result<Vec<(i64, Line)>, Fault> {
    let read = |row: &Row<'_>| read(booking, row);
    all_rows(connection, LINES_OF, [booking.id.bytes()], read)
}

fn write_line(
    writer: &mut RowWriter<'_>,
    booking: &Booking,
    n: i64,
    line: &Line,
) -> Result<(), Fault> {
    let id = Column::Id(*booking.id.bytes());
    let event = Column::Small(booking.event.0);
    let [unit, price, version, state] = put_line(line);
    writer.write(&[id, Column::Long(n), event, unit, price, version, state])
}

/// Reads a line of `booking` from a row, with its number.
pub(super) fn read(booking: &Booking, row: &Row<'_>) -> Result<(i64, Line), Fault> {
    let mut row = Reader::sqlite(row, TABLE);
    let (_booking, n): (BookingId, i64) = (row.get()?, row.get()?);
    if row.get::<EventNo>()? != booking.event {
        let what = format!("line {n} of {} is of another event", booking.id);
        return Err(Fault::damaged(TABLE, what));
    }
    let line = get_line(&mut row)?;
    row.require_sum(|| format!("line {n} of {}", booking.id))?;
    Ok((n, line))
}
