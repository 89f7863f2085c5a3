//! Leases for programs in any language (api.md 7, lease.md 2.5): acquire, renew, release, inspect, watch. A server
//! keeps nothing of them but a count (docs/decisions/0262).

mod ask;
mod live;
mod watch;

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use soldonce_core::Advice;
use soldonce_lease::Name;
use utoipa::ToSchema;

pub(super) use self::live::LiveLeases;

use self::ask::{AcquireRequest, LeaseAnswer, LeaseCall, ReleaseRequest, RenewRequest};
use self::watch::WatchedLease;
use super::api_request::ApiRequest;
use super::app::App;
use super::kinds::{self, Kind};
use super::operation::{Tag, get, post};
use super::problem::{Handled, Problem};
use super::rates::{ACQUIRE_LEASE, tell_held};
use super::route::Admission::Lease;
use super::route::Parameter;
use super::table::Table;
use super::{answer, json};
use crate::leases::{LeaseError, Leased};
use crate::rate::LEASES;

const GROUP: Parameter = ("group", "The group of the name, if it has one", "string");
const NO_ANSWER: &[&Kind] = &[&kinds::LEASES_UNAVAILABLE];

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Leases);
    table.add(
        post(ACQUIRE_LEASE, Lease)
            .id("acquire_lease")
            .summary(
                "Acquires a lease, or waits for it. The same owner is granted the same lease again, with the same \
                 token: a request whose answer was lost is sent again as it was",
            )
            .takes::<AcquireRequest<'_>>(r#"{"owner": "host-7", "ttl_ms": 30000, "wait_ms": 5000}"#)
            .refuses(&[&[&kinds::LEASE_HELD], NO_ANSWER])
            .waits()
            .gives::<LeaseAnswer<'_>>(200, "The lease"),
        acquire,
    );
    table.add(
        post("/v1/leases/{name}/renew", Lease)
            .id("renew_lease")
            .summary("Gives a lease more time, within its cap")
            .takes::<RenewRequest<'_>>(
                r#"{"owner": "host-7", "token": "0000004294967297", "ttl_ms": 30000}"#,
            )
            .refuses(&[&[&kinds::LEASE_LOST], NO_ANSWER])
            .gives::<LeaseAnswer<'_>>(200, "The lease"),
        renew,
    );
    table.add(
        post("/v1/leases/{name}/release", Lease)
            .id("release_lease")
            .summary("Gives a lease back; that it was over before is no error")
            .takes::<ReleaseRequest<'_>>(r#"{"owner": "host-7", "token": "0000004294967297"}"#)
            .refuses(&[NO_ANSWER])
            .gives::<ReleasedLease<'_>>(200, "Whether it was still the caller's"),
        release,
    );
    table.add(
        get("/v1/leases/{name}", Lease)
            .id("inspect_lease")
            .summary("Tells whether a name is held, never by which owner")
            .query(&[GROUP])
            .refuses(&[NO_ANSWER])
            .gives::<InspectedLease<'_>>(200, "Its state"),
        inspect,
    );
    table.add(
        get("/v1/leases/{name}/watch", Lease)
            .id("watch_lease")
            .summary("The states of a name, as server-sent events: the state now, then each change within a second")
            .query(&[GROUP])
            .refuses(&[NO_ANSWER])
            .streams::<WatchedLease>(
                &watch::EVENTS,
                "`held`: by this token; `released`: given back, or free at the first look; `lost`: its time \
                 was over",
            ),
        watch::watch,
    );
}

async fn acquire(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let body: AcquireRequest<'_> = json::parse(&body)?;
    let asked = LeaseCall::of(&req, &body.owner, body.names.as_deref())?;
    let terms = ask::terms(&req, &body)?;
    let LeaseCall { key, owner, .. } = asked;
    let live = &req.app.live_leases;
    if req.app.shutdown.is_cancelled() {
        return Err(Problem::new(&kinds::SHUTTING_DOWN));
    }
    let reserved = live.reserve(key, owner, terms.wait.saturating_add(terms.ttl));
    let before = reserved.map_err(|next| too_many(&req.app, next))?;
    let granting = req.app.leases.acquire(&asked.leased, owner, terms);
    let granted = tokio::select! {
        biased;
        () = req.app.shutdown.cancelled() => Err(LeaseError::Unknown),
        granted = granting => granted,
    };
    let (granted, cap_remaining) = match granted {
        Ok(granted) => granted,
        Err(error) => {
            match error {
                // What may have been granted is counted until it ends.
                LeaseError::Unknown => {}
                // Another has it, so this owner has nothing of an earlier call either.
                LeaseError::Held(_) => live.note(key, owner, None),
                LeaseError::Lost(_)
                | LeaseError::Unavailable(_)
                | LeaseError::Busy
                | LeaseError::Invalid(_) => live.note(key, owner, before),
            }
            return Err(problem(&req.app, error, &asked.leased));
        }
    };
    let (token, remaining) = (granted.token().to_string(), granted.remaining());
    live.lives(key, owner, remaining);
    let answer = LeaseAnswer {
        waited_ms: Some(millis(granted.waited())),
        cap_remaining_ms: cap_remaining.map(millis),
        ..lease(&asked.leased, &body.owner.0, token, remaining)
    };
    Ok(answer::object(&req.app, StatusCode::OK, &answer))
}

async fn renew(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let body: RenewRequest<'_> = json::parse(&body)?;
    let asked = LeaseCall::of(&req, &body.owner, body.names.as_deref())?;
    let token = ask::token("token", &body.token)?;
    let ttl = ask::ttl(&req, body.ttl_ms)?;
    let LeaseCall { key, owner, leased } = &asked;
    let renewed = req.app.leases.renew(leased, *owner, token, ttl).await;
    // Lost with this token: the owner may have another lease of the name, which counts until its end.
    let remaining = renewed.map_err(|error| problem(&req.app, error, leased))?;
    req.app.live_leases.lives(*key, *owner, remaining);
    let answer = lease(leased, &body.owner.0, token.to_string(), remaining);
    Ok(answer::object(&req.app, StatusCode::OK, &answer))
}

/// What became of a release.
#[derive(Serialize, ToSchema)]
struct ReleasedLease<'a> {
    name: &'a str,
    /// Whether it was still the caller's.
    released: bool,
}

async fn release(mut req: ApiRequest) -> Handled {
    let body = req.json().await?;
    let body: ReleaseRequest<'_> = json::parse(&body)?;
    let asked = LeaseCall::of(&req, &body.owner, body.names.as_deref())?;
    let token = ask::token("token", &body.token)?;
    let LeaseCall { key, owner, leased } = &asked;
    let released = req.app.leases.release(leased, *owner, token).await;
    let released = released.map_err(|error| problem(&req.app, error, leased))?;
    if released {
        req.app.live_leases.note(*key, *owner, None);
    }
    let name = leased.name.as_str();
    let answer = ReleasedLease { name, released };
    Ok(answer::object(&req.app, StatusCode::OK, &answer))
}

/// Whether a name is held.
#[derive(Serialize, ToSchema)]
struct InspectedLease<'a> {
    name: &'a str,
    held: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<String>,
    /// How long it lives without a renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining_ms: Option<u64>,
}

async fn inspect(req: ApiRequest) -> Handled {
    let (name, group) = place(&req)?;
    let holder = req.app.leases.inspect(&name, group.as_ref()).await;
    let holder = holder.map_err(|why| unavailable(&req.app, &why))?;
    let answer = InspectedLease {
        name: name.as_str(),
        held: holder.is_some(),
        token: holder.as_ref().map(|holder| holder.token.to_string()),
        remaining_ms: holder.map(|holder| millis(holder.remaining)),
    };
    Ok(answer::object(&req.app, StatusCode::OK, &answer))
}

/// Reads the name that is looked at, and its group.
fn place(req: &ApiRequest) -> Result<(Name, Option<Name>), Problem> {
    let query = req.query()?;
    let group = query.get("group").map(|text| ask::name("group", text));
    Ok((ask::name("name", &req.segment(2))?, group.transpose()?))
}

fn lease<'a>(
    leased: &'a Leased,
    owner: &'a str,
    token: String,
    remaining: Duration,
) -> LeaseAnswer<'a> {
    LeaseAnswer {
        name: leased.name.as_str(),
        names: leased.of_group.iter().map(Name::as_str).collect(),
        owner,
        token,
        remaining_ms: millis(remaining),
        waited_ms: None,
        cap_remaining_ms: None,
    }
}

/// A name that others hold.
#[derive(Serialize)]
struct HeldName<'a> {
    name: &'a str,
    state: &'static str,
    retry_after_ms: u64,
}

fn problem(app: &App, error: LeaseError, leased: &Leased) -> Problem {
    let again = "It is not known whether it took effect. Ask again with the same owner.";
    match error {
        LeaseError::Held(refusal) => {
            let conflicts = refusal.conflicts.iter().map(|held| HeldName {
                name: held.name.as_str(),
                state: "held",
                retry_after_ms: millis(held.remaining),
            });
            let conflicts: Vec<_> = conflicts.collect();
            Problem::new(&kinds::LEASE_HELD)
                .advising(Advice::RetryAfter)
                .with("conflicts", &conflicts)
                .with("retry_after_ms", &millis(refusal.retry_after))
        }
        LeaseError::Lost(reason) => Problem::new(&kinds::LEASE_LOST)
            .advising(Advice::Reacquire)
            .with("reason", &reason),
        LeaseError::Unknown => Problem::detailed(&kinds::OUTCOME_UNKNOWN, again),
        LeaseError::Busy => {
            let text = format!("too many wait for {} already", leased.name);
            Problem::detailed(&kinds::OVERLOADED, text)
        }
        LeaseError::Invalid(invalid) => Problem::invalid("lease", invalid),
        LeaseError::Unavailable(why) => unavailable(app, &why),
    }
}

/// Builds the refusal, and logs why for the operator, once in a while.
fn unavailable(app: &App, why: &str) -> Problem {
    if let Some(left_out) = app.lease_faults.pass(app.clock().boot()) {
        tracing::warn!(why, left_out, "leases cannot be reached (lease_url)");
    }
    Problem::new(&kinds::LEASES_UNAVAILABLE)
}

fn too_many(app: &App, next: Duration) -> Problem {
    app.rates.counts.refused(LEASES);
    let mut told = HeaderMap::new();
    if let Some(limit) = app.settings.leases.live_max {
        tell_held(&mut told, (LEASES, limit), 0, next);
    }
    Problem::too_often("this key has as many leases as it may", next).telling(told)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
