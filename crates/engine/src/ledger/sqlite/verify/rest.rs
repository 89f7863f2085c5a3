//! Checks the rows of no single event: idempotency records, the outbox, webhooks, keys; and rows
//! that belong to nothing.

use std::ops::ControlFlow;

use rusqlite::Connection;

use super::note;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::guards;
use crate::ledger::sqlite::tables::{
    deliveries, dropped, each_row, endpoints, idempotency, keys, outbox,
};
use crate::ledger::verify::VerifyReport;

/// Rows of events that do not exist or are dropped and cleared, table by table.
const STRAY_ROWS: &str = "-- stray_rows
WITH kept AS (
    SELECT event_no FROM events EXCEPT SELECT event_no FROM dropped_events WHERE is_cleared = 1
)
SELECT 'units', count(*) FROM units WHERE event_no NOT IN (SELECT event_no FROM kept)
UNION ALL
SELECT 'holds', count(*) FROM holds WHERE event_no NOT IN (SELECT event_no FROM kept)
UNION ALL
SELECT 'bookings', count(*) FROM bookings WHERE event_no NOT IN (SELECT event_no FROM kept)
UNION ALL
SELECT 'audit', count(*) FROM audit WHERE event_no NOT IN (SELECT event_no FROM kept)
UNION ALL
SELECT 'chains', count(*) FROM chains WHERE event_no NOT IN (SELECT event_no FROM kept)
UNION ALL
SELECT 'lines', count(*) FROM lines WHERE booking NOT IN (SELECT id FROM bookings)
UNION ALL
SELECT 'replies', count(*) FROM replies WHERE n NOT IN (SELECT n FROM idempotency)
UNION ALL
SELECT 'kept_replies', count(*) FROM kept_replies WHERE subject NOT IN (SELECT id FROM bookings)";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[STRAY_ROWS];

pub(super) fn check(connection: &Connection, report: &mut VerifyReport) -> Result<(), Fault> {
    for name in guards::missing(connection)? {
        let detail = format!("`{name}` is missing or not as it was made: the file refuses less");
        report.find(None, "guards", detail);
    }
    let mut records = Vec::new();
    let keys_read = idempotency::each(connection, |record| {
        records.push(record.number);
        ControlFlow::Continue(())
    });
    note(report, None, keys_read)?;
    for number in records {
        note(report, None, idempotency::reply(connection, number))?;
    }
    note(report, None, idempotency::check_kept(connection))?;
    note(report, None, outbox::check(connection))?;
    note(report, None, endpoints::all(connection))?;
    note(report, None, deliveries::check(connection))?;
    note(report, None, keys::all(connection))?;
    note(report, None, keys::masters(connection))?;
    note(report, None, dropped::all(connection))?;
    each_row(connection, STRAY_ROWS, [], |row| {
        report.strays(&row.get::<_, String>(0)?, row.get(1)?);
        Ok(())
    })
}
