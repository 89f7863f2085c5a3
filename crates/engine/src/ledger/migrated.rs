//! What bringing a ledger's tables up to date came to.

use serde::Serialize;

/// What one call that brings a schema up to date did. Of several at once, each step is one's alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The schema that was there; 0 is none.
    pub schema_before: i64,
    /// The schema that is there now: the newest one of this program.
    pub schema: i64,
    /// The steps that this call took, in their order, by name: `V1__ledger`.
    pub steps: Vec<String>,
}

impl Migrated {
    /// From what was found to what is known, by the steps that the runner tells of.
    pub(super) fn new(schema_before: i64, schema: i64, report: &refinery::Report) -> Self {
        let steps = report.applied_migrations().iter();
        Self {
            schema_before,
            schema,
            steps: steps.map(ToString::to_string).collect(),
        }
    }

    /// What has not been done yet.
    pub(super) fn to_come(schema_before: i64, schema: i64, runner: &refinery::Runner) -> Self {
        let mut all: Vec<_> = runner.get_migrations().iter().collect();
        all.sort_by_key(|migration| migration.version());
        all.retain(|migration| i64::from(migration.version()) > schema_before);
        Self {
            schema_before,
            schema,
            steps: all.into_iter().map(ToString::to_string).collect(),
        }
    }

    /// A ledger that was up to date.
    pub(super) const fn already(schema: i64) -> Self {
        Self {
            schema_before: schema,
            schema,
            steps: Vec::new(),
        }
    }
}
