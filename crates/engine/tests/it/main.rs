//! Every ledger keeps the same promises, and the SQLite one keeps them over restarts and damage.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]

mod ledgers;

mod conformance;
mod differential;
mod sqlite;
