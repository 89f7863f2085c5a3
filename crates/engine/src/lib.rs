//! Makes the rules of `core` durable and concurrent: chart readers, ledgers, idempotency, sweeper,
//! feed, and the [`Engine`] that a server calls. The only crate with booking SQL.
//!
//! ```
//! use std::sync::Arc;
//! use soldonce_core::{Amount, Currency, EventId, HoldId, NewEvent, Policy, Text};
//! use soldonce_engine::{Call, Caller, Engine, HoldAsk, RequestKey, chart};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("soldonce-doc-engine-{}", std::process::id()));
//! let engine = Engine::open_folder(&folder).await?;
//! let (session, _token) = engine.open_session();
//! let mut call = Call::new(Caller::Shopper(session), "request-1");
//! let hall: &[u8] = br#"{"format":"grid","rows":5,"seats_per_row":10,"category":"Any"}"#;
//! let talk = NewEvent {
//!     id: EventId::parse("talk")?,
//!     name: Text::parse("A talk")?,
//!     starts_at: None,
//!     currency: Currency::parse("EUR").ok_or("no currency")?,
//!     chart: Arc::new(chart::read(hall)?.chart),
//!     prices: [("Any".to_owned(), Amount::ZERO)].into(),
//!     policy: Policy::default(),
//!     fingerprint: [0; 32], // of the request: the same one again finds the event
//! };
//! engine.create_event(&call, talk, hall.into()).await?;
//! let held = engine.hold(&call, &EventId::parse("talk")?, HoldAsk::best(2)).await?;
//! let hold = HoldId::from_bytes(held.stored.subject);
//! let key = RequestKey::new(call.caller.id(), "confirm", "order-77", &[&hold.to_string()], b"{}");
//! call.key = Some(key.into()); // repeated with it, the sale has its effect once
//! let booked = engine.confirm(&call, hold, None, None).await?;
//! assert!(String::from_utf8(booked.stored.json())?.contains("\"state\":\"confirmed\""));
//! engine.close().await;
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
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

use ledger::postgres::PostgresLedger;
use ledger::sqlite::SqliteLedger;
use live::{Live, LocalShield};
use payment::ClientSecret;
use payment::stripe::{Stripe, StripeKey, WebhookSecrets};

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

/// Writes the name alone: the rest has secrets or is long.
macro_rules! opaque {
    ($($type:ident),+) => {
        $(impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        })+
    };
}

opaque! {
    ClientSecret, Engine, HoldSecret, Ids, Live, LocalShield, OptionalRedis, PostgresLedger,
    SqliteLedger, Stripe, StripeKey, WebhookSecrets, World
}
