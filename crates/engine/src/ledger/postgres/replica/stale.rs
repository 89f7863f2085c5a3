//! What others wrote: which rows it touched, and those rows as they are in one snapshot.

use std::collections::{BTreeMap, BTreeSet};

use soldonce_core::{BookingId, Hold, Unit, UnitNo};
use tokio_postgres::Row;

use super::Replica;
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::charts::Charts;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::tables::bookings::BookingRow;
use crate::ledger::postgres::tables::holds::HolderRow;
use crate::ledger::postgres::tables::{Columns, Id, bookings, events, holds, int, units};
use crate::ledger::rows::bookings::get_line;
use crate::ledger::rows::holds::get as get_hold;
use crate::ledger::rows::reader::Reader;

/// The horizon: each batch below it that is or ever will be stored is in this snapshot. A running
/// one may still be stored. And a database that crashed gives a transaction's number again when
/// nothing of it was on disk; a batch that is seen was on disk, so nothing comes below the highest
/// that is seen.
macro_rules! horizon {
    () => {
        "least(pg_snapshot_xmin(pg_current_snapshot())::text::bigint + shift,
      1 + coalesce((SELECT b.xid::text::bigint FROM batches b ORDER BY b.xid DESC LIMIT 1), 0))
FROM sequencer WHERE one = 1"
    };
}

pub(in super::super) use horizon;

const HORIZON: &str = concat!("-- horizon\nSELECT ", horizon!());

/// Selects what others wrote since. A transaction that ran at the last snapshot may come again.
pub(super) const WRITTEN: &str = "-- written
SELECT units, holds, bookings, holders, renews, at FROM batches
WHERE event_no = $1 AND xid >= $2::bigint::text::xid8 AND server <> $3";

/// Whether [`WRITTEN`] has rows, and [`HORIZON`] of the same snapshot.
const BEHIND: &str = concat!(
    "-- behind
SELECT EXISTS (SELECT FROM batches
               WHERE event_no = $1 AND xid >= $2::bigint::text::xid8 AND server <> $3),
       ",
    horizon!()
);

impl Replica {
    /// Tells whether others wrote since the last time. One statement sees one snapshot, so if they
    /// did not, there is nothing else to read, and the horizon rises.
    pub(super) async fn is_behind(
        &mut self,
        connection: &mut Connection,
        server: Id,
    ) -> Result<bool, Failure> {
        let no = int(self.no.0)?;
        let since = [bind(&no), bind(&self.horizon), bind(&server)];
        let read = |row: &mut Reader<'_>| Ok((row.get::<bool>()?, row.get::<i64>()?));
        let found = connection.first((BEHIND, "batches"), &since, read).await?;
        let Some((is_behind, horizon)) = found else {
            return Ok(true);
        };
        if !is_behind {
            self.horizon = horizon;
        }
        Ok(is_behind)
    }
}

/// Rows to be read again.
#[derive(Debug, Default)]
pub(super) struct Stale {
    units: BTreeSet<i32>,
    holds: BTreeSet<Id>,
    bookings: BTreeSet<Id>,
    holders: BTreeSet<Id>,
    event: bool,
    pub(super) latest: i64,
}

/// Rows of one snapshot.
pub(super) struct Fetched {
    pub(super) event: Option<events::EventRow>,
    pub(super) units: Vec<(UnitNo, Unit)>,
    pub(super) holds: Vec<Hold>,
    pub(super) bookings: Vec<BookingRow>,
    pub(super) holders: Vec<HolderRow>,
}

impl Stale {
    /// Reads which rows these batches touched. None when there are no batches.
    pub(super) fn read(rows: &[Row]) -> Result<Option<Self>, Failure> {
        let mut stale = Self::default();
        for row in rows {
            let columns = Columns::new(row, "batches");
            stale.units.extend(columns.get::<Vec<i32>>(0)?);
            stale.holds.extend(columns.get::<Vec<Id>>(1)?);
            stale.bookings.extend(columns.get::<Vec<Id>>(2)?);
            stale.holders.extend(columns.get::<Vec<Id>>(3)?);
            stale.event |= columns.get::<bool>(4)?;
            stale.latest = stale.latest.max(columns.get(5)?);
        }
        Ok((!rows.is_empty()).then_some(stale))
    }

    pub(super) async fn fetch(
        self,
        connection: &mut Connection,
        charts: &Charts,
        no: i32,
    ) -> Result<Fetched, Failure> {
        let event = if self.event {
            charts.event_of(connection, no).await?
        } else {
            None
        };
        let unit_nos: Vec<i32> = self.units.into_iter().collect();
        let hold_ids: Vec<Id> = self.holds.into_iter().collect();
        let keys: Vec<Id> = self.holders.into_iter().collect();
        let booking_ids: Vec<Id> = self.bookings.into_iter().collect();
        let (by_no, by_id) = ([bind(&no), bind(&unit_nos)], [bind(&hold_ids)]);
        Ok(Fetched {
            event,
            units: connection.read(units::UNITS, &by_no, units::get).await?,
            holds: connection.read(holds::HOLDS, &by_id, get_hold).await?,
            bookings: bookings_by_id(connection, &booking_ids).await?,
            holders: holders_by_key(connection, no, &keys).await?,
        })
    }
}

/// Reads bookings with their lines.
pub(in super::super) async fn bookings_by_id(
    connection: &mut Connection,
    ids: &[Id],
) -> Result<Vec<BookingRow>, Failure> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = [bind(&ids)];
    let found = connection.read((bookings::BOOKINGS, "bookings"), &ids, bookings::get);
    let found = found.await?.into_iter().map(|row| (row.booking.id, row));
    let mut found: BTreeMap<BookingId, BookingRow> = found.collect();
    let read = |row: &mut Reader<'_>| Ok((row.get::<BookingId>()?, get_line(row)?));
    let lines = connection.read((bookings::LINES_OF, "lines"), &ids, read);
    for (booking, line) in lines.await? {
        if let Some(row) = found.get_mut(&booking) {
            row.booking.lines.push(line);
        }
    }
    Ok(found.into_values().collect())
}

/// Reads the rows of holders.
pub(super) async fn holders_by_key(
    connection: &mut Connection,
    no: i32,
    keys: &[Id],
) -> Result<Vec<HolderRow>, Failure> {
    let (by_key, values) = ((holds::HOLDERS_BY_KEY, "holders"), [bind(&no), bind(&keys)]);
    connection.read(by_key, &values, holds::get_holder).await
}

/// Reads the horizon of this snapshot.
pub(super) async fn read_horizon(connection: &mut Connection) -> Result<i64, Failure> {
    let horizon = connection.one((HORIZON, "batches"), &[]).await?;
    Ok(horizon.unwrap_or(0))
}
