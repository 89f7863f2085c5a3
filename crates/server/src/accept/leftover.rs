//! What is left of a request's body when its answer is ready. It is read on, within bounds, so that
//! the next request on the connection is found. Behind a proxy that request is another buyer's.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, Version, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use soldonce_clock::{BootTime, Clock};

use super::activity::{Activity, AwaitedBody, InFlight};
use super::streams::{StreamTasks, TaskSpawner};
use crate::limits::{LEFTOVER_BYTES_MAX, LEFTOVER_KEPT_BYTES_MAX, LEFTOVER_READ_MS_MAX};

/// Where a body is put that was dropped before its end.
type Slot = Arc<Mutex<Option<Incoming>>>;

/// What one connection reads the rests of its requests with.
pub(crate) struct Rests {
    activity: Arc<Activity>,
    clock: Arc<dyn Clock>,
    tasks: TaskSpawner,
}

/// A request's body as the router reads it.
#[derive(Debug, Default)]
pub(crate) struct LentBody {
    body: Option<Incoming>,
    slot: Option<Slot>,
    /// None without a body.
    activity: Option<Arc<Activity>>,
    awaited: Option<AwaitedBody>,
}

/// What the router may leave of a body.
pub(crate) struct Leftover {
    rests: Arc<Rests>,
    slot: Slot,
    version: Version,
    /// The client sends its body only when told to go on (`Expect`), and not after a refusal.
    is_held_back: bool,
}

impl Rests {
    pub(crate) fn new(
        activity: Arc<Activity>,
        clock: Arc<dyn Clock>,
        streams: &StreamTasks,
    ) -> Self {
        Self {
            activity,
            clock,
            tasks: streams.spawner(),
        }
    }

    /// Lends a request's body to the router. A request without one costs nothing.
    pub(crate) fn lend(
        self: &Arc<Self>,
        parts: &Parts,
        body: Incoming,
    ) -> (LentBody, Option<Leftover>) {
        if body.is_end_stream() {
            return (LentBody::default(), None);
        }
        let slot = Slot::default();
        let lent = LentBody {
            body: Some(body),
            slot: Some(Arc::clone(&slot)),
            activity: Some(Arc::clone(&self.activity)),
            awaited: None,
        };
        let leftover = Leftover {
            rests: Arc::clone(self),
            slot,
            version: parts.version,
            is_held_back: parts.headers.contains_key(header::EXPECT),
        };
        (lent, Some(leftover))
    }
}

impl Leftover {
    /// Reads on while the answer is sent. On HTTP/1 it says when the connection is not used again.
    pub(crate) fn read_meanwhile(self, response: &mut Response<Body>) {
        let rest = crate::lock(&self.slot);
        let Some(rest) = { rest }.take() else {
            return;
        };
        let is_http1 = self.version <= Version::HTTP_11;
        let is_held_back = is_http1 && self.is_held_back;
        let is_long = rest.size_hint().lower() > LEFTOVER_KEPT_BYTES_MAX;
        if is_http1 && (is_held_back || is_long) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if !is_held_back {
            let in_flight = InFlight::go_on(&self.rests.activity);
            let clock = Arc::clone(&self.rests.clock);
            let until = clock.boot().plus_ms(LEFTOVER_READ_MS_MAX);
            let reading = read_on(rest, clock, until);
            self.rests.tasks.run(async move {
                reading.await;
                drop(in_flight);
            });
        }
    }
}

/// Reads and drops the rest of a body, within its bounds. A body beyond them is dropped unread, which
/// closes an HTTP/1 connection and resets an HTTP/2 stream.
async fn read_on(mut rest: Incoming, clock: Arc<dyn Clock>, until: BootTime) {
    let reading = async {
        let mut bytes: u64 = 0;
        while let Some(Ok(frame)) = rest.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            bytes = bytes.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
            if bytes > LEFTOVER_BYTES_MAX {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = clock.sleep_until(until) => {}
    }
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let (Some(body), Some(activity)) = (&mut this.body, &this.activity) else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        if polled.is_pending() {
            let begin = || AwaitedBody::begin(activity);
            this.awaited.get_or_insert_with(begin);
            return polled;
        }
        this.awaited = None;
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            activity.note_body(frame.data_ref().map_or(0, Bytes::len));
        }
        if let Poll::Ready(None | Some(Err(_))) = polled {
            this.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        self.body.as_ref().map_or_else(none, Incoming::size_hint)
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if let (Some(body), Some(slot)) = (self.body.take(), &self.slot)
            && !body.is_end_stream()
        {
            *crate::lock(slot) = Some(body);
        }
    }
}
