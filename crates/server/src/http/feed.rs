//! The numbered changes of an event as server-sent events. A reader that lags is dropped and comes
//! again where it stopped; it never makes anybody wait.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use soldonce_core::{EventId, Seq};
use soldonce_engine::live::{FeedEntry, Subscription};
use soldonce_lease::Clock;
use tokio::sync::broadcast::Receiver;
use tokio_util::sync::CancellationToken;

use super::asked::Asked;
use super::origin;
use super::problem::{Handled, Problem};
use super::streams::StreamPermit;
use crate::limits::STREAM_KEEP_ALIVE_MS;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const KEEP_ALIVE: Bytes = Bytes::from_static(b": still here\n\n");

/// `GET /v1/events/{event}/feed`
pub(super) async fn feed(asked: Asked) -> Handled {
    origin::require_own(&asked.app.settings, &asked.parts)?;
    let event = asked.event_id()?;
    let after = after(&asked, &event)?;
    let app = &asked.app;
    let permit = app.enter_stream(&asked.parts)?;
    let body = match app.engine.subscribe(&event, after)? {
        Subscription::Resumed { missed, next } => Body::from_stream(unfold(
            Reader {
                missed: missed.into(),
                next,
                clock: Arc::clone(app.clock()),
                shutdown: app.shutdown.clone(),
                _permit: permit,
            },
            Reader::next_part,
        )),
        Subscription::Reset => Body::from(reset(app.engine.event(&event)?.picture.seq)),
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, EVENT_STREAM);
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    Ok(response)
}

/// The last entry that the reader knows: a browser that reconnects says so itself; a new reader may
/// say it in the query; without either it begins with what comes next.
fn after(asked: &Asked, event: &EventId) -> Result<Seq, Problem> {
    let query = asked.query(&["after"])?;
    if let Some(value) = asked.parts.headers.get(LAST_EVENT_ID) {
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        let rule = "the number of a feed entry";
        return number
            .map(Seq)
            .ok_or_else(|| Problem::invalid("Last-Event-ID", rule));
    }
    match query.number("after")? {
        Some(after) => Ok(Seq(after)),
        None => Ok(asked.app.engine.event(event)?.picture.seq),
    }
}

/// Tells a reader to take a new snapshot; the stream ends with it.
fn reset(seq: Seq) -> String {
    format!("event: reset\ndata: {{\"seq\":{}}}\n\n", seq.0)
}

/// One open stream.
struct Reader {
    missed: VecDeque<Arc<FeedEntry>>,
    next: Receiver<Arc<FeedEntry>>,
    clock: Arc<dyn Clock>,
    shutdown: CancellationToken,
    _permit: StreamPermit,
}

impl Reader {
    /// What is sent next; nothing at shutdown, or when the reader was too slow.
    async fn next_part(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.shutdown.is_cancelled() {
            return None;
        }
        if let Some(entry) = self.missed.pop_front() {
            return Some((Ok(entry.sse()), self));
        }
        let quiet = Duration::from_millis(STREAM_KEEP_ALIVE_MS);
        let quiet_until = self.clock.boot().plus(quiet);
        let part = tokio::select! {
            biased;
            () = self.shutdown.cancelled() => return None,
            entry = self.next.recv() => entry.ok()?.sse(),
            () = self.clock.sleep_until(quiet_until) => KEEP_ALIVE,
        };
        Some((Ok(part), self))
    }
}
