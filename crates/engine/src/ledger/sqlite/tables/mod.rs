//! The tables, a file each: the statements, the columns of a row, and the check of its checksum.
//! Decides nothing. `epochs` of migration 2 has no file and no rows: leases have their own folder.

/// Defines the statements of a table, and lists them for the tests that prepare them all.
macro_rules! statements {
    ($($(#[$about:meta])* $seen:vis $name:ident = $sql:expr;)+) => {
        $($(#[$about])* $seen const $name: &str = $sql;)+
        #[cfg(test)]
        pub(super) const STATEMENTS: &[&str] = &[$($name),+];
    };
}

pub(crate) mod audit;
pub(crate) mod bookings;
pub(crate) mod charts;
pub(crate) mod deliveries;
pub(crate) mod dropped;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod head;
pub(crate) mod holds;
pub(crate) mod idempotency;
pub(crate) mod keys;
mod lines;
pub(crate) mod outbox;
mod summed;
pub(crate) mod units;

use rusqlite::{Connection, Params, Row};

use super::fault::Fault;

/// Passes every row of a statement to `take`; the statement is not cached.
pub(super) fn each_row(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

/// Reads the first row of a statement, if there is one.
fn first_row<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query(values)?.next()?.map(read).transpose()
}

/// Collects the rows of a statement.
fn all_rows<T, C: FromIterator<T>>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<C, Fault> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_and_then(values, read)?.collect()
}

/// Runs a statement without rows; returns how many rows it changed.
pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    values: impl Params,
) -> Result<usize, Fault> {
    Ok(connection.prepare_cached(sql)?.execute(values)?)
}

/// Lists every statement of the tables, for the test that prepares them all.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    [
        audit::STATEMENTS,
        bookings::STATEMENTS,
        charts::STATEMENTS,
        deliveries::STATEMENTS,
        dropped::STATEMENTS,
        endpoints::STATEMENTS,
        events::STATEMENTS,
        head::STATEMENTS,
        holds::STATEMENTS,
        idempotency::STATEMENTS,
        keys::STATEMENTS,
        lines::STATEMENTS,
        outbox::STATEMENTS,
        units::STATEMENTS,
    ]
    .concat()
}
