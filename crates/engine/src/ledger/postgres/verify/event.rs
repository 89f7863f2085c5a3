//! Verifies one event, in one snapshot.

use std::collections::BTreeMap;

use soldonce_core::{Commit, Event, Seq};

use super::note;
use super::numbers::{self, NumberedBatch};
use super::owners::{self, BatchWrites};
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::charts::Charts;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::VERIFY_ROWS;
use crate::ledger::postgres::tables::{Id, audit, units};
use crate::ledger::rows::chain::AuditRow;
use crate::ledger::rows::reader::Reader;
use crate::ledger::verify::{Books, Ends, Meter, VerifyReport, Walk, history_of};

/// As `audit_of_batches`, but only rows that say themselves that they are of the batch: one that does
/// not is missing from the chain.
const AUDIT_TO_VERIFY: &str = select_audit!(
    "-- audit_to_verify",
    "b.id",
    "FROM batches b
     CROSS JOIN LATERAL unnest(b.units, b.versions) AS step (unit_no, version)
     CROSS JOIN LATERAL (
         SELECT * FROM audit
         WHERE event_no = b.event_no AND unit_no = step.unit_no AND version = step.version
           AND batch = b.id AND at = b.at OFFSET 0
     ) AS a
     LEFT JOIN feed f ON f.batch = b.id
     WHERE b.id = ANY ($1)
     ORDER BY b.at, b.place, a.command, a.n"
);

const IS_DROPPED: &str = "-- is_dropped
SELECT EXISTS (SELECT FROM dropped_events WHERE event_no = $1)";

const AUDIT_COUNT: &str = "-- audit_count
SELECT count(*) FROM audit WHERE event_no = $1";

pub(super) async fn check(
    connection: &mut Connection,
    charts: &Charts,
    no: i32,
    (report, meter): (&mut VerifyReport, &mut Meter<'_>),
) -> Result<(), Failure> {
    // It may have been dropped since the events were listed: then servers delete its rows.
    let asked = (IS_DROPPED, "dropped_events");
    let is_dropped: Option<bool> = connection.one(asked, &[bind(&no)]).await?;
    if is_dropped == Some(true) {
        return Ok(());
    }
    report.events += 1;
    let Some(row) = charts.event_of(connection, no).await? else {
        // Events are never deleted.
        report.find(None, "events", format!("event {no} went away"));
        return Ok(());
    };
    let event = &row.event;
    let mut books = Books::new([event]);
    let touched = BatchWrites::read(connection, no).await?;
    touched.check_event(event, row.version, report);
    owners::read_holds(connection, &touched, &mut books, (event, report)).await?;
    let history = history_of(event, row.steady_terms(), books.terms(event.no));
    let mut reading = AuditReader {
        connection,
        event,
        no,
        walk: Walk::begin(event, &history),
    };
    let read = reading.read(report, meter).await;
    if read.is_err() {
        // The rest of the event would only repeat it.
        return note(report, Some(event), read);
    }
    let left = reading.walk.finish(report);
    check_units(connection, (event, no), (&mut books, &left), report).await?;
    books.check_stated(event, &left, report);
    books.check_holds(report);
    let checked = owners::check_bookings(connection, &touched, &mut books, (event, report)).await;
    if checked.is_err() {
        return note(report, Some(event), checked);
    }
    books.check_shares(report);
    books.check_ownerless(report);
    Ok(())
}

/// A reading of the event's audit, which passes it to the checks of [`Walk`].
struct AuditReader<'a> {
    connection: &'a mut Connection,
    event: &'a Event,
    no: i32,
    walk: Walk<'a>,
}

impl AuditReader<'_> {
    async fn read(
        &mut self,
        report: &mut VerifyReport,
        meter: &mut Meter<'_>,
    ) -> Result<(), Failure> {
        let before = report.transitions;
        let mut last = Seq::default();
        loop {
            let page = numbers::numbered(self.connection, self.no, last).await?;
            let Some(end) = page.last() else {
                break;
            };
            let end = end.first;
            for some in chunks(&page, |numbered| numbered.steps) {
                self.numbered(some, report).await?;
                meter.show(before.saturating_add(self.walk.rows));
            }
            last = end;
        }
        let end = numbers::head(self.connection, self.no).await?;
        self.walk.check_end(end, report);
        self.tail(report).await?;
        let of_event = [bind(&self.no)];
        let counted = self.connection.one((AUDIT_COUNT, "audit"), &of_event);
        let counted = counted.await?.unwrap_or(0);
        if i64::try_from(self.walk.rows) != Ok(counted) {
            let rows = self.walk.rows;
            let detail = format!("the audit has {counted} rows, its batches name {rows} of them");
            report.find(Some(self.event), "I20 audit and batches", detail);
        }
        Ok(())
    }

    /// Checks batches that have their numbers.
    async fn numbered(
        &mut self,
        batches: &[NumberedBatch],
        report: &mut VerifyReport,
    ) -> Result<(), Failure> {
        let mut commits = self.commits(batches.iter().map(|one| one.batch)).await?;
        for numbered in batches {
            let found = commits.remove(&numbered.batch).unwrap_or_default();
            let (first, next) = (numbered.first, self.walk.seq.next());
            let is_whole = usize::try_from(numbered.commands) == Ok(found.len());
            if first != next || !numbered.is_same || !is_whole {
                let detail = format!(
                    "number {} is followed by {}, of a batch of {} commits, of which {} are there",
                    next.0 - 1,
                    first.0,
                    numbered.commands,
                    found.len()
                );
                report.find(Some(self.event), "I20 numbers", detail);
            }
            for commit in &found {
                AuditRow::of(commit).for_each(|row| self.walk.link(&row));
                self.walk.commit(commit);
            }
            self.walk.require_hash(first, numbered.hash);
        }
        Ok(())
    }

    /// Checks batches that wait for their numbers, as if they had them.
    async fn tail(&mut self, report: &mut VerifyReport) -> Result<(), Failure> {
        let waiting = numbers::unnumbered(self.connection, self.no).await?;
        let late = waiting.iter().filter(|one| one.is_late).count();
        if late > 0 {
            let detail = format!("{late} batches have no number and will never get one");
            report.find(Some(self.event), "I20 numbers", detail);
        }
        for some in chunks(&waiting, |one| one.steps) {
            let mut commits = self.commits(some.iter().map(|one| one.batch)).await?;
            let found = some.iter().filter_map(|one| commits.remove(&one.batch));
            for mut commit in found.flatten() {
                commit.seq = self.walk.seq.next();
                self.walk.commit(&commit);
            }
        }
        Ok(())
    }

    async fn commits(
        &mut self,
        batches: impl Iterator<Item = Id>,
    ) -> Result<BTreeMap<Id, Vec<Commit>>, Failure> {
        let ids: Vec<Id> = batches.collect();
        let rows = self.connection.rows(AUDIT_TO_VERIFY, &[bind(&ids)]).await?;
        let of_event = ids.iter().map(|id| (*id, self.event.no)).collect();
        Ok(audit::read_batches(&of_event, &rows)?)
    }
}

/// Splits batches into pieces of not much more than [`VERIFY_ROWS`] rows.
fn chunks<T>(batches: &[T], steps: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = batches;
    std::iter::from_fn(move || {
        let mut rows = 0_usize;
        let fits = |one: &&T| {
            let before = rows;
            rows = rows.saturating_add(steps(one));
            before < VERIFY_ROWS
        };
        let (some, others) = rest.split_at(rest.iter().take_while(fits).count());
        rest = others;
        (!some.is_empty()).then_some(some)
    })
}

async fn check_units(
    connection: &mut Connection,
    (event, no): (&Event, i32),
    (books, left): (&mut Books<'_>, &Ends),
    report: &mut VerifyReport,
) -> Result<(), Failure> {
    let each = |row: &mut Reader<'_>| Ok(units::get(row));
    let of = [bind(&no)];
    let rows = connection.read(units::UNITS_TO_VERIFY, &of, each).await?;
    let found = rows.len();
    for row in rows {
        match row {
            Ok(unit) => books.check_unit(event, unit, left, report),
            Err(damage) => report.damaged(Some(event), &damage),
        }
    }
    books.check_rows(event, left, report);
    let meant = usize::try_from(event.chart.units()).unwrap_or(usize::MAX);
    if found != meant {
        let detail = format!("{found} unit rows for {meant} units");
        report.find(Some(event), "I3 stored state", detail);
    }
    Ok(())
}
