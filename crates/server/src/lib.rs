//! `soldonce-server`: the engine over HTTP. It carries requests to the engine and answers back; it
//! decides nothing about units.
//!
//! A program that owns a runtime, an open [`Engine`](soldonce_engine::Engine) and bound sockets serves it
//! like this; [`run`] sweeps, serves, drains and closes the engine:
//!
//! ```no_run
//! use soldonce_engine::Engine;
//! use soldonce_server::{Access, Drained, Listeners, ServerSettings, run};
//! use tokio_util::sync::CancellationToken;
//!
//! async fn serve(engine: Engine, shutdown: CancellationToken) -> std::io::Result<Drained> {
//!     let public = soldonce_server::listen("127.0.0.1:8080").await?;
//!     let settings = ServerSettings {
//!         shoppers: Access::Open, // what `demo` does; `serve` keeps the default, `Closed`
//!         ..ServerSettings::default()
//!     };
//!     // `admin: Some(..)` moves `/metrics` from the public listener to that one.
//!     let listeners = Listeners { public, admin: None };
//!     // Returns after `shutdown.cancel()`, when the last answer is sent and the ledger is closed.
//!     Ok(run(listeners, engine, settings, shutdown).await)
//! }
//! ```
//!
//! [`routers`] gives the routers alone, for tests and benchmarks that bring their own socket or
//! none. Reading order: the route table (`http/mod.rs`), what happens around every handler
//! (`http/endpoint.rs`), how refusals are told (`http/problem`), then one file per resource.

mod accept;
mod client;
mod http;
mod leases;
pub mod limits;
mod locks;
mod rate;
mod run;
mod settings;
mod test_payments;
mod throttle;

use locks::lock;

pub use accept::{AcceptLimits, AcceptSettings, ConnectionCounts, Drained, Peer, listen, serve};
pub use client::{Client, ClientError, Response};
pub use http::{AdminRoutes, RouteInfo, Routers, openapi, route_table, routers};
pub use leases::{LeasePlace, LeaseSettings};
pub use rate::{HeldLimits, InvalidNetwork, Network, RateLimits};
pub use run::{Listeners, run};
pub use settings::{
    Access, CookieSecurity, FeedSettings, PageFeed, ServerSettings, StreamLimits, StripeNotices,
};
pub use test_payments::{
    BankAnswer, CardAnswer, ShownCard, TestIntent, TestPaymentFuture, TestPaymentRefusal,
    TestPayments,
};
