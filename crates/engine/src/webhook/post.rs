//! One POST: to an address that is looked up and checked for this connection, with a time-out,
//! without following redirects. Of the answer only the head is read.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, Url, redirect};
use soldonce_core::Timestamp;
use soldonce_tls::choose_cryptography;

use super::MessageId;
use super::address::Destinations;
use super::problem::{ForbiddenAddress, in_a_word};
use super::retry_after::RetryAfter;
use super::sign::seconds;
use crate::limits::{WEBHOOK_CALL_MS, WEBHOOK_CONNECT_MS};

/// The result of a lookup.
pub type LookupFuture = Pin<Box<dyn Future<Output = std::io::Result<Vec<SocketAddr>>> + Send>>;

/// Looks up the addresses of a name. Called anew for each connection.
pub trait Lookup: Send + Sync + 'static {
    /// Looks up the addresses of `host`; port 0 is that of the URL.
    fn lookup(&self, host: String) -> LookupFuture;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> LookupFuture {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0_u16)).await?;
            Ok(found.collect())
        })
    }
}

/// Sends messages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sender {
    client: Client,
    destinations: Destinations,
}

/// The content of one attempt.
pub(crate) struct SignedMessage<'a> {
    pub(crate) url: &'a str,
    pub(crate) id: MessageId,
    /// When it was signed.
    pub(crate) at: Timestamp,
    pub(crate) signatures: String,
    pub(crate) body: &'a str,
}

/// The outcome of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostOutcome {
    /// The status of the answer, if there was one.
    pub(crate) status: Option<u16>,
    /// Why it does not count as delivered.
    pub(crate) problem: Option<&'static str>,
    /// How long the endpoint asks to wait.
    pub(crate) retry_after: Option<RetryAfter>,
}

/// The status by which an endpoint says that it wants no more messages.
const GONE: u16 = 410;
/// The statuses whose `Retry-After` counts: too many requests, or unavailable.
const BUSY: [u16; 2] = [429, 503];

impl PostOutcome {
    /// Returns the outcome of an attempt that had no answer.
    pub(crate) const fn failed(problem: &'static str) -> Self {
        Self {
            status: None,
            problem: Some(problem),
            retry_after: None,
        }
    }

    fn answered(response: &Response) -> Self {
        let status = response.status().as_u16();
        let problem = match status {
            200..=299 => None,
            300..=399 => Some("redirected"),
            GONE => Some("gone"),
            _ => Some("refused"),
        };
        let asked = response.headers().get(RETRY_AFTER);
        let asked = asked.filter(|_| BUSY.contains(&status));
        let asked = asked.and_then(|value| value.to_str().ok());
        Self {
            status: Some(status),
            problem,
            retry_after: asked.and_then(RetryAfter::parse),
        }
    }

    pub(crate) fn is_gone(self) -> bool {
        self.status == Some(GONE)
    }
}

impl Sender {
    /// Creates a sender to these destinations, which finds addresses by `lookup`.
    ///
    /// # Errors
    /// Says in words why TLS cannot be set up.
    pub fn new(destinations: Destinations, lookup: Arc<dyn Lookup>) -> Result<Self, String> {
        choose_cryptography();
        let lookup = CheckedLookup {
            destinations,
            lookup,
        };
        let client = Client::builder()
            .user_agent(concat!("soldonce/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(lookup))
            // Each attempt has a connection of its own, whose address was checked for it.
            .pool_max_idle_per_host(0)
            .connect_timeout(Duration::from_millis(WEBHOOK_CONNECT_MS))
            .timeout(Duration::from_millis(WEBHOOK_CALL_MS))
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self {
            client,
            destinations,
        })
    }

    /// Returns the destinations it may send to.
    pub fn destinations(&self) -> Destinations {
        self.destinations
    }

    pub(crate) async fn post(&self, message: SignedMessage<'_>) -> PostOutcome {
        let Ok(url) = Url::parse(message.url) else {
            return PostOutcome::failed("bad_url");
        };
        // The settings may be stricter than when the endpoint was made. A host that is an address
        // is connected to without a lookup, so it is checked here.
        if self.destinations.require(message.url).is_err() {
            return PostOutcome::failed("forbidden_address");
        }
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", seconds(message.at).to_string())
            .header("webhook-signature", message.signatures)
            .body(message.body.to_owned());
        match request.send().await {
            Ok(response) => PostOutcome::answered(&response),
            Err(error) => PostOutcome::failed(in_a_word(&error)),
        }
    }
}

/// A lookup that checks its addresses: what it passes is connected to, and the name is not looked
/// up again.
struct CheckedLookup {
    destinations: Destinations,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let looked = self.lookup.lookup(name.as_str().to_owned());
        let by = self.destinations;
        Box::pin(async move {
            let found = looked.await?;
            // If one is forbidden, all are: a name that mixes them is not trusted.
            match found.iter().find(|address| !by.allow(address.ip())) {
                Some(address) => Err(ForbiddenAddress(*address).into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}
