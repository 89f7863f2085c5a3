//! Every ledger keeps the same promises, and the SQLite one keeps them over restarts and damage.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must stop")]
#![expect(
    clippy::indexing_slicing,
    reason = "a test that cannot go on must stop"
)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other answer is shown and fails"
)]

mod ledgers;
mod oracle;

mod clocks;
mod conformance;
mod corrections;
mod differential;
mod gate;
mod guards;
mod money;
mod older;
mod payment;
mod postgres;
mod rate;
mod shield;
mod sqlite;
mod webhooks;
mod writer;
