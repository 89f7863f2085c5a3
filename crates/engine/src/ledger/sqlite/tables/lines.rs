//! The units of bookings. A unit has one sold line at most (`guards.sql`).

use rusqlite::{Connection, Row, Statement, params};
use soldonce_core::{Amount, Booking, BookingId, Line, LineState, UnitNo, Version};

use super::codes::require_sum;
use crate::ledger::rows::codes::{number, small, unsigned, value};
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row, stored};

const TABLE: &str = "lines";

const DELETE_LINE: &str = "-- delete_line
DELETE FROM lines WHERE booking = ?1 AND n = ?2";

const UPDATE_LINE: &str = "-- update_line
UPDATE OR FAIL lines SET price = ?5, version = ?6, state = ?7, checksum = ?8
WHERE booking = ?1 AND n = ?2 AND event_no = ?3 AND unit_no = ?4";

const INSERT_LINE: &str = "-- insert_line
INSERT OR FAIL INTO lines (booking, n, event_no, unit_no, price, version, state, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const LINES_OF: &str = "-- lines_of
SELECT n, event_no, unit_no, price, version, state, checksum
FROM lines WHERE booking = ?1 ORDER BY n";

pub(super) const ALL_LINES: &str = "-- all_lines
SELECT n, event_no, unit_no, price, version, state, checksum, booking
FROM lines ORDER BY booking, n";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[DELETE_LINE, UPDATE_LINE, INSERT_LINE, LINES_OF, ALL_LINES];

/// Writes the lines that changed, in place. Those that are given up come first, so that a line that becomes sold
/// meets no other sold one of its unit.
pub(super) fn write(
    connection: &Connection,
    bookings: &[&Booking],
    is_new: impl Fn(BookingId) -> bool,
) -> Result<(), Fault> {
    let mut delete = connection.prepare_cached(DELETE_LINE)?;
    let mut update = connection.prepare_cached(UPDATE_LINE)?;
    let mut insert = connection.prepare_cached(INSERT_LINE)?;
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
        changed.extend(
            change
                .changed
                .into_iter()
                .map(|(n, line)| (booking, n, line)),
        );
        new.extend((next..).zip(change.new).map(|(n, line)| (booking, n, line)));
    }
    changed.sort_by_key(|(_, _, line)| line.state == LineState::Sold);
    for (booking, n, line) in changed {
        one_row("update_line", write_line(&mut update, booking, n, line)?)?;
    }
    for (booking, n, line) in new {
        one_row("insert_line", write_line(&mut insert, booking, n, line)?)?;
    }
    Ok(())
}

/// What a booking's lines were and are, so that only those that changed are written.
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

/// The lines of a booking, each with its number.
pub(super) fn of(connection: &Connection, booking: &Booking) -> Result<Vec<(i64, Line)>, Fault> {
    let mut statement = connection.prepare_cached(LINES_OF)?;
    let mut rows = statement.query([booking.id.bytes()])?;
    let mut lines = Vec::with_capacity(booking.lines.len());
    while let Some(row) = rows.next()? {
        lines.push((row.get(0)?, read(booking, row)?));
    }
    Ok(lines)
}

fn write_line(
    statement: &mut Statement<'_>,
    booking: &Booking,
    n: i64,
    line: &Line,
) -> Result<usize, Fault> {
    Ok(statement.execute(params![
        booking.id.bytes(),
        n,
        booking.event.0,
        line.unit.0,
        line.price.minor(),
        stored(line.version.0)?,
        number(&LineState::ALL, &line.state),
        checksum(booking, n, line)?.stored(),
    ])?)
}

fn checksum(booking: &Booking, n: i64, line: &Line) -> Result<Checksum, Fault> {
    Ok(Checksum::of(TABLE)
        .bytes(booking.id.bytes())
        .int(n)
        .int(i64::from(booking.event.0))
        .int(i64::from(line.unit.0))
        .int(line.price.minor())
        .int(stored(line.version.0)?)
        .int(number(&LineState::ALL, &line.state)))
}

/// A line of this booking.
pub(super) fn read(booking: &Booking, row: &Row<'_>) -> Result<Line, Fault> {
    let n: i64 = row.get(0)?;
    if small(row.get(1)?, TABLE)? != booking.event.0 {
        let what = format!("line {n} of {} is of another event", booking.id);
        return Err(Fault::damaged(TABLE, what));
    }
    let line = Line {
        unit: UnitNo(small(row.get(2)?, TABLE)?),
        price: Amount::from_minor(row.get(3)?),
        version: Version(unsigned(row.get(4)?, TABLE)?),
        state: value(&LineState::ALL, row.get(5)?, TABLE)?,
    };
    let name = || format!("line {n} of {}", booking.id);
    require_sum(TABLE, checksum(booking, n, &line)?, row.get(6)?, name)?;
    Ok(line)
}
