//! Checks what belongs to no single event: the numbers of all commits together, rows that belong
//! to nothing, records, effects, keys, and the guards of the tables themselves.

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::guards;
use crate::ledger::postgres::limits::VERIFY_ROWS;
use crate::ledger::postgres::tables::{Id, keys, most};
use crate::ledger::rows::keys::{get, get_master};
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::replies::get_record;
use crate::ledger::verify::VerifyReport;

/// Rows of events that do not exist or are dropped and cleared (but for records that ended before the last was dropped,
/// 25 hours after they were written), and rows that no batch or booking names, table by table.
const STRAY_ROWS: &str = "-- stray_rows
WITH kept AS (
    SELECT event_no FROM events
    WHERE event_no NOT IN (SELECT event_no FROM dropped_events WHERE is_cleared)
), clearing AS (
    SELECT event_no FROM dropped_events WHERE NOT is_cleared
)
SELECT 'units', count(*) FROM units t
    WHERE NOT EXISTS (SELECT FROM kept e WHERE e.event_no = t.event_no)
UNION ALL
SELECT 'audit', count(*) FROM audit t
    WHERE NOT EXISTS (SELECT FROM batches b WHERE b.id = t.batch AND b.event_no = t.event_no)
UNION ALL
SELECT 'batches', count(*) FROM batches t
    WHERE event_no <> -1 AND NOT EXISTS (SELECT FROM kept e WHERE e.event_no = t.event_no)
UNION ALL
SELECT 'feed', count(*) FROM feed t
    WHERE NOT EXISTS (SELECT FROM batches b WHERE b.id = t.batch AND b.event_no = t.event_no)
UNION ALL
SELECT 'feed_heads', count(*) FROM feed_heads t
    WHERE NOT EXISTS (SELECT FROM feed f WHERE f.event_no = t.event_no)
      AND event_no NOT IN (SELECT event_no FROM clearing)
UNION ALL
SELECT 'holds', count(*) FROM holds t
    WHERE NOT EXISTS (SELECT FROM (SELECT event_no, unnest(holds) AS id FROM batches) b
                      WHERE b.id = t.id AND b.event_no = t.event_no)
UNION ALL
SELECT 'bookings', count(*) FROM bookings t
    WHERE NOT EXISTS (SELECT FROM (SELECT event_no, unnest(bookings) AS id FROM batches) b
                      WHERE b.id = t.id AND b.event_no = t.event_no)
UNION ALL
SELECT 'holders', count(*) FROM holders t
    WHERE NOT EXISTS (SELECT FROM kept e WHERE e.event_no = t.event_no)
UNION ALL
SELECT 'lines', count(*) FROM lines t
    WHERE NOT EXISTS (SELECT FROM bookings b WHERE b.id = t.booking AND b.event_no = t.event_no)
UNION ALL
SELECT 'outbox', count(*) FROM outbox t
    WHERE NOT EXISTS (SELECT FROM bookings b WHERE b.id = t.booking) OR kind NOT BETWEEN 0 AND 4
       OR (kind = 2) <> (amount IS NOT NULL AND total IS NOT NULL)
UNION ALL
SELECT 'idempotency', count(*) FROM idempotency t
    WHERE kind < 5 AND at >= (SELECT coalesce(max(at), 0) - 90000000 FROM dropped_events)
                   AND NOT EXISTS (SELECT FROM holds h WHERE h.id = t.subject)
                   AND NOT EXISTS (SELECT FROM bookings b WHERE b.id = t.subject)";

const NUMBERS: &str = "-- numbers
SELECT (SELECT n FROM sequencer WHERE one = 1), count(*), coalesce(max(n), 0), count(DISTINCT batch),
       (SELECT coalesce(sum(numbered), 0)::bigint FROM dropped_events)
FROM feed";

const SOME_RECORDS: &str = "-- some_records
SELECT key, fingerprint, kind, subject, body FROM idempotency WHERE key > $1 ORDER BY key LIMIT $2";

pub(super) async fn check(
    connection: &mut Connection,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    for row in connection.rows(STRAY_ROWS, &[]).await? {
        let mut row = Reader::postgres(&row, "counts");
        report.strays(row.get()?, row.get()?);
    }
    check_numbers(connection, report).await?;
    for name in guards::missing(connection).await? {
        let detail = format!("`{name}` is missing or switched off: the database refuses less");
        report.find(None, "guards", detail);
    }
    check_records(connection, report).await?;
    let each = |row: &mut Reader<'_>| Ok(get(row).map(drop));
    let all = connection.read((keys::API_KEYS, "api_keys"), &[], each);
    all.await?.into_iter().for_each(|key| note(report, key));
    let each = |row: &mut Reader<'_>| Ok(get_master(row).map(drop));
    let all = connection.read((keys::MASTER_KEYS, "master_keys"), &[], each);
    all.await?.into_iter().for_each(|key| note(report, key));
    Ok(())
}

/// Checks that over all events the feed has every number once, up to the sequencer's, except those
/// of dropped events.
async fn check_numbers(
    connection: &mut Connection,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let read = |row: &mut Reader<'_>| {
        let last: Option<i64> = row.get()?;
        let numbers: [i64; 4] = [row.get()?, row.get()?, row.get()?, row.get()?];
        Ok((last, numbers))
    };
    let found = connection.first((NUMBERS, "feed"), &[], read).await?;
    let Some((last, [count, max, batches, gone])) = found else {
        return Ok(());
    };
    let all = count.saturating_add(gone);
    let is_end = if gone == 0 { max == all } else { max <= all };
    if last != Some(all) || !is_end || batches != count {
        let last = last.map_or_else(|| "nothing".to_owned(), |last| last.to_string());
        let detail = format!(
            "the feed has {count} rows of {batches} batches, the last is {max}, recorded is {last}, {gone} \
             are dropped"
        );
        report.find(None, "I20 numbers", detail);
    }
    Ok(())
}

async fn check_records(
    connection: &mut Connection,
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let limit = most(VERIFY_ROWS);
    let mut after: Vec<u8> = Vec::new();
    loop {
        let values = [bind(&after), bind(&limit)];
        let rows = connection.rows(SOME_RECORDS, &values).await?;
        for row in &rows {
            let read = get_record(&mut Reader::postgres(row, "idempotency"));
            if let Ok((key, reply)) = &read
                && serde_json::from_slice::<serde::de::IgnoredAny>(&reply.json()).is_err()
            {
                let detail = format!("the answer of {:?} is not JSON", Id(key.scoped.0));
                report.find(None, "I12 record", detail);
            }
            note(report, read.map(drop));
        }
        let Some(row) = rows.last() else {
            return Ok(());
        };
        let key: &[u8] = Reader::postgres(row, "idempotency").get()?;
        after = key.to_vec();
    }
}

fn note(report: &mut VerifyReport, read: Result<(), crate::ledger::rows::Damaged>) {
    if let Err(damage) = read {
        report.damaged(None, &damage);
    }
}
