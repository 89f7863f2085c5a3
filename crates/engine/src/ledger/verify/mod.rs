//! The checks of a ledger against itself, whichever store it is in. The history of each event goes
//! to the auditor and is hashed again link by link; what it leads to must be what the unit rows, the
//! holds and the bookings say. Each store reads its own rows and hands them over: `sqlite/verify`,
//! `postgres/verify`. `walk` has the auditor and the chain, `books` units, holds and bookings; each store's `rest`
//! has its guards, keys, charts and what no event names; SQLite looks at pages and the check value of each row, and
//! PostgreSQL at the numbers of the feed (`numbers`). Shares with what it judges: core's types, the row codecs
//! and the chain's hash in `rows/`; not the rules, which the auditor has in words of its own.

mod books;
mod walk;

use std::fmt::Display;

use serde::Serialize;
use soldonce_core::Event;

pub(crate) use self::books::Books;
pub(crate) use self::walk::{ChainEnd, Left, Walk, history_of};

/// Something that is wrong with a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Of which event; none for the ledger as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Which promise is broken (assurance.md 3.1), or what was looked at.
    pub what: String,
    pub detail: String,
}

/// What was looked at and what was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    pub events: u64,
    pub commits: u64,
    /// Transitions of units: rows of the audit.
    pub transitions: u64,
    pub units: u64,
    pub holds: u64,
    pub bookings: u64,
    /// Everything that is wrong, at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// What could not be looked at, and is not wrong for that.
    pub remarks: Vec<Finding>,
}

/// Most findings in one report: a damaged store can have millions.
pub const FINDINGS_MAX: usize = 1_000;

/// How far a verification is: rows of the audit done, and rows in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows of the audit that were checked.
    pub done: u64,
    /// Rows of the audit when it began, as far as the store tells without counting them.
    pub all: u64,
}

/// Who is told of the progress.
pub type Watcher<'a> = dyn FnMut(Progress) + Send + 'a;

/// Shows how far a verification is.
pub(crate) struct Meter<'a> {
    pub(crate) all: u64,
    pub(crate) progress: &'a mut Watcher<'a>,
}

impl Meter<'_> {
    pub(crate) fn show(&mut self, done: u64) {
        let all = self.all.max(done);
        (self.progress)(Progress { done, all });
    }
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(
        &mut self,
        event: Option<&Event>,
        what: impl Into<String>,
        detail: impl Into<String>,
    ) {
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

    /// Notes what could not be looked at.
    pub(crate) fn remark(&mut self, what: &str, detail: &str) {
        self.remarks.push(Finding {
            event: None,
            what: what.to_owned(),
            detail: detail.to_owned(),
        });
    }

    /// A row that cannot be.
    pub(crate) fn damaged(&mut self, event: Option<&Event>, damage: &impl Display) {
        self.find(event, "damaged row", damage.to_string());
    }

    /// Rows of this table belong to nothing that there is.
    pub(crate) fn strays(&mut self, table: &str, rows: i64) {
        if rows > 0 {
            let detail = format!("{rows} rows of {table} belong to nothing");
            self.find(None, "stray rows", detail);
        }
    }
}
