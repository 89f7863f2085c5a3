//! One column of a row that is written, for every store. A table's own file lists its columns,
//! once; this file turns each kind of column into a parameter on SQLite, a value on PostgreSQL, and
//! bytes for the hash.

use bytes::{BufMut, BytesMut};
use rusqlite::types::{ToSqlOutput, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::to_i64;

type BoxError = Box<dyn std::error::Error + Sync + Send>;

/// A column with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Column<'a> {
    /// The number of an enum value, see [`codes`](super::codes): two bytes on PostgreSQL.
    Code(i64),
    OptCode(Option<i64>),
    /// The number of an event or a unit, or a small count: four bytes.
    Small(u32),
    /// A version, a fence, or the number of a commit.
    Count(u64),
    Long(i64),
    OptLong(Option<i64>),
    /// Added by a later schema than the table's: NULL is left out of the checksum.
    AddedLong(Option<i64>),
    Flag(bool),
    OptFlag(Option<bool>),
    Id([u8; 16]),
    OptId(Option<[u8; 16]>),
    Bytes(&'a [u8]),
    OptBytes(Option<&'a [u8]>),
    Text(&'a str),
    OptText(Option<&'a str>),
    /// As [`Column::AddedLong`].
    AddedText(Option<&'a str>),
}

impl Column<'_> {
    /// Returns the value as SQLite stores it; a count as its 64 bits.
    pub(crate) fn value(&self) -> ValueRef<'_> {
        fn or_null<'v, T>(value: Option<T>, of: impl FnOnce(T) -> ValueRef<'v>) -> ValueRef<'v> {
            value.map_or(ValueRef::Null, of)
        }
        fn text(text: &str) -> ValueRef<'_> {
            ValueRef::Text(text.as_bytes())
        }
        match self {
            Self::Code(number) | Self::Long(number) => ValueRef::Integer(*number),
            Self::OptCode(number) | Self::OptLong(number) | Self::AddedLong(number) => {
                or_null(*number, ValueRef::Integer)
            }
            Self::Small(number) => ValueRef::Integer((*number).into()),
            Self::Count(number) => ValueRef::Integer(number.cast_signed()),
            Self::Flag(flag) => ValueRef::Integer((*flag).into()),
            Self::OptFlag(flag) => or_null(*flag, |flag| ValueRef::Integer(flag.into())),
            Self::Id(id) => ValueRef::Blob(id),
            Self::OptId(id) => or_null(id.as_ref(), |id| ValueRef::Blob(id)),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::OptBytes(bytes) => or_null(*bytes, ValueRef::Blob),
            Self::Text(words) => text(words),
            Self::OptText(words) | Self::AddedText(words) => or_null(*words, text),
        }
    }

    /// Tells whether it is a number that may be NULL.
    pub(crate) const fn is_opt_number(&self) -> bool {
        matches!(self, Self::OptCode(_) | Self::OptLong(_) | Self::OptFlag(_))
    }

    /// Tells whether it is NULL and was added by a later schema than the table's.
    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::AddedLong(None) | Self::AddedText(None))
    }

    /// Appends it to the bytes that the audit hashes: integers as eight bytes, big-endian; nullable
    /// integers, texts and ids after their length; NULL as a length of -1.
    pub(crate) fn hash_into(&self, to: &mut Vec<u8>) {
        let mut put = |bytes: &[u8]| {
            let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            to.extend_from_slice(&length.to_be_bytes());
            to.extend_from_slice(bytes);
        };
        match self.value() {
            ValueRef::Integer(number) if self.is_opt_number() => put(&number.to_be_bytes()),
            ValueRef::Integer(number) => to.extend_from_slice(&number.to_be_bytes()),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => put(bytes),
            ValueRef::Null | ValueRef::Real(_) => to.extend_from_slice(&(-1_i64).to_be_bytes()),
        }
    }

    /// Returns the value with its type, as a parameter on PostgreSQL.
    pub(crate) fn sent(&self) -> (&(dyn ToSql + Sync), Type) {
        (self, self.of())
    }

    /// Returns the type of the column on PostgreSQL.
    pub(crate) const fn of(&self) -> Type {
        match self {
            Self::Code(_) | Self::OptCode(_) => Type::INT2,
            Self::Small(_) => Type::INT4,
            Self::Count(_) | Self::Long(_) | Self::OptLong(_) | Self::AddedLong(_) => Type::INT8,
            Self::Flag(_) | Self::OptFlag(_) => Type::BOOL,
            Self::Id(_) | Self::OptId(_) | Self::Bytes(_) | Self::OptBytes(_) => Type::BYTEA,
            Self::Text(_) | Self::OptText(_) | Self::AddedText(_) => Type::TEXT,
        }
    }
}

impl rusqlite::ToSql for Column<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        if let Self::Count(number) = self {
            to_i64(*number)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        }
        Ok(ToSqlOutput::Borrowed(self.value()))
    }
}

impl ToSql for Column<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        match (self, self.value()) {
            (_, ValueRef::Null | ValueRef::Real(_)) => return Ok(IsNull::Yes),
            (_, ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => out.put_slice(bytes),
            (Self::Code(_) | Self::OptCode(_), ValueRef::Integer(number)) => {
                out.put_i16(number.try_into()?);
            }
            (Self::Small(_), ValueRef::Integer(number)) => out.put_i32(number.try_into()?),
            (Self::Flag(_) | Self::OptFlag(_), ValueRef::Integer(flag)) => {
                out.put_u8(flag.try_into()?);
            }
            (Self::Count(number), _) => out.put_i64(to_i64(*number)?),
            (_, ValueRef::Integer(number)) => out.put_i64(number),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
