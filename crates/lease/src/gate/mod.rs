//! The check at the target of a write: a token lower than the highest one seen is refused. Only the
//! target can know that a writer was paused and overtaken, so the comparison belongs into the same
//! transaction as the write. `lease.md` 4.4.
//!
//! Three ways, for three kinds of targets:
//! - a column for the token in the table of the write, `lease_token bigint not null default 0`, set and compared in one
//!   statement: `UPDATE job SET state = $1, lease_token = $3 WHERE id = $2 AND lease_token <= $3`, with
//!   [`crate::FencingToken::sql`] as `$3`. No row: stale, or there is no such job;
//! - [`FENCE_ADMIT`]: an upsert into `soldonce_fence`, for a SQL target that has no such column;
//! - [`Embedded`]: any embedded store with transactions.
//!
//! A read-modify-write must pass the gate at its read as well: a later holder that has read must
//! stop an earlier one from writing, or one of the two writes is lost.

mod embedded;

pub use embedded::{Admit, Embedded, FenceStore};

/// Creates the table of [`FENCE_ADMIT`], for PostgreSQL and SQLite: the highest token seen of each
/// resource.
pub const FENCE_TABLE: &str = "\
-- fence_table
CREATE TABLE IF NOT EXISTS soldonce_fence (
    resource text NOT NULL PRIMARY KEY,
    token bigint NOT NULL
)";

/// Admits a write in the transaction of that write. Parameters: resource, then the token as
/// [`crate::FencingToken::sql`] gives it. One row: write and commit. No row: stale, roll back. The
/// parameters are written `$1` and in order, so SQLite counts them as PostgreSQL does.
pub const FENCE_ADMIT: &str = "\
-- fence_admit
INSERT INTO soldonce_fence AS f (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token
RETURNING token";

/// Reads the highest token seen of resource `$1`: the argument of `report_overtaken` after a stale write.
pub const FENCE_HIGHEST: &str = "\
-- fence_highest
SELECT token FROM soldonce_fence WHERE resource = $1";
