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
mod sql;

pub use embedded::{Admit, Embedded, FenceStore};
pub use sql::{FENCE_ADMIT, FENCE_HIGHEST, FENCE_TABLE};
