//! Sources of epochs and tokens: a file for one host, a row of PostgreSQL for many. `lease.md` 4.3.

mod counter;
mod file;
#[cfg(feature = "postgres")]
mod postgres;
mod record;

pub use file::{FileEpochs, FileTokens};
#[cfg(feature = "postgres")]
pub use postgres::{PgEpochs, PgTokens};
