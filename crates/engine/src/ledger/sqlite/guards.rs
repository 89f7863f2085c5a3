//! The constraints of the file itself: its tables with their checks, and the triggers and keys of
//! `guards.sql`. A file that lacks one of them still opens in any SQLite, and refuses less.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::connection;
use super::fault::Fault;

const SCHEMA: &str = "-- schema
SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[SCHEMA];

/// Lists the names of tables, indexes, triggers and views of the migrations and `guards.sql` that
/// this file lacks, or has in another form.
pub(super) fn missing(connection: &Connection) -> Result<Vec<String>, Fault> {
    let fresh = Connection::open_in_memory()?;
    connection::make_tables(&fresh)?;
    let found = read(connection)?;
    let made = read(&fresh)?.into_iter();
    let lacks = made.filter(|(name, sql)| found.get(name) != Some(sql));
    Ok(lacks.map(|(name, _)| name).collect())
}

fn read(connection: &Connection) -> Result<BTreeMap<String, String>, Fault> {
    let mut statement = connection.prepare(SCHEMA)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
