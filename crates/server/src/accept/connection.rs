//! One connection: HTTP/1.1 or HTTP/2 by its first bytes, served until it ends or is told to.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use soldonce_clock::Clock;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;
use tower::Service;

use super::activity::{Activity, HTTP2_PREFACE, InFlight, Verdict};
use super::leftover::Rests;
use super::progress::WatchedBody;
use super::shares::Shares;
use super::socket::{Stream, WatchedSocket};
use super::streams::StreamTasks;
use super::{Ended, Peer, host};
use crate::limits::{
    HEADER_BYTES_MAX, HEADER_FIELDS_MAX, HTTP2_PING_ANSWER_MS_MAX, HTTP2_PING_MS,
    HTTP2_RESETS_LOCAL_MAX, HTTP2_RESETS_PENDING_MAX, HTTP2_SEND_BUFFER_BYTES_MAX,
    HTTP2_STREAMS_MAX,
};

pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) router: Router,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) streams: StreamTasks,
    pub(crate) shares: Arc<Shares>,
    /// Makes the handshake, if the listener speaks TLS.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl Connection {
    /// Serves the connection to its end and joins the tasks of its streams.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connection and cuts its requests in flight.
    pub(crate) async fn serve(self, stream: TcpStream) -> Ended {
        let streams = self.streams.clone();
        let ended = match self.open(stream).await {
            Ok(stream) => self.drive(stream).await,
            Err(ended) => ended,
        };
        streams.end().await;
        ended
    }

    /// Makes the handshake of TLS. It counts as a part of the first head: the watch ends one that is too slow.
    async fn open(&self, stream: TcpStream) -> Result<Stream, Ended> {
        let Some(tls) = &self.tls else {
            return Ok(Either::Left(stream));
        };
        match until_ordered(&self.activity, tls.accept(stream)).await? {
            Ok(stream) => Ok(Either::Right(Box::new(stream))),
            Err(error) => {
                tracing::debug!(peer = %self.peer.0, %error, "no TLS with this peer");
                Err(Ended::Finished)
            }
        }
    }

    async fn drive(self, stream: Stream) -> Ended {
        let is_http1 = match until_ordered(&self.activity, begins_as_http1(&stream)).await {
            Ok(is_http1) => is_http1,
            Err(ended) => return ended,
        };
        let (peer, activity, streams) = (self.peer, self.activity, self.streams);
        let io = TokioIo::new(WatchedSocket::new(stream, Arc::clone(&activity)));
        let mut protocol = protocol(streams.clone());
        if is_http1 {
            protocol = protocol.http1_only();
        }
        let answerer = Answerer {
            // One router per connection, borrowed per request: a clone per request would have all
            // cores write to the same count.
            router: RefCell::new(self.router),
            peer,
            rests: Arc::new(Rests::new(Arc::clone(&activity), self.clock, &streams)),
            activity: Arc::clone(&activity),
            shares: self.shares,
        };
        let service = service_fn(move |request| answerer.answer(request));
        let mut connection = pin!(protocol.serve_connection(io, service));
        let mut closing = false;
        poll_fn(|cx| {
            match activity.order(cx.waker()) {
                Verdict::Serve => {}
                Verdict::Close if closing => {}
                Verdict::Close => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                Verdict::Cut => return Poll::Ready(Ended::Cut),
            }
            if let Err(error) = ready!(connection.as_mut().poll(cx)) {
                tracing::debug!(peer = %peer.0, error, "connection ended with an error");
            }
            Poll::Ready(Ended::Finished)
        })
        .await
    }
}

/// Tells whether the peer surely speaks HTTP/1, by ALPN or its first bytes. hyper-util would read
/// them to find out; hyper then keeps a buffer twice as large while the connection is open.
async fn begins_as_http1(stream: &Stream) -> bool {
    let stream = match stream {
        Either::Left(stream) => stream,
        Either::Right(stream) => return stream.get_ref().1.alpn_protocol() == Some(b"http/1.1"),
    };
    let mut first = [0; HTTP2_PREFACE.len()];
    // An error is found again when the connection is served.
    let length = stream.peek(&mut first).await.unwrap_or(0);
    !HTTP2_PREFACE.starts_with(first.get(..length).unwrap_or_default())
}

/// Waits for `done` until the connection is to end.
async fn until_ordered<T>(activity: &Activity, done: impl Future<Output = T>) -> Result<T, Ended> {
    let mut done = pin!(done);
    poll_fn(|cx| match activity.order(cx.waker()) {
        Verdict::Serve => done.as_mut().poll(cx).map(Ok),
        Verdict::Close => Poll::Ready(Err(Ended::Finished)),
        Verdict::Cut => Poll::Ready(Err(Ended::Cut)),
    })
    .await
}

/// Answers the requests of one connection.
struct Answerer {
    router: RefCell<Router>,
    peer: Peer,
    rests: Arc<Rests>,
    activity: Arc<Activity>,
    shares: Arc<Shares>,
}

impl Answerer {
    /// Hands one request to the router. Its answer, body included, counts as in flight until it is
    /// sent.
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<WatchedBody>, Infallible>> + Send + use<> {
        let is_http2 = request.version() == Version::HTTP_2;
        let is_only = self.activity.is_without_requests();
        let is_crowded = is_http2 && !is_only && !self.shares.has_room();
        let share = (is_http2 && !is_crowded).then(|| self.shares.enter());
        let in_flight = InFlight::begin(&self.activity);
        let crowded = is_crowded.then_some(StatusCode::TOO_MANY_REQUESTS);
        let refusal = crowded.or_else(|| refusal(&request));
        let (parts, body) = request.into_parts();
        let (body, leftover) = self.rests.lend(&parts, body);
        let mut request = Request::from_parts(parts, body);
        let passed = refusal.is_none().then(|| {
            request.extensions_mut().insert(self.peer);
            self.router.borrow_mut().call(request)
        });
        async move {
            let mut response = match passed {
                Some(response) => response.await?,
                None => refused(refusal.unwrap_or(StatusCode::BAD_REQUEST)),
            };
            // The rest of a body is not waited for where there is too much already.
            if let Some(leftover) = leftover.filter(|_| !is_crowded) {
                leftover.read_meanwhile(&mut response);
            }
            Ok(response.map(|body| WatchedBody::new(body, in_flight, share)))
        }
    }
}

/// Returns the status that refuses a request before the router, or None if it may pass.
fn refusal<B>(request: &Request<B>) -> Option<StatusCode> {
    // hyper bounds the fields of HTTP/1 alone.
    if request.headers().len() > HEADER_FIELDS_MAX {
        return Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    (!host::is_named(request)).then_some(StatusCode::BAD_REQUEST)
}

fn refused(status: StatusCode) -> Response<Body> {
    let field = if status == StatusCode::TOO_MANY_REQUESTS {
        (header::RETRY_AFTER, "1")
    } else {
        (header::CONNECTION, "close")
    };
    (status, [field]).into_response()
}

/// Builds both protocols, bounded. The waits are the watch's: hyper's header timeout stays off.
fn protocol(streams: StreamTasks) -> auto::Builder<StreamTasks> {
    let mut protocol = auto::Builder::new(streams);
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .keep_alive(true)
        .max_headers(HEADER_FIELDS_MAX)
        // The buffer must hold a whole head: its size is the bound of a head (else 431).
        .max_buf_size(usize::from(HEADER_BYTES_MAX));
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .max_pending_accept_reset_streams(HTTP2_RESETS_PENDING_MAX)
        .max_local_error_reset_streams(HTTP2_RESETS_LOCAL_MAX)
        .max_header_list_size(u32::from(HEADER_BYTES_MAX))
        .max_send_buf_size(HTTP2_SEND_BUFFER_BYTES_MAX)
        .keep_alive_interval(Duration::from_millis(HTTP2_PING_MS))
        .keep_alive_timeout(Duration::from_millis(HTTP2_PING_ANSWER_MS_MAX));
    protocol
}
