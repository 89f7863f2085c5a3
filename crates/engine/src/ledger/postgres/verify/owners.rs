//! Checks who owns the units of an event: its holds, its bookings, and what is counted against
//! holders. Found by what the batches of the event name: none of these tables is ordered by event.

use std::collections::BTreeMap;

use soldonce_core::{Booking, Event, LineState};

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::VERIFY_ROWS;
use crate::ledger::postgres::replica::bookings_by_id;
use crate::ledger::postgres::tables::holds::HolderRow;
use crate::ledger::postgres::tables::{Id, holder_key, holds};
use crate::ledger::rows::holds::get as get_hold;
use crate::ledger::rows::reader::{Reader, column};
use crate::ledger::verify::{Books, VerifyReport};

const TOUCHED_HOLDS: &str = "-- touched_holds
SELECT DISTINCT unnest(holds) FROM batches WHERE event_no = $1";

const TOUCHED_BOOKINGS: &str = "-- touched_bookings
SELECT one, count(*) FROM batches, unnest(bookings) AS one WHERE event_no = $1 GROUP BY one";

const TOUCHED_HOLDERS: &str = "-- touched_holders
SELECT one, count(*) FROM batches, unnest(holders) AS one WHERE event_no = $1 GROUP BY one";

const RENEWALS: &str = "-- renewals
SELECT count(*) FROM batches WHERE event_no = $1 AND renews";

const HOLDERS: &str = "-- holders_to_verify
SELECT caller, holder, bought, version, key FROM holders WHERE event_no = $1";

/// What the batches of an event say they wrote, and how often.
pub(super) struct BatchWrites {
    no: i32,
    holds: Vec<Id>,
    bookings: BTreeMap<Id, i64>,
    holders: BTreeMap<Id, i64>,
    renewals: i64,
}

impl BatchWrites {
    pub(super) async fn read(connection: &mut Connection, no: i32) -> Result<Self, Failure> {
        let of_event = [bind(&no)];
        let counted = |row: &mut Reader<'_>| Ok((row.get()?, row.get()?));
        let of = |sql| (sql, "batches");
        let holds = connection.read(of(TOUCHED_HOLDS), &of_event, column);
        let holds = holds.await?;
        let bookings = connection.read(of(TOUCHED_BOOKINGS), &of_event, counted);
        let bookings = bookings.await?.into_iter().collect();
        let holders = connection.read(of(TOUCHED_HOLDERS), &of_event, counted);
        let holders = holders.await?.into_iter().collect();
        let renewals = connection.one(of(RENEWALS), &of_event).await?;
        Ok(Self {
            no,
            holds,
            bookings,
            holders,
            renewals: renewals.unwrap_or(0),
        })
    }

    /// Checks that the event's own version counts its changes.
    pub(super) fn check_event(&self, event: &Event, version: i64, report: &mut VerifyReport) {
        let meant = self.renewals.saturating_add(1);
        if version != meant {
            let detail = format!("the event has version {version}, its changes make it {meant}");
            report.find(Some(event), "I20 versions", detail);
        }
    }
}

/// Reads all holds of an event into the books, and reports those that are missing.
pub(super) async fn read_holds(
    connection: &mut Connection,
    touched: &BatchWrites,
    books: &mut Books<'_>,
    (event, report): (&Event, &mut VerifyReport),
) -> Result<(), Failure> {
    let mut missing = touched.holds.len();
    for some in touched.holds.chunks(VERIFY_ROWS) {
        let each = |row: &mut Reader<'_>| Ok(get_hold(row));
        for hold in connection.read(holds::HOLDS, &[bind(&some)], each).await? {
            missing -= 1;
            match hold {
                Ok(hold) if hold.event == event.no => books.add_hold(hold, report),
                Ok(hold) => {
                    let detail = format!("{} says it is of event {}", hold.id, hold.event.0);
                    report.find(Some(event), "I20 hold and audit", detail);
                }
                Err(damage) => report.damaged(Some(event), &damage),
            }
        }
    }
    if missing > 0 {
        let detail = format!("{missing} holds that were made are not there");
        report.find(Some(event), "I20 hold and audit", detail);
    }
    Ok(())
}

/// Checks that bookings have their units, and that holders have bought what their bookings have.
pub(super) async fn check_bookings(
    connection: &mut Connection,
    touched: &BatchWrites,
    books: &mut Books<'_>,
    (event, report): (&Event, &mut VerifyReport),
) -> Result<(), Failure> {
    let mut bought: BTreeMap<Id, u32> = BTreeMap::new();
    let mut missing = touched.bookings.len();
    let ids: Vec<Id> = touched.bookings.keys().copied().collect();
    for some in ids.chunks(VERIFY_ROWS) {
        for row in bookings_by_id(connection, some).await? {
            missing -= 1;
            let booking = &row.booking;
            let of_holder = bought.entry(holder_key(&booking.holder)).or_default();
            *of_holder = of_holder.saturating_add(sold(booking));
            let meant = touched.bookings.get(&Id(*booking.id.bytes()));
            if meant != Some(&row.version) || booking.event != event.no {
                let (id, version) = (booking.id, row.version);
                let detail = format!("{id} of event {} has version {version}", booking.event.0);
                report.find(Some(event), "I20 versions", detail);
            }
            books.check_booking(booking, report);
        }
    }
    if missing > 0 {
        let detail = format!("{missing} bookings that were made are not there");
        report.find(Some(event), "I20 booking and audit", detail);
    }
    check_holders(connection, touched, bought, (event, report)).await
}

fn sold(booking: &Booking) -> u32 {
    let lines = booking.lines.iter();
    let sold = lines.filter(|line| line.state == LineState::Sold).count();
    u32::try_from(sold).unwrap_or(u32::MAX)
}

async fn check_holders(
    connection: &mut Connection,
    touched: &BatchWrites,
    mut bought: BTreeMap<Id, u32>,
    (event, report): (&Event, &mut VerifyReport),
) -> Result<(), Failure> {
    let rows = connection.rows(HOLDERS, &[bind(&touched.no)]).await?;
    let mut met = 0;
    for row in &rows {
        let mut row = Reader::postgres(row, "holders");
        let HolderRow {
            holder,
            bought: counted,
            version,
        } = holds::get_holder(&mut row)?;
        let key: Id = row.get()?;
        let (meant, has) = (touched.holders.get(&key), bought.remove(&key).unwrap_or(0));
        met += usize::from(meant.is_some());
        let name = holder.name.as_str();
        let said = if key != holder_key(&holder) {
            "is under a key of another".to_owned()
        } else if counted != has {
            format!("is said to have bought {counted} units, their bookings have {has}")
        } else if meant != Some(&version) {
            format!("has version {version}, and was written {meant:?} times")
        } else {
            continue;
        };
        report.find(Some(event), "I9 holder", format!("`{name}` {said}"));
    }
    let gone = touched.holders.len().saturating_sub(met);
    let uncounted = bought.values().filter(|units| **units > 0).count();
    if gone > 0 || uncounted > 0 {
        let detail = format!("{gone} rows of holders are missing, {uncounted} of them of buyers");
        report.find(Some(event), "I9 holder", detail);
    }
    Ok(())
}
