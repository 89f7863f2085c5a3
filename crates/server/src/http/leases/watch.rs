//! The states of one name as server-sent events. The backend is asked every so often, for an expiry sends no message.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream::unfold;
use serde::Serialize;
use soldonce_clock::BootTime;
use soldonce_lease::{Name, OwnerInfo};
use utoipa::ToSchema;

use super::{millis, place, unavailable};
use crate::http::api_request::ApiRequest;
use crate::http::app::App;
use crate::http::problem::Handled;
use crate::http::response;
use crate::http::streams::StreamPermit;
use crate::limits::{LEASE_LOOK_MS, STREAM_KEEP_ALIVE_MS};

pub(super) const EVENTS: [&str; 3] = ["held", "released", "lost"];

/// What an event says of a name.
#[derive(Serialize, ToSchema)]
pub(super) struct WatchedLease {
    /// Of the lease that is held, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    token: Option<String>,
    /// How long it lives without a renewal. Of `held`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining_ms: Option<u64>,
}

pub(super) async fn watch(req: ApiRequest) -> Handled {
    let (name, group) = place(&req)?;
    let permit = req.app.enter_stream(&req.parts)?;
    let holder = req.app.leases.inspect(&name, group.as_ref()).await;
    let holder = holder.map_err(|why| unavailable(&req.app, &why))?;
    let mut watcher = Watcher {
        said_at: req.app.clock().boot(),
        app: Arc::clone(&req.app),
        name,
        group,
        seen: None,
        first: None,
    };
    let first = watcher.changed(holder);
    watcher.first = first.or_else(|| event("released", None, None));
    let body = Body::from_stream(unfold((watcher, permit), Watcher::next_part));
    Ok(response::stream(body))
}

/// A lease that was seen, and when it ends unless it is renewed.
struct KnownLease {
    token: String,
    end: BootTime,
}

/// One open stream.
struct Watcher {
    app: Arc<App>,
    name: Name,
    group: Option<Name>,
    seen: Option<KnownLease>,
    first: Option<Bytes>,
    said_at: BootTime,
}

impl Watcher {
    /// Returns what is sent next; None at shutdown.
    async fn next_part(
        (mut watcher, permit): (Self, StreamPermit),
    ) -> Option<(Result<Bytes, Infallible>, (Self, StreamPermit))> {
        let part = match watcher.first.take() {
            Some(first) => first,
            None => watcher.look().await?,
        };
        watcher.said_at = watcher.app.clock().boot();
        Some((Ok(part), (watcher, permit)))
    }

    /// Looks until there is something to say.
    async fn look(&mut self) -> Option<Bytes> {
        loop {
            let clock = Arc::clone(self.app.clock());
            let next = clock.boot().plus_ms(LEASE_LOOK_MS);
            let waiting = clock.sleep_until(next);
            self.app.shutdown.run_until_cancelled(waiting).await?;
            // While nothing is known, nothing is said.
            let looking = self.app.leases.inspect(&self.name, self.group.as_ref());
            if let Ok(holder) = looking.await
                && let Some(said) = self.changed(holder)
            {
                return Some(said);
            }
            if clock.boot() >= self.said_at.plus_ms(STREAM_KEEP_ALIVE_MS) {
                return Some(response::KEEP_ALIVE);
            }
        }
    }

    /// Notes the holder. Returns the event of a change; None if there is none.
    fn changed(&mut self, holder: Option<OwnerInfo>) -> Option<Bytes> {
        let now = self.app.clock().boot();
        let before = self.seen.take();
        let Some(holder) = holder else {
            let before = before?;
            // What is gone before its time was given back, by its owner or by an operator.
            let kind = if now < before.end { "released" } else { "lost" };
            return event(kind, Some(before.token), None);
        };
        let token = holder.token.to_string();
        let is_known = before.is_some_and(|before| before.token == token);
        self.seen = Some(KnownLease {
            token: token.clone(),
            end: now.plus(holder.remaining),
        });
        (!is_known)
            .then(|| event("held", Some(token), Some(millis(holder.remaining))))
            .flatten()
    }
}

fn event(kind: &str, token: Option<String>, remaining_ms: Option<u64>) -> Option<Bytes> {
    let about = WatchedLease {
        token,
        remaining_ms,
    };
    // Writing to memory does not fail.
    let data = serde_json::to_string(&about).ok()?;
    Some(format!("event: {kind}\ndata: {data}\n\n").into())
}
