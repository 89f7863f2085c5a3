//! Rows with their checksums.

use rusqlite::{CachedStatement, Connection, Row, params_from_iter};

use crate::ledger::rows::Damaged;
use crate::ledger::rows::checksum::Checksum;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::{Fault, one_row};

/// A statement that changes one row at a time. Its parameters are the columns of the row, their checksum, and what
/// is not under it.
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

    /// Changes exactly one row.
    pub(super) fn write(&mut self, row: &[Column<'_>]) -> Result<(), Fault> {
        self.write_with(row, &[])
    }

    /// The same, with parameters that are not under the checksum.
    pub(super) fn write_with(
        &mut self,
        row: &[Column<'_>],
        more: &[Column<'_>],
    ) -> Result<(), Fault> {
        let columns = row.iter();
        let sum = columns.fold(Checksum::of(self.table), Checksum::column);
        let sum = Column::Long(sum.to_i64());
        let all = params_from_iter(row.iter().chain([&sum]).chain(more));
        one_row(self.name, self.statement.execute(all)?)
    }
}

/// Changes exactly one row by a statement of [`RowWriter`].
pub(super) fn write(
    connection: &Connection,
    sql: &'static str,
    table: &'static str,
    row: &[Column<'_>],
) -> Result<(), Fault> {
    RowWriter::new(connection, sql, table)?.write(row)
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
