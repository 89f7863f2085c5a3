//! The consistency checks of a ledger, for every store. The history of each event is checked by the
//! auditor and hashed again row by row; its final state must be that of the unit rows, the holds
//! and the bookings. Each store reads its own rows and passes them on: `sqlite/verify`,
//! `postgres/verify`. `walk` has the auditor and the chain, `books` units, holds and bookings; each
//! store's `rest` has its guards, keys, charts and rows of no event; SQLite checks pages and the
//! checksum of each row, and PostgreSQL the numbers of the feed (`numbers`). It shares core's
//! types, the row codecs and the chain's hash in `rows/` with the code that it checks; not the
//! rules, which the auditor implements itself.

mod books;
mod walk;

use std::fmt::Display;

use serde::Serialize;
use soldonce_core::Event;

pub(crate) use self::books::Books;
pub(crate) use self::walk::{ChainEnd, Ends, Walk, history_of};

/// Something that is wrong with a ledger, or could not be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The id of the event; none for the ledger as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// The invariant that is broken (assurance.md 3.1), or what was checked.
    pub what: String,
    pub detail: String,
}

/// What was checked and what was found wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    pub events: u64,
    pub commits: u64,
    /// Transitions of units: rows of the audit.
    pub transitions: u64,
    pub units: u64,
    pub holds: u64,
    pub bookings: u64,
    /// What is wrong, at most [`FINDINGS_MAX`] findings.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub findings_left_out: usize,
    /// What could not be checked; that alone is not wrong.
    pub remarks: Vec<Finding>,
}

/// Most findings in one report: a damaged store can have millions.
pub const FINDINGS_MAX: usize = 1_000;

/// How far a verification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Rows of the audit that were checked.
    pub done: u64,
    /// Rows of the audit in all when it began, as far as the store knows without counting them.
    pub all: u64,
}

/// The callback for the progress.
pub type Watcher<'a> = dyn FnMut(Progress) + Send + 'a;

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
    /// Tells whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn find(
        &mut self,
        event: Option<&Event>,
        what: impl Into<String>,
        detail: impl Into<String>,
    ) {
        if self.findings.len() == FINDINGS_MAX {
            self.findings_left_out += 1;
            return;
        }
        let event = event.map(|event| event.id.to_string());
        let (what, detail) = (what.into(), detail.into());
        self.findings.push(Finding {
            event,
            what,
            detail,
        });
    }

    /// Notes what could not be checked.
    pub(crate) fn remark(&mut self, what: &str, detail: &str) {
        self.remarks.push(Finding {
            event: None,
            what: what.to_owned(),
            detail: detail.to_owned(),
        });
    }

    /// Notes a row with illegal values.
    pub(crate) fn damaged(&mut self, event: Option<&Event>, damage: &impl Display) {
        self.find(event, "damaged row", damage.to_string());
    }

    /// Notes that `rows` rows of a table belong to nothing; does nothing if there are none.
    pub(crate) fn strays(&mut self, table: &str, rows: i64) {
        if rows > 0 {
            let detail = format!("{rows} rows of {table} belong to nothing");
            self.find(None, "stray rows", detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_most_are_counted() {
        let mut report = VerifyReport::default();
        let mut find_more = |findings: usize| {
            for _ in 0..findings {
                report.strays("holds", 1);
            }
            (report.findings.len(), report.findings_left_out)
        };
        assert_eq!(find_more(FINDINGS_MAX), (FINDINGS_MAX, 0));
        assert_eq!(find_more(2), (FINDINGS_MAX, 2));
    }
}
