//! The numbered changes of an event as server-sent events, in frames. A reader that lags gets one
//! merged frame from where it is, or is told to take a new snapshot; it never makes a commit wait,
//! and no queue is kept for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderName;
use bytes::Bytes;
use futures_util::stream::unfold;
use soldonce_core::Seq;
use soldonce_engine::live::Digest;
use tokio::sync::watch::Receiver;

use super::api_request::ApiRequest;
use super::app::App;
use super::frames::{Cut, Hub, Surroundings, Tick, event_message};
use super::operation::{DIGEST, Tag, get};
use super::problem::{Handled, Problem};
use super::query::KnownCommit;
use super::route::Admission::Look;
use super::streams::StreamPermit;
use super::table::Table;
use super::{kinds, origin, response};
use crate::limits::{STREAM_RETRY_MS_MIN, STREAM_RETRY_MS_SPREAD};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::Seats);
    table.add(
        get("/v1/events/{event}/feed", Look)
            .id("read_feed")
            .summary("The changes of the seats, as server-sent events without a gap")
            .query(&[
                (
                    "after",
                    "The `seq` that is known; else the feed begins with what comes next",
                    "integer",
                ),
                DIGEST,
                (
                    "each",
                    "`true`: a frame for each commit, with each seat by its id",
                    "boolean",
                ),
            ])
            .headers(&[(
                "Last-Event-ID",
                "As `after`, sent by browsers that reconnect",
            )])
            .refuses(&[&[&kinds::FORBIDDEN]])
            .sends(
                "text/event-stream",
                "`id:` is `seq.digest`, `data:` a FeedFrame; `event: reset` asks for a new \
                 snapshot",
            ),
        feed,
    );
}

async fn feed(req: ApiRequest) -> Handled {
    origin::require_own(&req.app.settings, &req.parts)?;
    let event = req.event_id()?;
    let (known, cut) = (known(&req)?, cut(&req)?);
    let app = &req.app;
    let permit = app.enter_stream(&req.parts)?;
    let live = app.engine.live(&event).await?;
    let around = Surroundings {
        engine: app.engine.clone(),
        shutdown: app.shutdown.clone(),
        tick: Duration::from_millis(app.settings.feed.tick_ms),
    };
    let (hub, ticks) = app.feeds.join(live, &around);
    let body = match Reader::begin(Arc::clone(app), hub, ticks, (known, cut)) {
        Ok(reader) => Body::from_stream(unfold((reader, permit), Reader::next_part)),
        Err(reset) => Body::from(reset),
    };
    Ok(response::stream(body))
}

/// Reads the last commit that the reader knows: a browser that reconnects sends it itself; a new
/// reader may name it in the query; without either (None) it begins with what comes next.
fn known(req: &ApiRequest) -> Result<Option<KnownCommit>, Problem> {
    let known = req.query()?.commit()?;
    let Some(value) = req.parts.headers.get(LAST_EVENT_ID) else {
        return Ok(known);
    };
    let id = value.to_str().ok().and_then(commit_of);
    let rule = "the id of a frame";
    id.map(Some)
        .ok_or_else(|| Problem::invalid("Last-Event-ID", rule))
}

/// Reads the id of a frame; a server of an earlier version wrote the number alone.
fn commit_of(id: &str) -> Option<KnownCommit> {
    let (seq, digest) = match id.split_once('.') {
        Some((seq, digest)) => (seq, Some(Digest::parse(digest)?)),
        None => (id, None),
    };
    Some((Seq(seq.parse().ok()?), digest))
}

fn cut(req: &ApiRequest) -> Result<Cut, Problem> {
    match req.query()?.get("each") {
        Some("true") => Ok(Cut::Each),
        Some("false") | None => Ok(Cut::Merged),
        Some(_) => Err(Problem::invalid("each", "true or false")),
    }
}

/// Asks a reader to take a new snapshot; the stream ends with it.
fn reset(seq: Seq) -> String {
    format!("event: reset\ndata: {{\"seq\":{}}}\n\n", seq.0)
}

/// One open stream.
struct Reader {
    app: Arc<App>,
    hub: Arc<Hub>,
    ticks: Receiver<Tick>,
    cut: Cut,
    /// The last commit of the tick that it took last.
    until: Seq,
    /// It was sent all commits up to this one.
    seen: Seq,
    event_no: u64,
    first: Option<Bytes>,
    is_over: bool,
}

impl Reader {
    /// Creates a reader that is sent the event and what it missed at once. Fails with the text of a
    /// reset.
    fn begin(
        app: Arc<App>,
        hub: Arc<Hub>,
        mut ticks: Receiver<Tick>,
        (known, cut): (Option<KnownCommit>, Cut),
    ) -> Result<Self, String> {
        let tick = ticks.borrow_and_update().clone();
        let summary = hub.summary();
        let last = summary.snapshot.seq;
        let (after, digest) = known.unwrap_or((last, None));
        let is_ours = after <= last && hub.has(after, digest);
        let missed = is_ours.then(|| hub.lacking(cut, after)).flatten();
        let (missed, seen) = missed.ok_or_else(|| reset(last))?;
        let retry = format!("retry: {}\n", retry_ms(&app));
        let event = event_message(&summary, app.engine.now());
        let first = [retry.as_bytes(), &event, &missed].concat();
        Ok(Self {
            app,
            hub,
            ticks,
            cut,
            until: tick.until,
            seen,
            event_no: tick.event_no,
            first: Some(first.into()),
            is_over: false,
        })
    }

    /// Returns what is sent next; None when the feed has ended, as at shutdown, or after a reset.
    async fn next_part(
        (mut reader, permit): (Self, StreamPermit),
    ) -> Option<(Result<Bytes, Infallible>, (Self, StreamPermit))> {
        let part = match reader.first.take() {
            Some(first) => first,
            None if reader.is_over => return None,
            None => reader.tick().await?,
        };
        Some((Ok(part), (reader, permit)))
    }

    /// Waits for the next tick; None when there are no more.
    async fn tick(&mut self) -> Option<Bytes> {
        // Else it was sent a part of what it lacks. The tick itself is behind a lock that all readers share.
        let is_waiting = !self.ticks.has_changed().ok()? && self.until <= self.seen;
        if is_waiting {
            self.ticks.changed().await.ok()?;
        }
        let mut tick = self.ticks.borrow_and_update().clone();
        self.until = tick.until;
        if is_waiting {
            self.hub.note_taken(&tick, self.app.clock().boot());
        }
        let frames = self.frames(&mut tick);
        if self.event_no == tick.event_no {
            return Some(frames.unwrap_or(response::KEEP_ALIVE));
        }
        self.event_no = tick.event_no;
        Some(match frames {
            Some(frames) => [tick.event, frames].concat().into(),
            None => tick.event,
        })
    }

    /// Returns what the reader lacks of the commits, or a reset; None where it lacks none.
    fn frames(&mut self, tick: &mut Tick) -> Option<Bytes> {
        if tick.until <= self.seen {
            return None;
        }
        let is_next = self.cut == Cut::Merged && self.seen == tick.after;
        let frames = if is_next {
            tick.frame.take().map(|frame| (frame, tick.until))
        } else {
            self.hub.lacking(self.cut, self.seen)
        };
        let Some((frames, seen)) = frames else {
            self.is_over = true;
            return Some(reset(tick.until).into());
        };
        self.seen = seen;
        Some(frames)
    }
}

/// Draws when a browser whose stream broke comes again, in ms: not all of them at the same moment.
fn retry_ms(app: &App) -> u64 {
    let mut drawn = [0; 2];
    app.engine.world().entropy.fill(&mut drawn);
    let drawn = u64::from(u16::from_le_bytes(drawn));
    STREAM_RETRY_MS_MIN.saturating_add(drawn % STREAM_RETRY_MS_SPREAD)
}
