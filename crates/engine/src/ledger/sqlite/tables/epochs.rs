//! Epochs of lease namespaces.

use rusqlite::{Connection, OptionalExtension, Row};
use soldonce_lease::EPOCH_MAX;

use super::{each_row, summed};
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "epochs";

statements! {
    FIND_EPOCH = "-- find_epoch
SELECT namespace, epoch, checksum FROM epochs WHERE namespace = ?1";

    EPOCHS = "-- epochs
SELECT namespace, epoch, checksum FROM epochs";

    PUT_EPOCH = "-- put_epoch
INSERT INTO epochs (namespace, epoch, checksum) VALUES (?1, ?2, ?3)
ON CONFLICT (namespace) DO UPDATE SET epoch = excluded.epoch, checksum = excluded.checksum
WHERE epochs.epoch < excluded.epoch";
}

fn read(row: &Row<'_>) -> Result<u32, Fault> {
    let get = |row: &mut Reader<'_>| Ok((row.get::<&str>()?.to_owned(), row.get()?));
    let name = |(namespace, _): &(String, u32)| format!("the epoch of {namespace}");
    Ok(summed::read(row, TABLE, get, name)?.1)
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
    let row = [Column::Text(namespace), Column::Small(epoch)];
    summed::write(connection, PUT_EPOCH, TABLE, &row)?;
    Ok(Some(epoch))
}

/// Tests the checksum of every epoch.
pub(crate) fn check(connection: &Connection) -> Result<(), Fault> {
    each_row(connection, EPOCHS, [], |row| read(row).map(drop))
}
