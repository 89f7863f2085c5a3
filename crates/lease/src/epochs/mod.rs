//! Sources of epochs: a file for one host, a row of PostgreSQL for many. `lease.md` 4.3.

mod file;
mod record;

pub use file::FileEpochs;
