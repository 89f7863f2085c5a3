//! The numbered changes of an event as server-sent events. A reader that lags is dropped and comes
//! again where it stopped; it never makes a commit wait.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use soldonce_core::Seq;
use soldonce_engine::live::{FeedEntry, Subscription};
use soldonce_engine::{EventNews, EventSummary};
use tokio::sync::broadcast::Receiver;

use super::app::App;
use super::asked::Asked;
use super::event_body::EventBody;
use super::kinds;
use super::operation::{Tag, get};
use super::origin;
use super::problem::{Handled, Problem};
use super::route::Admission::Look;
use super::streams::StreamPermit;
use super::table::Table;
use crate::limits::STREAM_KEEP_ALIVE_MS;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const KEEP_ALIVE: Bytes = Bytes::from_static(b": still here\n\n");

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Seats);
    table.add(
        get("/v1/events/{event}/feed", Look)
            .id("read_feed")
            .summary("The changes of the seats, as server-sent events without a gap")
            .query(&[(
                "after",
                "The `seq` that is known; else the feed begins with what comes next",
                "integer",
            )])
            .headers(&[(
                "Last-Event-ID",
                "As `after`, sent by browsers that reconnect",
            )])
            .refuses(&[&[&kinds::FORBIDDEN]])
            .sends(
                "text/event-stream",
                "`id:` is the `seq`, `data:` a FeedEntry; `event: reset` asks for a new \
                 snapshot",
            ),
        feed,
    );
}

async fn feed(asked: Asked) -> Handled {
    origin::require_own(&asked.app.settings, &asked.parts)?;
    let event = asked.event_id()?;
    let after = after(&asked)?;
    let app = &asked.app;
    let permit = app.enter_stream(&asked.parts)?;
    let (entries, news) = app.engine.subscribe(&event, after).await?;
    let body = match entries {
        Subscription::Resumed { missed, next } => Body::from_stream(unfold(
            Reader {
                news,
                is_new: true,
                missed: missed.into(),
                next,
                app: Arc::clone(app),
                _permit: permit,
            },
            Reader::next_part,
        )),
        Subscription::Reset => Body::from(reset(news.summary().picture.seq)),
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
fn after(asked: &Asked) -> Result<Option<Seq>, Problem> {
    let after = asked.query()?.number("after")?;
    if let Some(value) = asked.parts.headers.get(LAST_EVENT_ID) {
        let number = value.to_str().ok().and_then(|text| text.parse().ok());
        let rule = "the number of a feed entry";
        let number = number.ok_or_else(|| Problem::invalid("Last-Event-ID", rule));
        return Ok(Some(Seq(number?)));
    }
    Ok(after.map(Seq))
}

/// The event as `GET /v1/events/{event}` shows it, for a reader that just came or when its policy or
/// state changed. It has no id: a reader that comes again gets it anew.
fn event_part(app: &App, summary: &EventSummary) -> Bytes {
    let body = EventBody::new(summary, app.engine.now(), &[]);
    // Writing to memory does not fail.
    let data = serde_json::to_string(&body).unwrap_or_default();
    Bytes::from(format!("event: event\ndata: {data}\n\n"))
}

/// Tells a reader to take a new snapshot; the stream ends with it.
fn reset(seq: Seq) -> String {
    format!("event: reset\ndata: {{\"seq\":{}}}\n\n", seq.0)
}

/// One open stream.
struct Reader {
    news: EventNews,
    /// Whether it has been sent nothing yet.
    is_new: bool,
    missed: VecDeque<Arc<FeedEntry>>,
    next: Receiver<Arc<FeedEntry>>,
    app: Arc<App>,
    _permit: StreamPermit,
}

impl Reader {
    /// What is sent next; nothing at shutdown, or when the reader was too slow.
    async fn next_part(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if self.app.shutdown.is_cancelled() {
            return None;
        }
        if std::mem::take(&mut self.is_new) {
            let part = event_part(&self.app, &self.news.summary());
            return Some((Ok(part), self));
        }
        if let Some(entry) = self.missed.pop_front() {
            return Some((Ok(entry.sse()), self));
        }
        let quiet = Duration::from_millis(STREAM_KEEP_ALIVE_MS);
        let clock = self.app.clock();
        let quiet_until = clock.boot().plus(quiet);
        let part = tokio::select! {
            biased;
            () = self.app.shutdown.cancelled() => return None,
            () = self.news.changed() => event_part(&self.app, &self.news.summary()),
            entry = self.next.recv() => entry.ok()?.sse(),
            () = clock.sleep_until(quiet_until) => KEEP_ALIVE,
        };
        Some((Ok(part), self))
    }
}
