//! Makes the rules of `core` durable and concurrent: chart readers, ledgers, idempotency, sweeper,
//! feed, and the [`Engine`] that a server calls. The only crate with booking SQL.
//!
//! Reading order: the ledger's interface (`ledger/mod.rs`), what all ledgers do
//! (`ledger/batch.rs`), the default one (`ledger/sqlite/`), the public state (`live/`), what a
//! server calls (`engine/`).
#![allow(
    missing_docs,
    reason = "a field or variant whose name says it all has no line"
)]

pub mod limits;

pub mod chart;
pub mod ledger;
pub mod live;
pub mod reply;

mod caller;
mod catch_panic;
mod engine;
mod hex;
mod idempotency;
mod ids;
pub mod keys;
mod locks;
pub mod metrics;
mod pause;
pub mod payment;
pub mod rate;
mod redis;
mod secret;
mod shared_reading;
pub mod shield;
mod trouble;
pub mod webhook;

pub use caller::{Call, Caller, HoldSecret};
pub use engine::{
    AdoptedKey, ChangeAsk, CheckoutAsk, ClockState, Engine, EngineError, EventSummary, ExchangeAsk,
    ExtendAsk, GivenAsk, HoldAsk, ListAsk, ListPage, Mismatch, NamedUnits, Remedy, Reply, SellAsk,
    WishAsk, World, mismatches, run_dropper, run_key_watch, run_outbox, run_reconciler,
    run_shield_messages, run_sweeper, run_webhooks,
};
pub use idempotency::{CallKey, fingerprint};
pub use ids::Ids;
pub use ledger::RequestKey;
pub use live::Listing;
pub use redis::OptionalRedis;
pub use secret::{Secrets, Session};
