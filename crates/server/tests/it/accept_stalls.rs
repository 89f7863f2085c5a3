//! HTTP/2 answers that the peer does not take, although it reads its socket and answers pings.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::StreamExt;
use soldonce_clock::ManualClock;
use soldonce_server::limits::{ANSWER_PIECE_BYTES, WRITE_STALL_MS_MAX};
use soldonce_server::{AcceptLimits, AcceptSettings, Drained, serve};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::frames::{self, Client, DATA, END_STREAM_AND_HEADERS, HEADERS, NO_WINDOW, RST_STREAM};

const LARGE_BYTES: usize = 8 * ANSWER_PIECE_BYTES;
/// A step of the clock that ends no wait.
const STEP: Duration = Duration::from_secs(1);

struct Server {
    client: Client,
    clock: ManualClock,
    /// Makes the feed say something.
    says: Arc<Notify>,
    _tasks: JoinSet<Drained>,
}

async fn start(settings: &[u8]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let clock = ManualClock::at(0);
    let says = Arc::new(Notify::new());
    let heard = Arc::clone(&says);
    let feed = move || async move {
        let parts = futures_util::stream::unfold(heard, |heard| async move {
            heard.notified().await;
            Some((Ok::<_, std::io::Error>("said"), heard))
        });
        Body::from_stream(parts.boxed())
    };
    let router = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/large", get(|| async { vec![b'x'; LARGE_BYTES] }))
        .route("/feed", get(feed));
    let accept = AcceptSettings {
        clock: Arc::new(clock.clone()),
        ..AcceptLimits::default().into()
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, router, accept, CancellationToken::new()));
    Server {
        client: Client::connect(address, settings).await,
        clock,
        says,
        _tasks: tasks,
    }
}

impl Server {
    async fn ask(&mut self, stream: u32, path: &str) {
        let head = frames::head("GET", path, &[]);
        self.client
            .send(HEADERS, END_STREAM_AND_HEADERS, stream, &head)
            .await;
        let answer = self.client.next_of(HEADERS).await.unwrap();
        assert_eq!(answer.stream, stream);
    }

    /// Lets time pass until a stream is reset; gives the stream.
    async fn reset(&mut self) -> u32 {
        let mut reset = std::pin::pin!(self.client.next_of(RST_STREAM));
        loop {
            tokio::select! {
                biased;
                reset = &mut reset => return reset.unwrap().stream,
                () = tokio::task::yield_now() => self.clock.advance(STEP),
            }
        }
    }
}

#[tokio::test]
async fn an_answer_into_a_closed_window_is_reset_and_the_connection_lives() {
    let mut server = start(NO_WINDOW).await;
    for (stream, path) in [(1, "/"), (3, "/large")] {
        server.ask(stream, path).await;
        assert_eq!(server.reset().await, stream, "{path}");
    }
    server.ask(5, "/").await;
    server.client.grant(5, 100).await;
    assert_eq!(server.client.body_of(5).await, b"here");
}

#[tokio::test]
async fn an_answer_that_stops_in_its_middle_is_reset() {
    // One byte of window: the server may begin.
    let mut server = start(&[0, 4, 0, 0, 0, 1]).await;
    server.ask(1, "/large").await;
    assert_eq!(server.client.next_of(DATA).await.unwrap().payload, b"x");
    assert_eq!(server.reset().await, 1);
}

#[tokio::test]
async fn a_feed_that_is_not_taken_is_reset_and_a_quiet_one_is_not() {
    let mut server = start(b"").await;
    server.ask(1, "/feed").await;
    server.clock.advance(STEP);
    for _ in 0..4 {
        server
            .clock
            .advance(Duration::from_millis(WRITE_STALL_MS_MAX));
        server.says.notify_one();
        assert_eq!(server.client.next_of(DATA).await.unwrap().payload, b"said");
    }
    let mut closed = start(NO_WINDOW).await;
    closed.ask(1, "/feed").await;
    closed.says.notify_one();
    assert_eq!(closed.reset().await, 1);
}

#[tokio::test]
async fn a_peer_that_reads_slowly_gets_all_of_it() {
    let mut server = start(NO_WINDOW).await;
    server.ask(1, "/large").await;
    let piece = u32::try_from(ANSWER_PIECE_BYTES).unwrap();
    let mut body = 0;
    server.client.grant(0, 16 * piece).await;
    while body < LARGE_BYTES {
        // Each piece comes within the time for one, and all of them in far more.
        server
            .clock
            .advance(Duration::from_millis(WRITE_STALL_MS_MAX / 2));
        server.client.grant(1, piece).await;
        let until = body + ANSWER_PIECE_BYTES;
        while body < until.min(LARGE_BYTES) {
            let frame = server.client.next().await.unwrap();
            assert_ne!(frame.kind, RST_STREAM);
            if frame.kind == DATA {
                body += frame.payload.len();
            }
        }
    }
    assert_eq!(body, LARGE_BYTES);
}
