//! Epochs of lease namespaces.

use rusqlite::{Connection, OptionalExtension, Row, params};
use soldonce_lease::EPOCH_MAX;

use super::codes::require_sum;
use crate::ledger::rows::codes::small;
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "epochs";

const FIND_EPOCH: &str = "-- find_epoch
SELECT namespace, epoch, checksum FROM epochs WHERE namespace = ?1";

const EPOCHS: &str = "-- epochs
SELECT namespace, epoch, checksum FROM epochs";

const PUT_EPOCH: &str = "-- put_epoch
INSERT INTO epochs (namespace, epoch, checksum) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace) DO UPDATE SET epoch = excluded.epoch, checksum = excluded.checksum
WHERE epochs.epoch < excluded.epoch";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[FIND_EPOCH, EPOCHS, PUT_EPOCH];

fn checksum(namespace: &str, epoch: u32) -> Checksum {
    Checksum::of(TABLE).text(namespace).int(i64::from(epoch))
}

fn read(row: &Row<'_>) -> Result<u32, Fault> {
    let namespace: String = row.get(0)?;
    let epoch = small(row.get(1)?, TABLE)?;
    let name = || format!("the epoch of {namespace}");
    require_sum(TABLE, checksum(&namespace, epoch), row.get(2)?, name)?;
    Ok(epoch)
}

/// Moves a namespace to its next epoch above `above`; none when all are used.
pub(crate) fn next(
    connection: &Connection,
    namespace: &str,
    above: u32,
) -> Result<Option<u32>, Fault> {
    let mut find = connection.prepare_cached(FIND_EPOCH)?;
    let found = find
        .query_row([namespace], |row| Ok(read(row)))
        .optional()?;
    let last = found.transpose()?.unwrap_or(0).max(above);
    let Some(epoch) = last.checked_add(1).filter(|epoch| *epoch <= EPOCH_MAX) else {
        return Ok(None);
    };
    let sum = checksum(namespace, epoch).stored();
    let mut put = connection.prepare_cached(PUT_EPOCH)?;
    one_row("put_epoch", put.execute(params![namespace, epoch, sum])?)?;
    Ok(Some(epoch))
}

/// Tests the checksum of every epoch.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    let mut statement = connection.prepare(EPOCHS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        read(row)?;
    }
    Ok(())
}
