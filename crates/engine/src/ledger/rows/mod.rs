//! The row formats that all stores share: the columns of each table, enums as numbers, the units of
//! a hold in one column, policies as JSON, the digest of a chart. Decides nothing.

pub(crate) mod checksum;
pub(crate) mod codes;
pub(crate) mod column;
pub(crate) mod reader;

#[macro_use]
pub(crate) mod bookings;
#[macro_use]
pub(crate) mod deliveries;
#[macro_use]
pub(crate) mod dropped;
#[macro_use]
pub(crate) mod effects;
#[macro_use]
pub(crate) mod endpoints;
#[macro_use]
pub(crate) mod events;
#[macro_use]
pub(crate) mod holds;
#[macro_use]
pub(crate) mod keys;
#[macro_use]
pub(crate) mod units;

pub(crate) mod chain;
pub(crate) mod charts;
pub(crate) mod packed;
pub(crate) mod payments;
pub(crate) mod policy;
pub(crate) mod replies;

/// A row has values that no build writes.
#[derive(Debug, thiserror::Error)]
#[error("{table} is damaged: {what}")]
pub(crate) struct Damaged {
    pub(crate) table: &'static str,
    pub(crate) what: String,
}

impl Damaged {
    /// Creates the error of a row of `table` that has illegal values.
    pub(crate) fn new(table: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { table, what }
    }
}

/// Converts the most rows of a query to a parameter of `LIMIT`.
pub(crate) fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Converts a count to the type of its column; fails above 63 bits.
pub(crate) fn to_i64(number: u64) -> Result<i64, Damaged> {
    i64::try_from(number)
        .map_err(|_| Damaged::new("memory", format!("{number} does not fit into 63 bits")))
}
