//! Many rows as one value: an array of one of the database's row types (migrations 5 and 12), as PostgreSQL
//! reads it in binary (`array_recv`, `record_recv`). Unfolding one such array costs the database a
//! tenth of unfolding a list for each column (docs/decisions/0036).

use soldonce_core::words;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::tables::Columns;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::column::Column;

const TYPES: &str = "-- row_types
SELECT typname::text, oid, typarray FROM pg_type
WHERE typname = ANY ($1) AND pg_type_is_visible(oid)";

/// Most bytes that are reserved at once for rows to come.
const ROOM_MAX: usize = 1 << 16;

words! {
    /// The types of rows that a statement gets many of, by their names in the database.
    pub(super) RowType:
    Unit = "unit_change",
    Hold = "hold_row",
    Audit = "audit_row",
    Holder = "holder_row",
    Booking = "booking_change",
    Line = "line_row",
    Idempotency = "idempotency_row",
    Effect = "effect_row",
    Message = "message_row",
}

/// The array types of all row types, by their OIDs in this database.
#[derive(Clone, Debug)]
pub(in super::super) struct RowTypes(Arc<[Type]>);

impl RowTypes {
    /// Reads the OIDs of the row types from the database.
    ///
    /// # Errors
    /// [`Failure`], when it does not answer, or lacks one of them.
    pub(in super::super) async fn read(connection: &mut Connection) -> Result<Self, Failure> {
        let names: Vec<&str> = RowType::ALL.iter().map(|kind| kind.as_str()).collect();
        let rows = connection.rows(TYPES, &[bind(&names)]).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let columns = Columns::new(row, "pg_type");
            let name: String = columns.get(0)?;
            found.push((name, columns.get(1)?, columns.get(2)?));
        }
        let types = RowType::ALL.iter().map(|kind| {
            let known = found.iter().find(|(name, ..)| name == kind.as_str());
            let missing = || Damaged::new("pg_type", format!("there is no {}", kind.as_str()));
            known
                .map(|(_, row, array)| array_of(*kind, *row, *array))
                .ok_or_else(missing)
        });
        Ok(Self(types.collect::<Result<_, _>>()?))
    }

    /// Returns the type of an array of these rows.
    pub(super) fn array(&self, of: RowType) -> Type {
        let at = RowType::ALL.iter().position(|kind| *kind == of);
        let known = at.and_then(|at| self.0.get(at));
        known.cloned().unwrap_or(Type::RECORD_ARRAY)
    }
}

/// Builds the type of an array with what the driver needs of it: the OIDs. Columns are written with
/// the OIDs of their own types.
fn array_of(kind: RowType, row: u32, array: u32) -> Type {
    let schema = String::new();
    let name = kind.as_str().to_owned();
    let member = Type::new(name, row, Kind::Composite(Vec::new()), schema.clone());
    let name = format!("_{}", kind.as_str());
    Type::new(name, array, Kind::Array(member), schema)
}

/// Rows of one type, ready to be sent.
#[derive(Debug, Default)]
pub(super) struct Rows {
    count: i32,
    bytes: BytesMut,
}

impl Rows {
    /// Encodes things as rows: `write` puts the columns of each.
    ///
    /// # Errors
    /// Those of `write`.
    pub(super) fn of<T>(
        things: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Row<'_>) -> Result<(), Damaged>,
    ) -> Result<Self, Damaged> {
        let mut rows = Self::default();
        let things = things.into_iter();
        let others = things.size_hint().0.saturating_sub(1);
        for thing in things {
            let start = rows.bytes.len();
            // The length and the number of columns, known at the end.
            rows.bytes.put_i32(0);
            rows.bytes.put_i32(0);
            let mut row = Row {
                bytes: &mut rows.bytes,
                columns: 0,
            };
            write(thing, &mut row)?;
            let columns = row.columns;
            let length = length_since(&rows.bytes, start)?;
            if rows.count == 0 {
                // The others will be like it, or so.
                rows.bytes
                    .reserve((rows.bytes.len() * others).min(ROOM_MAX));
            }
            put_at(&mut rows.bytes, start, length);
            put_at(&mut rows.bytes, start + size_of::<i32>(), columns);
            rows.count += 1;
        }
        Ok(rows)
    }
}

/// One row, to be filled in the order of its type's columns.
pub(super) struct Row<'a> {
    bytes: &'a mut BytesMut,
    columns: i32,
}

impl Row<'_> {
    /// Adds columns; each names its own type.
    pub(super) fn put(&mut self, columns: &[Column<'_>]) -> Result<(), Damaged> {
        for column in columns {
            let of = column.of();
            self.bytes.put_u32(of.oid());
            let start = self.bytes.len();
            self.bytes.put_i32(0);
            let illegal =
                |error| Damaged::new("memory", format!("a value cannot be sent: {error}"));
            let length = match column.to_sql(&of, self.bytes).map_err(illegal)? {
                IsNull::Yes => -1,
                IsNull::No => length_since(self.bytes, start)?,
            };
            put_at(self.bytes, start, length);
            self.columns += 1;
        }
        Ok(())
    }
}

/// Counts the bytes after the four bytes at `start`. Fails above `i32::MAX`.
fn length_since(bytes: &BytesMut, start: usize) -> Result<i32, Damaged> {
    let length = bytes.len().saturating_sub(start + size_of::<i32>());
    i32::try_from(length).map_err(|_| Damaged::new("memory", "a row is too long"))
}

fn put_at(bytes: &mut BytesMut, at: usize, value: i32) {
    if let Some(place) = bytes.get_mut(at..at + size_of::<i32>()) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

impl ToSql for Rows {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let Kind::Array(member) = of.kind() else {
            return Err(format!("{of} is no array").into());
        };
        // Dimensions; whether a row is null; of what.
        out.put_i32(i32::from(self.count > 0));
        out.put_i32(0);
        out.put_u32(member.oid());
        if self.count > 0 {
            out.put_i32(self.count);
            // The lower bound of the array's index.
            out.put_i32(1);
            out.put_slice(&self.bytes);
        }
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        matches!(of.kind(), Kind::Array(_))
    }

    to_sql_checked!();
}
