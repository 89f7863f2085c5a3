//! The outbox: effects at the payment provider, stored in the commit that caused them.

use std::ops::Range;

use rusqlite::{Connection, Row, params};
use soldonce_core::{Effect, Timestamp};

use super::{all_rows, each_row, first_row, summed};
use crate::ledger::OpenEffect;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::effects::{get_open, put, put_name};
use crate::ledger::rows::most;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "outbox";

statements! {
    INSERT_EFFECT = "-- insert_effect
INSERT INTO outbox (n, at, kind, booking, amount, total, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

    SETTLE_EFFECT = "-- settle_effect
UPDATE outbox SET done_at = ?4
WHERE done_at IS NULL AND kind = ?1 AND booking = ?2 AND total IS ?3";

    // The oldest of each booking: what follows waits for it.
    OPEN_EFFECTS = concat!(
        "-- open_effects\nSELECT min(n), at, ",
        effect_columns!(),
        ", checksum FROM outbox WHERE done_at IS NULL GROUP BY booking ORDER BY 1 LIMIT ?1"
    );

    LAST_EFFECT = "-- last_effect
SELECT coalesce(max(n), 0) FROM outbox";

    EFFECTS = concat!(
        "-- effects\nSELECT n, at, ",
        effect_columns!(),
        ", checksum FROM outbox ORDER BY n"
    );
}

/// Writes effects of one batch, numbered after `last`; returns the new last number.
pub(crate) fn write<'a>(
    connection: &Connection,
    effects: impl Iterator<Item = &'a Effect>,
    at: Timestamp,
    mut last: i64,
) -> Result<i64, Fault> {
    for effect in effects {
        last = last.saturating_add(1);
        let [kind, booking, amount, total] = put(*effect);
        let (number, at) = (Column::Long(last), Column::Long(at.ms()));
        let row = [number, at, kind, booking, amount, total];
        summed::write(connection, INSERT_EFFECT, TABLE, &row)?;
    }
    Ok(last)
}

/// Marks effects as done. Ignores one that is done already, or was never stored.
pub(crate) fn settle(
    connection: &Connection,
    effects: impl Iterator<Item = Effect>,
    at: Timestamp,
) -> Result<(), Fault> {
    let mut settle = connection.prepare_cached(SETTLE_EFFECT)?;
    for effect in effects {
        let [kind, booking, total] = put_name(effect);
        settle.execute(params![kind, booking, total, at.ms()])?;
    }
    Ok(())
}

/// Reads the oldest open effect of each booking, oldest first, but for those stored in `recent`:
/// older ones, and those stored before the clock was set back.
pub(crate) fn open(
    connection: &Connection,
    recent: &Range<Timestamp>,
    limit: usize,
) -> Result<Vec<OpenEffect>, Fault> {
    let mut found: Vec<OpenEffect> = all_rows(connection, OPEN_EFFECTS, [most(limit)], read)?;
    found.retain(|open| open.at < recent.start || open.at > recent.end);
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<OpenEffect, Fault> {
    let get = |row: &mut Reader<'_>| Ok((row.get::<i64>()?, get_open(row)?));
    let (_, open) = summed::read(row, TABLE, get, |(n, _)| format!("effect {n}"))?;
    Ok(open)
}

/// Reads the number of the newest effect; 0 if there is none.
pub(crate) fn last(connection: &Connection) -> Result<i64, Fault> {
    let last = first_row(connection, LAST_EFFECT, [], |row| Ok(row.get(0)?))?;
    Ok(last.unwrap_or_default())
}

/// Verifies the checksum of every effect.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    each_row(connection, EFFECTS, [], |row| read(row).map(drop))
}
