//! Reads the ledger of a folder, live or stopped, for the checks of `ledger/verify`, and changes
//! nothing. The file itself is checked, too: its pages, the checksums of its rows, and whether
//! commits are missing at its end.

mod rest;
mod walk;

use std::ops::Range;
use std::path::Path;

use rusqlite::Connection;
use soldonce_core::{Commit, Event, Timestamp};

use super::fault::Fault;
use super::folder::{Folder, Mark};
use super::rebuild::{require_database, require_whole};
use super::tables::head::Head;
use super::tables::{audit, bookings, charts, dropped, events, holds, outbox, units};
use super::{OpenError, connection};
use crate::ledger::verify::{Books, Ends, Meter, VerifyReport, Watcher};
use crate::ledger::{OpenMoney, Tombstone};

const AUDIT_ROWS: &str = "-- audit_rows
SELECT coalesce(sum(steps), 0) FROM chains";

const INTEGRITY: &str = "-- integrity
PRAGMA integrity_check(20)";

/// Checks that a folder, live or stopped, has a ledger that this program can read and that is not
/// behind its high-water mark; returns the time of its last commit, if any. Checks no other row.
///
/// # Errors
/// [`OpenError`]: `Missing` when there is none, `Schema` when it is older or newer, `Behind` or `Unmarked` when
/// commits are or may be missing, `Failed` when the file is no ledger.
pub fn look(folder: &Path) -> Result<Option<Timestamp>, OpenError> {
    let folder = Folder::new(folder);
    // The mark is read first, so that a live ledger can only be further.
    let mark = folder.high_water();
    require_database(&folder)?;
    let connection = connection::reader(&folder)?;
    let head = Head::find(&connection)?;
    require_whole(&folder, mark, head.as_ref())?;
    Ok(head.map(|head| head.clock))
}

/// Verifies the ledger of a folder. On a live one it reads a snapshot of one commit, and the server
/// goes on.
///
/// # Errors
/// [`OpenError`] when there is no ledger, or it cannot be read at all.
pub fn verify(folder: &Path, progress: &mut Watcher<'_>) -> Result<VerifyReport, OpenError> {
    let folder = Folder::new(folder);
    // The mark is read before the snapshot, so that a live ledger can only be further.
    let mark = folder.high_water();
    require_database(&folder)?;
    let mut connection = connection::reader(&folder)?;
    let snapshot = connection.transaction()?;
    std::thread::scope(|scope| {
        // SQLite's own check takes as long as ours: both at once, each on its own connection.
        let pages = scope.spawn(|| check_pages(&folder));
        let mut report = VerifyReport::default();
        check_head(&snapshot, mark, &mut report)?;
        check_tables(&snapshot, &mut report, progress)?;
        let lost = |_| OpenError::Failed("the check of the pages panicked".to_owned());
        for line in pages.join().map_err(lost)?? {
            report.find(None, "integrity", line);
        }
        Ok(report)
    })
}

fn check_tables(
    connection: &Connection,
    report: &mut VerifyReport,
    progress: &mut Watcher<'_>,
) -> Result<(), Fault> {
    let all: i64 = connection.query_row(AUDIT_ROWS, [], |row| row.get(0))?;
    let all = u64::try_from(all).unwrap_or(0);
    let mut meter = Meter { all, progress };
    meter.show(0);
    match events::all(connection, |number| charts::find(connection, number)) {
        Err(fault) => report.damaged(None, &fault),
        Ok(events) => check_events(connection, &events, report, &mut meter)?,
    }
    rest::check(connection, report)
}

/// Lists every statement of this folder, for the test that prepares them all.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    [
        &[AUDIT_ROWS, INTEGRITY],
        rest::STATEMENTS,
        super::guards::STATEMENTS,
    ]
    .concat()
}

/// Checks the audit and the units event by event, then the holds and the bookings in one scan each,
/// in the order in which they were made.
fn check_events(
    connection: &Connection,
    events: &[Event],
    report: &mut VerifyReport,
    meter: &mut Meter<'_>,
) -> Result<(), Fault> {
    let mut books = Books::new(events);
    holds::each(connection, |hold| match hold {
        Ok(hold) => books.add_hold(hold, report),
        Err(fault) => report.damaged(None, &fault),
    })?;
    for event in events {
        report.events += 1;
        let left = walk::walk(connection, event, books.terms(event.no), report, meter)?;
        check_units(connection, event, (&mut books, &left), report)?;
        books.check_stated(event, &left, report);
        meter.show(report.transitions);
    }
    books.check_holds(report);
    bookings::each_whole(connection, |booking| match booking {
        Ok(booking) => books.check_booking(&booking, report),
        Err(fault) => report.damaged(None, &fault),
    })?;
    books.check_shares(report);
    books.check_ownerless(report);
    Ok(())
}

fn check_units(
    connection: &Connection,
    event: &Event,
    (books, left): (&mut Books<'_>, &Ends),
    report: &mut VerifyReport,
) -> Result<(), Fault> {
    units::each_of(connection, event.no, |row| match row {
        Err(fault) => report.damaged(Some(event), &fault),
        Ok(row) => books.check_unit(event, (row.no, row.unit), left, report),
    })?;
    books.check_rows(event, left, report);
    Ok(())
}

/// Notes damage in the report, under its event if it has one; fails with any other fault, which ends the
/// verification. None if there is damage.
fn note<T>(
    report: &mut VerifyReport,
    event: Option<&Event>,
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match read {
        Err(fault @ Fault::Damaged(_)) => {
            report.damaged(event, &fault);
            Ok(None)
        }
        other => other.map(Some),
    }
}

/// Checks the head row against the high-water mark.
fn check_head(
    connection: &Connection,
    mark: Result<Option<Mark>, Fault>,
    report: &mut VerifyReport,
) -> Result<(), Fault> {
    let Some(head) = note(report, None, Head::find(connection))? else {
        return Ok(());
    };
    let Some(head) = head else {
        let detail = "the row that says where the ledger stands is missing";
        report.find(None, "head", detail);
        return Ok(());
    };
    match mark {
        Err(fault) => report.damaged(None, &fault),
        Ok(None) => report.remark(
            "high-water",
            "the file is missing, as it is from an online copy: commits that are missing at the end \
             cannot be seen, and the first start needs --accept-loss",
        ),
        Ok(Some(mark)) if mark.commits > head.commits => {
            let detail = format!(
                "commits up to {} were made, {} are here",
                mark.commits, head.commits
            );
            report.find(None, "I14 lost commits", detail);
        }
        Ok(Some(mark)) if mark.commits == head.commits && mark.hash != head.hash => {
            report.find(None, "high-water", "the last commit is another one");
        }
        Ok(Some(_)) => {}
    }
    Ok(())
}

/// Runs SQLite's own check of its pages and indexes; returns its complaints.
fn check_pages(folder: &Folder) -> Result<Vec<String>, OpenError> {
    let connection = connection::reader(folder)?;
    let mut statement = connection.prepare(INTEGRITY)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.map(|line| line.unwrap_or_else(|error| error.to_string()));
    Ok(lines.filter(|line| line != "ok").collect())
}

/// Reads the transitions of a unit, oldest first, each as a commit of its own. For `soldonce why`,
/// on a live folder or a stopped one.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read; `Ok(None)` when it has no such event
/// or unit.
pub fn unit_history(
    folder: &Path,
    event: &str,
    unit: &str,
) -> Result<Option<Vec<Commit>>, OpenError> {
    let connection = connection::reader(&Folder::new(folder))?;
    let all = events::all(&connection, |number| charts::find(&connection, number))?;
    let Some(event) = all.into_iter().find(|known| known.id.as_str() == event) else {
        return Ok(None);
    };
    let Some(unit) = event.chart.find_unit(unit) else {
        return Ok(None);
    };
    let commits = audit::of_unit(&connection, event.no, unit, usize::MAX)?;
    Ok(Some(commits))
}

/// Finds the row of a dropped event. For `soldonce why`, on a live folder or a stopped one.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read.
pub fn dropped(folder: &Path, event: &str) -> Result<Option<Tombstone>, OpenError> {
    let connection = connection::reader(&Folder::new(folder))?;
    let mut all = dropped::all(&connection)?.into_values();
    let found = all.find(|(id, _)| id.as_str() == event);
    Ok(found.map(|(_, tombstone)| tombstone))
}

/// Reads all payments, refunds and effects that are open, but for those begun in `recent`, on a
/// live folder or a stopped one.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read.
pub fn open_money(folder: &Path, recent: Range<Timestamp>) -> Result<OpenMoney, OpenError> {
    let connection = connection::reader(&Folder::new(folder))?;
    let unsettled = bookings::unsettled(&connection, recent.clone(), (None, usize::MAX))?;
    let mut steps = Vec::new();
    for open in outbox::open(&connection, &recent, usize::MAX)? {
        let booking = bookings::find(&connection, open.effect.booking())?;
        steps.extend(booking.map(|booking| (booking, open.effect)));
    }
    Ok(OpenMoney { unsettled, steps })
}
