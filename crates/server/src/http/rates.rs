//! Rate limits as requests meet them: as whom a request counts, what its answer says of the limit,
//! and the refusal. Headers are those of the IETF's draft of `RateLimit` fields
//! (draft-ietf-httpapi-ratelimit-headers-11).

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Once;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use soldonce_clock::BootTime;
use soldonce_engine::Caller;
use soldonce_engine::rate::Taken;

use super::app::App;
use super::kinds;
use super::problem::{Problem, whole_seconds};
use super::route::{Admission, Route, Verb};
use super::streams::StreamPermit;
use crate::accept::Peer;
use crate::rate::{
    Counted, Counting, FORWARDED_FOR, RateKind, STREAMS, client, id_of, is_among, is_https,
};

pub(super) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub(super) const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// The route whose requests are counted apart from other requests of a key.
pub(super) const ACQUIRE_LEASE: &str = "/v1/leases/{name}/acquire";

impl App {
    /// Counts a request as its caller's; a session's command as its address's too, and an acquire
    /// of a lease as one. None where no caller is counted.
    pub(super) async fn count(
        &self,
        route: Route,
        admitted: &Result<Option<Caller>, Problem>,
        parts: &Parts,
        now: BootTime,
    ) -> [Option<Counted<'_>>; 2] {
        let Some(who) = self.counted_as(route, admitted, parts) else {
            return [None, None];
        };
        let first = self.count_one(who, parts, now).await;
        if first.as_ref().is_some_and(is_refused) {
            return [first, None];
        }
        let (kind, id) = if who.kind == RateKind::Commands {
            (RateKind::AddressCommands, id_of(self.address_of(parts)))
        } else if who.kind == RateKind::Keys && route.path == ACQUIRE_LEASE {
            (RateKind::Acquires, who.id)
        } else {
            return [first, None];
        };
        let second = Counting { kind, id };
        [first, self.count_one(second, parts, now).await]
    }

    async fn count_one(&self, who: Counting, parts: &Parts, now: BootTime) -> Option<Counted<'_>> {
        let counted = self.rates.count(who, now).await?;
        if who.kind.is_by_address() && is_refused(&counted) {
            warn_of_proxy(self.unknown_proxy(parts));
        }
        Some(counted)
    }

    /// Tells as whom a request counts; None where it does not count.
    fn counted_as(
        &self,
        route: Route,
        admitted: &Result<Option<Caller>, Problem>,
        parts: &Parts,
    ) -> Option<Counting> {
        if !route.is_counted() {
            return None;
        }
        let of_address = || id_of(self.address_of(parts));
        let (kind, id) = match admitted {
            Ok(Some(Caller::Key { id, .. })) => (RateKind::Keys, u128::from_be_bytes(*id.bytes())),
            _ if route.admission == Admission::NewShopper => (RateKind::Sessions, of_address()),
            Ok(Some(Caller::Shopper(session))) if route.verb != Verb::Get => {
                let id = u128::from_be_bytes(*session.caller.bytes());
                (RateKind::Commands, id)
            }
            Ok(_) | Err(_) => (RateKind::Reads, of_address()),
        };
        Some(Counting { kind, id })
    }

    /// Finds the address that a request came from, behind trusted proxies too.
    pub(super) fn address_of(&self, parts: &Parts) -> IpAddr {
        client(peer_of(parts), &self.rates.trusted_proxies, &parts.headers)
    }

    /// Tells whether a trusted proxy says that the request came by HTTPS.
    pub(super) fn came_by_https(&self, parts: &Parts) -> bool {
        is_https(peer_of(parts), &self.rates.trusted_proxies, &parts.headers)
    }

    /// Counts one more stream of the address that asks for it.
    pub(super) fn enter_stream(&self, parts: &Parts) -> Result<StreamPermit, Problem> {
        let permit = self.streams.enter(self.address_of(parts));
        permit.map_err(|problem| {
            if problem.code() != kinds::RATE_LIMITED.code {
                return problem;
            }
            self.rates.counts.refused(STREAMS);
            let mut told = HeaderMap::new();
            let limit = (STREAMS, self.settings.streams.per_address);
            tell_held(&mut told, limit, 0, Duration::from_secs(1));
            problem.telling(told)
        })
    }

    /// Returns the peer if it names others and is not trusted: it may be a proxy.
    pub(super) fn unknown_proxy(&self, parts: &Parts) -> Option<IpAddr> {
        let peer = peer_of(parts);
        let is_trusted = is_among(peer, &self.rates.trusted_proxies);
        (parts.headers.contains_key(FORWARDED_FOR) && !is_trusted).then_some(peer)
    }
}

/// Tells the operator, once, that a proxy may be refused for all behind it.
pub(super) fn warn_of_proxy(proxy: Option<IpAddr>) {
    static WARNED: Once = Once::new();
    if let Some(peer) = proxy {
        WARNED.call_once(|| {
            tracing::warn!(
                %peer,
                "refused for asking too often or holding too much, and it names others in \
                 X-Forwarded-For: if this is your proxy, name it in trusted_proxies, so that its \
                 clients are counted apart"
            );
        });
    }
}

/// Returns the peer's address; tests without a socket have none, and get `0.0.0.0`.
fn peer_of(parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

fn is_refused(counted: &Counted<'_>) -> bool {
    matches!(counted.taken, Taken::Refused { .. })
}

/// Builds the refusal of a request that came too soon; None if it passed.
pub(super) fn refusal(counted: &Counted<'_>) -> Option<Problem> {
    let Taken::Refused { retry_in } = counted.taken else {
        return None;
    };
    let detail = match counted.limit.kind {
        RateKind::Sessions => "this address has opened as many sessions as it may for now",
        RateKind::Commands => "this session has done as much as it may for now",
        RateKind::AddressCommands => "this address has done as much as it may for now",
        RateKind::Lapses => {
            "too many holds of this address ended without being bought or released: it may hold more \
             later"
        }
        RateKind::Reads => "this address has asked as often as it may for now",
        RateKind::Keys => "this key has asked as often as it may for now",
        RateKind::Acquires => "this key has asked for as many leases as it may for now",
    };
    Some(Problem::too_often(detail, retry_in))
}

/// Says in an answer what a limit of what is open or held is, how much of it is left, and when there may be more.
pub(super) fn tell_held(
    headers: &mut HeaderMap,
    (name, limit): (&str, impl Display),
    left: u32,
    more_in: Duration,
) {
    tell_left(headers, name, left, more_in);
    // Digits and our own words are legal in a header, so this never fails.
    if let Ok(policy) = HeaderValue::try_from(format!("\"{name}\";q={limit}")) {
        headers.append(RATE_LIMIT_POLICY, policy);
    }
}

/// Room for the text of a limit: most fit.
const LIMIT_BYTES: usize = 64;

/// Says in an answer what the limit is, how much of it is left, and when there is more.
pub(super) fn tell(headers: &mut HeaderMap, counted: &Counted<'_>) {
    let (left, more_in) = match counted.taken {
        Taken::Passed { left, whole_in } => (left, whole_in),
        Taken::Refused { retry_in } => (0, retry_in),
    };
    headers.append(RATE_LIMIT_POLICY, counted.limit.policy.clone());
    tell_left(headers, counted.limit.kind.as_str(), left, more_in);
}

fn tell_left(headers: &mut HeaderMap, name: &str, left: u32, more_in: Duration) {
    let mut text = Vec::with_capacity(LIMIT_BYTES);
    let (mut left_digits, mut seconds_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    for part in [
        "\"",
        name,
        "\";r=",
        left_digits.format(left),
        ";t=",
        seconds_digits.format(whole_seconds(more_in)),
    ] {
        text.extend_from_slice(part.as_bytes());
    }
    // Digits and our own words are legal in a header, so this never fails.
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.append(RATE_LIMIT, value);
    }
}
