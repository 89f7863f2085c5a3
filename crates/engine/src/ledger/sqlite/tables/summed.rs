//! Rows with their checksums.

use rusqlite::{CachedStatement, Connection, Row, params_from_iter};

use crate::ledger::rows::Damaged;
use crate::ledger::rows::checksum::Checksum;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::{Fault, one_row};

/// A statement that writes one row at a time. Its parameters are the columns of the row, their
/// checksum, and values that the checksum leaves out.
pub(super) struct RowWriter<'a> {
    statement: CachedStatement<'a>,
    name: &'static str,
    table: &'static str,
}

impl<'a> RowWriter<'a> {
    /// Prepares a statement that begins with its name.
    pub(super) fn new(
        connection: &'a Connection,
        sql: &'static str,
        table: &'static str,
    ) -> Result<Self, Fault> {
        let name = sql.lines().next().unwrap_or_default();
        Ok(Self {
            statement: connection.prepare_cached(sql)?,
            name: name.trim_start_matches(['-', ' ']),
            table,
        })
    }

    /// Writes a row with its checksum; fails unless exactly one row changed.
    pub(super) fn write(&mut self, row: &[Column<'_>]) -> Result<(), Fault> {
        self.write_with(row, &[])
    }

    /// Writes a row as [`RowWriter::write`], with parameters that the checksum leaves out.
    pub(super) fn write_with(
        &mut self,
        row: &[Column<'_>],
        more: &[Column<'_>],
    ) -> Result<(), Fault> {
        let sum = row.iter().fold(Checksum::of(self.table), Checksum::column);
        let sum = Column::Long(sum.to_i64());
        let all = params_from_iter(row.iter().chain([&sum]).chain(more));
        one_row(self.name, self.statement.execute(all)?)
    }
}

/// Writes a row by a statement as for [`RowWriter`]; fails unless exactly one row changed.
pub(super) fn write(
    connection: &Connection,
    sql: &'static str,
    table: &'static str,
    row: &[Column<'_>],
) -> Result<(), Fault> {
    RowWriter::new(connection, sql, table)?.write(row)
}

/// Reads a row with `get`; fails unless its checksum fits. `name` names it in the error.
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
