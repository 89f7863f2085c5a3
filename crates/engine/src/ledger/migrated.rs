//! The result of a schema migration of a ledger.

use serde::Serialize;

/// What one migration call did. Of several concurrent calls, each step is listed by one only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// The schema version before; 0 when there were no tables.
    pub schema_before: i64,
    /// The schema version now: the newest one of this program.
    pub schema: i64,
    /// The migrations that this call applied, in their order, by name: `V1__ledger`; or `guards`, where a database of
    /// this schema lacked some.
    pub steps: Vec<String>,
}

impl Migrated {
    /// Builds the result from the report of a run of the migrations.
    pub(super) fn new(schema_before: i64, schema: i64, report: &refinery::Report) -> Self {
        let steps = report.applied_migrations().iter();
        Self {
            schema_before,
            schema,
            steps: steps.map(ToString::to_string).collect(),
        }
    }

    /// Lists the migrations of `runner` that are above `schema_before`, without applying them.
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
}
