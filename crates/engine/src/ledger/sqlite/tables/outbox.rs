//! What must be done outside, recorded in the commit that caused it.

use rusqlite::{Connection, params};
use soldonce_core::{BookingId, Effect, Timestamp};

use super::codes::require_sum;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "outbox";

const INSERT_EFFECT: &str = "-- insert_effect
INSERT INTO outbox (n, at, kind, booking, amount, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

const LAST_EFFECT: &str = "-- last_effect
SELECT coalesce(max(n), 0) FROM outbox";

const EFFECTS: &str = "-- effects
SELECT n, at, kind, booking, amount, checksum FROM outbox ORDER BY n";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT_EFFECT, LAST_EFFECT, EFFECTS];

fn columns(effect: Effect) -> (i64, BookingId, Option<i64>) {
    match effect {
        Effect::Capture(booking) => (0, booking, None),
        Effect::Void(booking) => (1, booking, None),
        Effect::Refund { booking, amount } => (2, booking, Some(amount.minor())),
        Effect::CancelIntent(booking) => (3, booking, None),
    }
}

fn checksum(number: i64, at: Timestamp, effect: (i64, BookingId, Option<i64>)) -> Checksum {
    let (kind, booking, amount) = effect;
    let sum = Checksum::of(TABLE).int(number).int(at.ms()).int(kind);
    sum.bytes(booking.bytes()).opt_int(amount)
}

/// Writes effects of one batch behind number `last`; gives the new last number.
pub(crate) fn write<'a>(
    connection: &Connection,
    effects: impl Iterator<Item = &'a Effect>,
    at: Timestamp,
    mut last: i64,
) -> Result<i64, Fault> {
    let mut insert = connection.prepare_cached(INSERT_EFFECT)?;
    for effect in effects {
        last = last.saturating_add(1);
        let (kind, booking, amount) = columns(*effect);
        let sum = checksum(last, at, (kind, booking, amount)).stored();
        let values = params![last, at.ms(), kind, booking.bytes(), amount, sum];
        one_row("insert_effect", insert.execute(values)?)?;
    }
    Ok(last)
}

/// The number of the newest effect.
pub(crate) fn last(connection: &Connection) -> Result<i64, Fault> {
    Ok(connection
        .prepare_cached(LAST_EFFECT)?
        .query_row([], |row| row.get(0))?)
}

/// Tests the checksum of every effect.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let mut statement = connection.prepare(EFFECTS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, at) = (row.get(0)?, Timestamp::from_ms(row.get(1)?));
        let booking = BookingId::from_bytes(row.get(3)?);
        let sum = checksum(number, at, (row.get(2)?, booking, row.get(4)?));
        require_sum(TABLE, sum, row.get(5)?, || format!("effect {number}"))?;
    }
    Ok(())
}
