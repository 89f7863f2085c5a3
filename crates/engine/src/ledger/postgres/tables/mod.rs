//! Converts rows to values of `core` and back. Decides nothing.

#[macro_use]
pub(super) mod audit;
pub(super) mod bookings;
pub(super) mod deliveries;
pub(super) mod endpoints;
pub(super) mod events;
pub(super) mod holds;
pub(super) mod idempotency;
pub(super) mod keys;
pub(super) mod outbox;
pub(super) mod units;

use sha2::{Digest, Sha256};
use soldonce_core::Holder;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

pub(super) use crate::ledger::rows::most;

use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::{Get, Reader};

/// Sixteen bytes as a `bytea`: an id, or a short hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub(super) [u8; 16]);

impl ToSql for Id {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    accepts!(BYTEA);
}

impl<'a> Get<'a> for Id {
    fn get(row: &mut Reader<'a>) -> Result<Self, Damaged> {
        row.get().map(Self)
    }
}

/// Computes the key of a holder's rows: the first 16 bytes of SHA-256 over caller and name.
pub(super) fn holder_key(holder: &Holder) -> Id {
    let mut sha = Sha256::new();
    sha.update(holder.caller.bytes());
    sha.update(holder.name.as_str().as_bytes());
    let sum: [u8; 32] = sha.finalize().into();
    Id(sum.first_chunk::<16>().copied().unwrap_or_default())
}

/// A row of one table, whose columns are read in any order and of any type: [`Reader`] reads most rows.
pub(super) struct Columns<'a> {
    row: &'a Row,
    table: &'static str,
}

impl<'a> Columns<'a> {
    pub(super) fn new(row: &'a Row, table: &'static str) -> Self {
        Self { row, table }
    }

    /// Reads one column, counted from 0.
    pub(super) fn get<T: FromSql<'a>>(&self, at: usize) -> Result<T, Damaged> {
        self.row
            .try_get(at)
            .map_err(|error| Damaged::new(self.table, error.to_string()))
    }
}

/// Converts the number of a unit or an event for storage. Fails above `i32::MAX`.
pub(super) fn int(number: u32) -> Result<i32, Damaged> {
    i32::try_from(number).map_err(|_| Damaged::new("memory", format!("{number} is too large")))
}

/// Converts an index into the list of an enum's values for storage; -1 if it does not fit.
pub(super) fn short(number: i64) -> i16 {
    i16::try_from(number).unwrap_or(-1)
}
