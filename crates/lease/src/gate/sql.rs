//! The gate for SQL targets that have no column for the token.

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
