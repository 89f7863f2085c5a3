//! Checks a ledger against itself, on a live folder or a stopped one, and changes nothing. The
//! history of each event goes to the auditor and is hashed again link by link; what it leads to must
//! be what the unit rows, the holds and the bookings say.

mod books;
mod rest;
mod walk;

use std::path::Path;

use rusqlite::Connection;
use serde::Serialize;
use soldonce_core::{Commit, Event, UnitNo};

use self::books::Books;
use super::OpenError;
use super::connection;
use super::fault::Fault;
use super::folder::{Folder, Mark};
use super::tables::head::Head;
use super::tables::{audit, charts, events};

/// Something that is wrong with a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of which event; none for the ledger as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Which promise is broken (assurance.md 3.1), or what was looked at.
    pub what: String,
    /// What was found.
    pub detail: String,
}

/// What was looked at and what was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Events.
    pub events: u64,
    /// Commits of events.
    pub commits: u64,
    /// Transitions of units: rows of the audit.
    pub transitions: u64,
    /// Unit rows.
    pub units: u64,
    /// Holds.
    pub holds: u64,
    /// Bookings.
    pub bookings: u64,
    /// Everything that is wrong, at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
}

/// Most findings in one report: a damaged file can have millions.
pub const FINDINGS_MAX: usize = 1_000;

/// How far a verification is: rows of the audit done, and rows in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows of the audit that were checked.
    pub done: u64,
    /// Rows of the audit when it began.
    pub all: u64,
}

/// Shows how far a verification is.
struct Meter<'a> {
    all: u64,
    progress: &'a mut dyn FnMut(Progress),
}

impl Meter<'_> {
    fn show(&mut self, done: u64) {
        let all = self.all.max(done);
        (self.progress)(Progress { done, all });
    }
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn find(&mut self, event: Option<&Event>, what: impl Into<String>, detail: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            let event = event.map(|event| event.id.to_string());
            let (what, detail) = (what.into(), detail.into());
            self.findings.push(Finding {
                event,
                what,
                detail,
            });
        }
    }

    fn fault(&mut self, event: Option<&Event>, fault: &Fault) {
        self.find(event, "damaged row", fault.to_string());
    }
}

const AUDIT_ROWS: &str = "-- audit_rows
SELECT coalesce(sum(steps), 0) FROM chains";

const INTEGRITY: &str = "-- integrity
PRAGMA integrity_check(20)";

/// Verifies the ledger of a folder. On a live one it sees a single commit's state, and the server
/// goes on.
///
/// # Errors
/// [`OpenError`] when there is no ledger, or it cannot be read at all.
pub fn verify(
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<VerifyReport, OpenError> {
    let folder = Folder::new(folder);
    // Read before the snapshot is taken: the ledger may only be further.
    let mark = folder.high_water();
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
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Fault> {
    let all: i64 = connection.query_row(AUDIT_ROWS, [], |row| row.get(0))?;
    let all = u64::try_from(all).unwrap_or(0);
    let mut meter = Meter { all, progress };
    meter.show(0);
    match events::all(connection, |number| charts::find(connection, number)) {
        Err(fault) => report.fault(None, &fault),
        Ok(events) => check_events(connection, &events, report, &mut meter)?,
    }
    rest::check(connection, report)
}

/// Every statement of this folder, for the test that prepares them all.
#[cfg(test)]
pub(super) fn statements() -> Vec<&'static str> {
    [&[AUDIT_ROWS, INTEGRITY], rest::STATEMENTS].concat()
}

/// Event by event along the audit, then once along holds and bookings, which are in the order of
/// their making.
fn check_events(
    connection: &Connection,
    events: &[Event],
    report: &mut VerifyReport,
    meter: &mut Meter<'_>,
) -> Result<(), Fault> {
    let mut books = Books::new(events);
    books.read_holds(connection, report)?;
    for event in events {
        report.events += 1;
        let terms = books.take_terms(event.no);
        let left = walk::walk(connection, event, terms, report, meter)?;
        books.check_units(connection, event, &left, report)?;
        meter.show(report.transitions);
    }
    books.check_holds(report);
    books.check_bookings(connection, report)?;
    books.check_ownerless(report);
    Ok(())
}

/// The head row, and the file that remembers how far the ledger was.
fn check_head(
    connection: &Connection,
    mark: Result<Option<Mark>, Fault>,
    report: &mut VerifyReport,
) -> Result<(), Fault> {
    let head = match Head::find(connection) {
        Ok(Some(head)) => head,
        Ok(None) => {
            report.find(
                None,
                "head",
                "the row that says where the ledger stands is missing",
            );
            return Ok(());
        }
        Err(fault @ Fault::Damaged(_)) => {
            report.fault(None, &fault);
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    match mark {
        Err(fault) => report.fault(None, &fault),
        Ok(None) => report.find(None, "high-water", "the file is missing"),
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

/// SQLite's own check of its pages and indexes: what it complains of.
fn check_pages(folder: &Folder) -> Result<Vec<String>, OpenError> {
    let connection = connection::reader(folder)?;
    let mut statement = connection.prepare(INTEGRITY)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines = lines.map(|line| line.unwrap_or_else(|error| error.to_string()));
    Ok(lines.filter(|line| line != "ok").collect())
}

/// Every transition of a unit, oldest first, each as a commit of its own; with its event. For `why`,
/// on a live folder or a stopped one.
///
/// # Errors
/// [`OpenError`] when there is no ledger or it cannot be read; `Ok(None)` when it has no such event
/// or unit.
pub fn unit_history(
    folder: &Path,
    event: &str,
    unit: &str,
    limit: usize,
) -> Result<Option<(Event, Vec<Commit>)>, OpenError> {
    let connection = connection::reader(&Folder::new(folder))?;
    let all = events::all(&connection, |number| charts::find(&connection, number))?;
    let Some(event) = all.into_iter().find(|known| known.id.as_str() == event) else {
        return Ok(None);
    };
    let unit: Option<UnitNo> = event.chart.find_unit(unit);
    match unit {
        None => Ok(None),
        Some(unit) => {
            let commits = audit::of_unit(&connection, event.no, unit, limit)?;
            Ok(Some((event, commits)))
        }
    }
}
