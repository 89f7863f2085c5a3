//! Rows with their checksums.

use rusqlite::{Connection, Row, Statement, params_from_iter};

use crate::ledger::rows::Damaged;
use crate::ledger::rows::checksum::Checksum;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::{Fault, one_row};

/// Runs a statement whose parameters are the columns of a row, their checksum, and what is not under it; returns
/// how many rows it changed.
pub(super) fn execute(
    statement: &mut Statement<'_>,
    table: &str,
    row: &[Column<'_>],
    more: &[Column<'_>],
) -> Result<usize, Fault> {
    let columns = row.iter();
    let sum = columns.fold(Checksum::of(table), Checksum::column);
    let sum = Column::Long(sum.to_i64());
    Ok(statement.execute(params_from_iter(row.iter().chain([&sum]).chain(more)))?)
}

/// Changes exactly one row by a statement that goes with [`execute`].
pub(super) fn write(
    connection: &Connection,
    sql: &'static str,
    table: &str,
    row: &[Column<'_>],
) -> Result<(), Fault> {
    let rows = execute(&mut *connection.prepare_cached(sql)?, table, row, &[])?;
    let name = sql.lines().next().unwrap_or_default();
    one_row(name.trim_start_matches(['-', ' ']), rows)
}

/// Reads a row with `get`, and passes it if its checksum is that of its values; `name` names it.
pub(super) fn read<'a, T>(
    row: &'a Row<'a>,
    table: &'static str,
    get: impl FnOnce(&mut Reader<'a>) -> Result<T, Damaged>,
    name: impl FnOnce(&T) -> String,
) -> Result<T, Fault> {
    let mut row = Reader::sqlite(row, table);
    let value = get(&mut row)?;
    row.require_sum(|| name(&value))?;
    Ok(value)
}
