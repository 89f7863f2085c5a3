//! Makes the rules of `core` durable and concurrent: chart readers, ledgers, idempotency, sweeper,
//! feed, and the [`Engine`] that a server calls. The only crate with booking SQL.

pub mod chart;
pub mod keys;
pub mod ledger;
pub mod reply;
