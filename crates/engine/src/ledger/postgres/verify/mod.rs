//! Reads a ledger, live or stopped, for the checks of `ledger/verify`. Takes no lock that a writer
//! waits for and changes nothing, so a standby serves as well.
//!
//! Each event is read in one snapshot, and what belongs to no event in another: a snapshot keeps
//! VACUUM from removing rows, so none lives longer than it must. Commits without a number yet are
//! legal after those that have one.

mod event;
mod numbers;
mod owners;
mod rest;

use std::sync::Arc;

use soldonce_clock::SystemClock;
use soldonce_core::{Commit, Event};

use super::address::Serves;
use super::bind::bind;
use super::charts::Charts;
use super::database::{Connection, Database};
use super::failure::Failure;
use super::limits::OPERATOR_ANSWER_MS;
use super::tables::{Columns, events};
use super::{OpenError, PostgresOptions, reads, schema};
use crate::ledger::verify::{Meter, VerifyReport, Watcher};

/// One snapshot, and plans for whole tables: a session of ours plans for single rows.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                        SET LOCAL plan_cache_mode = force_custom_plan; \
                        SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; \
                        SET LOCAL enable_mergejoin = on; SET LOCAL enable_bitmapscan = on; \
                        SET LOCAL enable_memoize = on";

/// Estimates the rows of the audit: a count would take as long as a good part of the work.
const AUDIT_ROWS: &str = "-- audit_rows
SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'audit'::regclass";

const EVENT_NUMBERS: &str = "-- event_numbers
SELECT event_no, EXISTS (SELECT FROM dropped_events d WHERE d.event_no = events.event_no)
FROM events ORDER BY event_no";

/// Verifies the ledger of a database. Servers go on meanwhile.
///
/// # Errors
/// [`OpenError`] when there is no ledger, or it cannot be read.
///
/// # Cancel safety
/// It only reads.
pub async fn verify(
    options: &PostgresOptions,
    progress: &mut Watcher<'_>,
) -> Result<VerifyReport, OpenError> {
    let mut connection = open(options).await?;
    let mut report = VerifyReport::default();
    let all: Option<i64> = connection.one((AUDIT_ROWS, "audit"), &[]).await?;
    let all = u64::try_from(all.unwrap_or(0)).unwrap_or(0);
    let mut meter = Meter { all, progress };
    meter.show(0);
    let charts = Charts::default();
    let events = connection.rows(EVENT_NUMBERS, &[]).await?;
    for (expected, row) in (0_i32..).zip(&events) {
        let no: i32 = Columns::new(row, "events").get(0)?;
        if no != expected {
            let detail = format!("event {no} follows event {}", expected - 1);
            report.find(None, "event numbers", detail);
            break;
        }
    }
    for row in &events {
        let columns = Columns::new(row, "events");
        let (no, is_dropped): (i32, bool) = (columns.get(0)?, columns.get(1)?);
        if is_dropped {
            continue;
        }
        connection.begin(SNAPSHOT).await?;
        let checked = event::check(&mut connection, &charts, no, (&mut report, &mut meter)).await;
        note(&mut report, None, checked)?;
        connection.commit().await?;
        meter.show(report.transitions);
    }
    connection.begin(SNAPSHOT).await?;
    let checked = rest::check(&mut connection, &mut report).await;
    note(&mut report, None, checked)?;
    connection.commit().await?;
    Ok(report)
}

/// Reads the transitions of a unit, oldest first, each as a commit of its own. For `soldonce why`.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read; `Ok(None)` when it has no such event
/// or unit.
///
/// # Cancel safety
/// It only reads.
pub async fn unit_history(
    options: &PostgresOptions,
    event: &str,
    unit: &str,
) -> Result<Option<Vec<Commit>>, OpenError> {
    let mut connection = open(options).await?;
    let id = [bind(&event)];
    let rows = connection.rows(events::EVENT_BY_ID, &id).await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let event = Charts::default().event(&mut connection, row).await?.event;
    let Some(unit) = event.chart.find_unit(unit) else {
        return Ok(None);
    };
    let commits = reads::unit_history(&mut connection, event.no, unit, usize::MAX).await?;
    Ok(Some(commits))
}

/// Connects to a database, which may be a standby. Fails unless it has our tables.
pub(super) async fn open(options: &PostgresOptions) -> Result<Connection, OpenError> {
    let database = Database::new(options, Serves::Any, Arc::new(SystemClock))?;
    let mut connection = database.patient(OPERATOR_ANSWER_MS).connection().await?;
    schema::require_version(&mut connection).await?;
    Ok(connection)
}

/// Reports damage, under its event if it has one; returns any other failure, which ends the verification.
fn note(
    report: &mut VerifyReport,
    event: Option<&Event>,
    checked: Result<(), Failure>,
) -> Result<(), Failure> {
    match checked {
        Err(Failure::Damaged(damage)) => {
            report.damaged(event, &damage);
            Ok(())
        }
        other => other,
    }
}
