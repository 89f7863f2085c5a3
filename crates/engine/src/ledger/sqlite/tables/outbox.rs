//! What must be done outside, recorded in the commit that caused it.

use rusqlite::{Connection, Row, params};
use soldonce_core::{BookingId, Effect, Timestamp};

use super::codes::require_sum;
use crate::ledger::OpenEffect;
use crate::ledger::rows::effects::EffectColumns;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "outbox";

const INSERT_EFFECT: &str = "-- insert_effect
INSERT INTO outbox (n, at, kind, booking, amount, checksum, total)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

const SETTLE_EFFECT: &str = "-- settle_effect
UPDATE outbox SET done_at = ?4
WHERE done_at IS NULL AND booking = ?1 AND kind = ?2 AND total IS ?3";

// The oldest of each booking: what follows waits for it.
const OPEN_EFFECTS: &str = "-- open_effects
SELECT min(n), at, kind, booking, amount, checksum, total FROM outbox
WHERE done_at IS NULL GROUP BY booking ORDER BY 1 LIMIT ?1";

const LAST_EFFECT: &str = "-- last_effect
SELECT coalesce(max(n), 0) FROM outbox";

const EFFECTS: &str = "-- effects
SELECT n, at, kind, booking, amount, checksum, total FROM outbox ORDER BY n";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT_EFFECT,
    SETTLE_EFFECT,
    OPEN_EFFECTS,
    LAST_EFFECT,
    EFFECTS,
];

fn checksum(number: i64, at: Timestamp, effect: EffectColumns) -> Checksum {
    let sum = Checksum::of(TABLE).int(number).int(at.ms());
    let sum = sum.int(i64::from(effect.kind));
    let sum = sum.bytes(effect.booking.bytes()).opt_int(effect.amount);
    match effect.total {
        Some(total) => sum.int(total),
        // As rows were summed before refunds had totals.
        None => sum,
    }
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
        let effect = EffectColumns::of(*effect);
        let sum = checksum(last, at, effect).stored();
        let (booking, amount, total) = (effect.booking, effect.amount, effect.total);
        let values = params![
            last,
            at.ms(),
            effect.kind,
            booking.bytes(),
            amount,
            sum,
            total
        ];
        one_row("insert_effect", insert.execute(values)?)?;
    }
    Ok(last)
}

/// Takes note that effects are done. One that is done already, or was never wanted, stays so.
pub(crate) fn settle(
    connection: &Connection,
    effects: impl Iterator<Item = Effect>,
    at: Timestamp,
) -> Result<(), Fault> {
    let mut settle = connection.prepare_cached(SETTLE_EFFECT)?;
    for effect in effects {
        let effect = EffectColumns::of(effect);
        let booking = effect.booking.bytes();
        settle.execute(params![booking, effect.kind, effect.total, at.ms()])?;
    }
    Ok(())
}

/// What is to be done next for each booking and was left before `before`, oldest first.
pub(crate) fn open(
    connection: &Connection,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<OpenEffect>, Fault> {
    let mut statement = connection.prepare_cached(OPEN_EFFECTS)?;
    let mut rows = statement.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let open = read(row)?;
        if open.at < before {
            found.push(open);
        }
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<OpenEffect, Fault> {
    let (number, at) = (row.get(0)?, Timestamp::from_ms(row.get(1)?));
    let effect = EffectColumns {
        kind: row.get(2)?,
        booking: BookingId::from_bytes(row.get(3)?),
        amount: row.get(4)?,
        total: row.get(6)?,
    };
    let sum = checksum(number, at, effect);
    require_sum(TABLE, sum, row.get(5)?, || format!("effect {number}"))?;
    let effect = effect.effect()?;
    Ok(OpenEffect { effect, at })
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
        read(row)?;
    }
    Ok(())
}
