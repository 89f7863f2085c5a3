//! Reads rows column by column, for every store; on SQLite it also sums them for the checksum.

use rusqlite::types::ValueRef;
use soldonce_core::{
    BookingId, CallerId, EventNo, Fence, HoldId, Holder, HolderName, Seq, Text, Timestamp, UnitNo,
    Version,
};
use tokio_postgres::types::{FromSql, Type};

use super::Damaged;
use super::checksum::Checksum;
use super::codes::{small, unsigned, value};
use super::column::Column;
use crate::webhook::{EndpointId, MessageId};

/// A cursor over the columns of one row. Each call reads the next column.
pub(crate) struct Reader<'a> {
    row: Row<'a>,
    table: &'static str,
    at: usize,
    sum: Checksum,
}

enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

/// A value of any type that a column has, as SQLite has it.
struct Any<'a>(ValueRef<'a>);

type BoxError = Box<dyn std::error::Error + Sync + Send>;

impl<'a> FromSql<'a> for Any<'a> {
    fn from_sql(of: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(Self(match *of {
            Type::INT2 => ValueRef::Integer(i16::from_sql(of, raw)?.into()),
            Type::INT4 => ValueRef::Integer(i32::from_sql(of, raw)?.into()),
            Type::INT8 => ValueRef::Integer(i64::from_sql(of, raw)?),
            Type::BOOL => ValueRef::Integer(bool::from_sql(of, raw)?.into()),
            Type::TEXT => ValueRef::Text(raw),
            _ => ValueRef::Blob(raw),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxError> {
        Ok(Self(ValueRef::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Reads one column as `T`; as a function for a query of a single column.
pub(crate) fn column<T: for<'a> Get<'a>>(row: &mut Reader<'_>) -> Result<T, Damaged> {
    row.get()
}

impl<'a> Reader<'a> {
    pub(crate) fn sqlite(row: &'a rusqlite::Row<'a>, table: &'static str) -> Self {
        Self::new(Row::Sqlite(row), table)
    }

    pub(crate) fn postgres(row: &'a tokio_postgres::Row, table: &'static str) -> Self {
        Self::new(Row::Postgres(row), table)
    }

    fn new(row: Row<'a>, table: &'static str) -> Self {
        Self {
            row,
            table,
            at: 0,
            sum: Checksum::of(table),
        }
    }

    pub(crate) fn illegal(&self, what: &str) -> Damaged {
        Damaged::new(self.table, format!("the {what} of a row is illegal"))
    }

    /// Reads the next column with `read`, and adds it to the checksum as the column that `of` makes
    /// of it.
    fn next<T: Copy>(
        &mut self,
        read: impl FnOnce(ValueRef<'a>) -> Option<T>,
        of: impl FnOnce(T) -> Column<'a>,
    ) -> Result<T, Damaged> {
        let failed = |error: String| Damaged::new(self.table, error);
        let value = match self.row {
            Row::Sqlite(row) => row
                .get_ref(self.at)
                .map_err(|error| failed(error.to_string())),
            Row::Postgres(row) => row
                .try_get(self.at)
                .map(|Any(value)| value)
                .map_err(|error| failed(error.to_string())),
        };
        let value = read(value?).ok_or_else(|| self.illegal(&format!("column {}", self.at)))?;
        self.at += 1;
        self.sum = self.sum.column(&of(value));
        Ok(value)
    }

    /// Reads the next column or columns as `T`.
    pub(crate) fn get<T: Get<'a>>(&mut self) -> Result<T, Damaged> {
        T::get(self)
    }

    /// Reads a number from a column that a later schema than the table's added.
    pub(crate) fn added_int(&mut self) -> Result<Option<i64>, Damaged> {
        self.next(|value| value.as_i64_or_null().ok(), Column::AddedLong)
    }

    /// Reads a text from a column that a later schema than the table's added.
    pub(crate) fn added_text(&mut self) -> Result<Option<&'a str>, Damaged> {
        self.next(|value| value.as_str_or_null().ok(), Column::AddedText)
    }

    /// Reads an enum value by its number in `all`.
    pub(crate) fn code<T: Copy>(&mut self, all: &[T]) -> Result<T, Damaged> {
        value(all, self.get()?, self.table)
    }

    /// Reads the stored checksum and compares it with that of the columns read so far.
    ///
    /// # Errors
    /// `Damaged`, with the name that `row` returns, when they differ.
    pub(crate) fn require_sum(&mut self, row: impl FnOnce() -> String) -> Result<(), Damaged> {
        let sum = self.sum.to_i64();
        if self.get::<i64>()? == sum {
            return Ok(());
        }
        let what = format!("the checksum of {} does not fit", row());
        Err(Damaged::new(self.table, what))
    }
}

/// A type that is read from one column or several consecutive ones.
pub(crate) trait Get<'a>: Sized {
    fn get(row: &mut Reader<'a>) -> Result<Self, Damaged>;
}

/// Implements [`Get`] for types: from the column's value, or from another type's [`Get`].
macro_rules! columns {
    ($($of:ty: $value:ident, $as:expr;)+) => {$(
        impl<'a> Get<'a> for $of {
            fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
                row.next(|value| value.$value().ok(), $as)
            }
        }
    )+};
    ($($of:ty = $read:expr;)+) => {$(
        impl<'a> Get<'a> for $of {
            fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
                let read: fn(&mut Reader<'a>) -> Result<Self, Damaged> = $read;
                read(row)
            }
        }
    )+};
}

columns! {
    i64: as_i64, Column::Long;
    Option<i64>: as_i64_or_null, Column::OptLong;
    &'a [u8]: as_blob, Column::Bytes;
    Option<&'a [u8]>: as_blob_or_null, Column::OptBytes;
    &'a str: as_str, Column::Text;
    Option<&'a str>: as_str_or_null, Column::OptText;
}

columns! {
    u32 = |row| small(row.get()?, row.table);
    u64 = |row| unsigned(row.get()?, row.table);
    EventNo = |row| row.get().map(EventNo);
    UnitNo = |row| row.get().map(UnitNo);
    Fence = |row| row.get().map(Fence);
    Version = |row| row.get().map(Version);
    Seq = |row| row.get().map(Seq);
    Timestamp = |row| row.get().map(Timestamp::from_ms);
    Option<Timestamp> = |row| Ok(row.get::<Option<_>>()?.map(Timestamp::from_ms));
    BookingId = |row| row.get().map(BookingId::from_bytes);
    HoldId = |row| row.get().map(HoldId::from_bytes);
    Option<HoldId> = |row| Ok(row.get::<Option<_>>()?.map(HoldId::from_bytes));
    CallerId = |row| row.get().map(CallerId::from_bytes);
    Option<CallerId> = |row| Ok(row.get::<Option<_>>()?.map(CallerId::from_bytes));
    EndpointId = |row| row.get().map(EndpointId::from_bytes);
    MessageId = |row| row.get().map(MessageId::from_bytes);
    Option<[u8; 16]> = |row| {
        let id = row.get::<Option<&[u8]>>()?.map(<[u8; 16]>::try_from).transpose();
        id.map_err(|_| row.illegal("id"))
    };
    Option<bool> = |row| row.next(|value| match value.as_i64_or_null().ok()? {
        None => Some(None),
        Some(flag @ 0..=1) => Some(Some(flag == 1)),
        Some(_) => None,
    }, Column::OptFlag);
    bool = |row| row.get::<Option<_>>()?.ok_or_else(|| row.illegal("flag"));
    Text = |row| Text::parse(row.get()?).map_err(|_| row.illegal("text"));
    Option<Text> = |row| {
        let text = row.get::<Option<&str>>()?.map(Text::parse).transpose();
        text.map_err(|_| row.illegal("text"))
    };
    Holder = |row| {
        let (caller, name) = (row.get()?, HolderName::parse(row.get()?));
        let name = name.map_err(|_| row.illegal("holder"))?;
        Ok(Self { caller, name })
    };
}

impl<'a, const N: usize> Get<'a> for [u8; N] {
    fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
        let bytes: &[u8] = row.get()?;
        bytes.try_into().map_err(|_| row.illegal("length"))
    }
}
