//! What an operator may set of the server. Parsed by the binary, plain values here.

use std::sync::Arc;

use soldonce_core::Span;
use soldonce_engine::payment::AccountId;
use soldonce_engine::payment::stripe::WebhookSecrets;
use soldonce_tls::Listener;

use crate::accept::AcceptLimits;
use crate::leases::LeaseSettings;
use crate::limits::{FEED_TICK_MS, STREAMS_MAX, STREAMS_PER_ADDRESS_MAX};
use crate::rate::RateLimits;
use crate::test_payments::TestPayments;

/// Whether shoppers may come without an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Access {
    /// Only API keys are served.
    #[default]
    Closed,
    /// Strangers may look, open a session and hold.
    Open,
}

/// Settings of the server.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// Whether shoppers may come without an API key (`access.shoppers`); default closed.
    pub shoppers: Access,
    /// Whether the session cookie is for HTTPS alone; default no, because the default listener
    /// speaks plain HTTP on the own machine.
    pub cookie: CookieSecurity,
    /// Origins of other pages that may call with credentials, such as `https://shop.example`;
    /// default none. The server's own page needs no entry.
    pub allowed_origins: Vec<String>,
    /// How Stripe's notices are verified; by default none is believed.
    pub stripe: Option<StripeNotices>,
    /// Where the page of a demo pays with test cards; default nowhere, and a shop never has one.
    pub test_payments: Option<Arc<dyn TestPayments>>,
    /// Bounds on streams: feeds, watched leases, gRPC.
    pub streams: StreamLimits,
    /// How feeds are sent.
    pub feed: FeedSettings,
    /// How often callers may ask, and which proxies are believed.
    pub rates: RateLimits,
    /// Where leases are, and how many a key may have.
    pub leases: LeaseSettings,
    /// Bounds of the accept loop.
    pub accept: AcceptLimits,
    /// TLS for all listeners; default none.
    pub tls: Option<Listener>,
    /// How long an event is kept once it is over, then it is dropped; by default none ever is.
    pub keep_ended_events: Option<Span>,
}

/// What Stripe's notices are checked with.
#[derive(Clone, Debug)]
pub struct StripeNotices {
    /// What they are signed with.
    pub secrets: WebhookSecrets,
    /// The account whose payments are meant, if it is not the one that signs. Its notices name it.
    pub account: Option<AccountId>,
    /// Whether the key moves real money; None where it does not say.
    pub live: Option<bool>,
}

/// Over what the session cookie may travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CookieSecurity {
    /// Over HTTP too.
    #[default]
    Plain,
    /// Over HTTPS alone where a trusted proxy says that the request came by it, else over HTTP too.
    Forwarded,
    /// Over HTTPS alone.
    Secure,
}

/// How feeds are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedSettings {
    /// Least time between two frames of an event, milliseconds; default [`FEED_TICK_MS`].
    pub tick_ms: u64,
    /// How the server's own page follows an event; default by streams.
    pub page: PageFeed,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self {
            tick_ms: FEED_TICK_MS,
            page: PageFeed::default(),
        }
    }
}

/// How the page follows an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PageFeed {
    /// By a stream for each page.
    #[default]
    Stream,
    /// By a request each second, which a cache in front of the server answers.
    Poll,
}

/// Bounds on streams: feeds, watched leases, gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Most streams at once; default [`STREAMS_MAX`].
    pub total: usize,
    /// Most streams at once of one address (IPv6: of one /64 network); default
    /// [`STREAMS_PER_ADDRESS_MAX`].
    pub per_address: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            total: STREAMS_MAX,
            per_address: STREAMS_PER_ADDRESS_MAX,
        }
    }
}
