//! The check at the target of a write: a token lower than the highest one seen is refused. Only the
//! target can know that a writer was paused and overtaken, so the comparison belongs into the same
//! transaction as the write. `lease.md` 4.4.
//!
//! Three ways, for three kinds of targets:
//! - [`sql`]: fragments for a table that has two columns for the token;
//! - [`FENCE_ADMIT`]: an upsert into `soldonce_fence`, for a SQL target that has no such columns;
//! - [`Embedded`]: any embedded store with transactions.
//!
//! Who writes what it computed from what it read takes the read through the gate as well: a later
//! holder that has read must stop an earlier one from writing, or one of the two writes is undone.

mod embedded;
mod sql;

pub use embedded::{Admit, Embedded, FenceStore};
pub use sql::{
    Bound, Columns, FENCE_ADMIT, FENCE_HIGHEST, FENCE_TABLE, Fragments, InvalidColumn,
    Placeholders, sql,
};

use crate::FencingToken;

/// Which tokens a gate looks at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Trust {
    /// Only tokens with an epoch. The others may begin again at 1 when the backend loses its data,
    /// and the gate would then refuse every true holder, for ever.
    #[default]
    Anchored,
    /// Tokens without an epoch too.
    Unanchored,
}

/// The token has no epoch, and the gate was not told to trust such tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "token {0} has no epoch, so it may fall when the lease backend loses its data; give the locks \
     an epoch source, or let the gate trust unanchored tokens"
)]
pub struct UnanchoredToken(pub FencingToken);

impl Trust {
    /// Passes `token` on if it is trusted.
    ///
    /// # Errors
    /// [`UnanchoredToken`] when it has no epoch and the gate trusts anchored ones only.
    pub fn check(self, token: FencingToken) -> Result<FencingToken, UnanchoredToken> {
        match self {
            Trust::Anchored if !token.is_anchored() => Err(UnanchoredToken(token)),
            Trust::Anchored | Trust::Unanchored => Ok(token),
        }
    }
}
