//! HTTP/2 with prior knowledge through the accept loop, spoken in raw frames (RFC 9113).

use axum::Router;
use axum::routing::get;
use soldonce_server::limits::{HEADER_FIELDS_MAX, HTTP2_RESETS_PENDING_MAX};
use soldonce_server::{AcceptLimits, Drained, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::accept::{HALF_A_SECOND_MS, drained};
use crate::frames::{
    Client, DATA, END_STREAM_AND_HEADERS, GET_ROOT, GOAWAY, HEADERS, RST_STREAM, frame,
};

/// "431" as HPACK writes it: Huffman, three bytes, 011010 011001 00001 and ones (RFC 7541, B).
const STATUS_431: &[u8] = &[0x83, 0x69, 0x90, 0xff];

struct Server {
    client: Client,
    shutdown: CancellationToken,
    tasks: JoinSet<Drained>,
}

/// A server and one connection on which HTTP/2 was agreed.
async fn start(limits: AcceptLimits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let router = Router::new().route("/", get(|| async { "here" }));
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, router, limits, shutdown.clone()));
    Server {
        client: Client::connect(address, b"").await,
        shutdown,
        tasks,
    }
}

#[tokio::test]
async fn a_request_is_answered_and_a_drain_says_goaway() {
    let mut server = start(AcceptLimits::default()).await;
    server
        .client
        .send(HEADERS, END_STREAM_AND_HEADERS, 1, GET_ROOT)
        .await;
    let answer = server.client.next_of(DATA).await.unwrap();
    assert_eq!(
        (answer.stream, answer.payload.as_slice()),
        (1, b"here".as_slice())
    );

    server.shutdown.cancel();
    assert!(server.client.next_of(GOAWAY).await.is_some());
    assert!(
        server.client.next_of(DATA).await.is_none(),
        "closed after GOAWAY"
    );
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(1, 0));
}

#[tokio::test]
async fn one_field_too_many_is_refused() {
    let mut server = start(AcceptLimits::default()).await;
    // Literal fields "x: 1", never indexed. The pseudo fields do not count.
    let head = [GET_ROOT, &b"\x10\x01x\x011".repeat(HEADER_FIELDS_MAX + 1)].concat();
    server
        .client
        .send(HEADERS, END_STREAM_AND_HEADERS, 1, &head)
        .await;
    let answer = server.client.next_of(HEADERS).await.unwrap();
    // `:status` is index 8 of the static table, with its value as a literal (RFC 7541, A).
    assert!(answer.payload.starts_with(b"\x48"), "{:x?}", answer.payload);
    assert!(
        answer.payload.windows(4).any(|part| part == STATUS_431),
        "{:x?}",
        answer.payload
    );
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let mut server = start(AcceptLimits::default()).await;
    let cancel = 8_u32.to_be_bytes();
    let mut flood = Vec::new();
    for n in 0..u32::try_from(2 * HTTP2_RESETS_PENDING_MAX).unwrap() {
        let stream = 2 * n + 1;
        flood.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, GET_ROOT));
        flood.extend(frame(RST_STREAM, 0, stream, &cancel));
    }
    server.client.stream.write_all(&flood).await.unwrap();
    let goaway = server.client.next_of(GOAWAY).await.unwrap();
    assert_eq!(goaway.payload[4..8], 11_u32.to_be_bytes(), "calm down");
    assert!(server.client.next_of(DATA).await.is_none(), "closed");
    server.shutdown.cancel();
    let drained = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!((drained.finished, drained.panicked), (1, 0));
}

#[tokio::test]
async fn a_silent_connection_is_told_goaway() {
    let limits = AcceptLimits {
        idle_ms: HALF_A_SECOND_MS,
        header_read_ms: HALF_A_SECOND_MS,
        ..AcceptLimits::default()
    };
    let mut server = start(limits).await;
    assert!(server.client.next_of(GOAWAY).await.is_some());
    assert!(server.client.next_of(DATA).await.is_none());
    server.shutdown.cancel();
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(1, 0));
}

#[tokio::test]
async fn a_first_head_that_does_not_end_is_cut() {
    let limits = AcceptLimits {
        header_read_ms: HALF_A_SECOND_MS,
        ..AcceptLimits::default()
    };
    let mut server = start(limits).await;
    let head = frame(HEADERS, END_STREAM_AND_HEADERS, 1, GET_ROOT);
    let (begin, _) = head.split_at(head.len() - 1);
    server.client.stream.write_all(begin).await.unwrap();
    assert!(server.client.next_of(GOAWAY).await.is_none());
    server.shutdown.cancel();
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(0, 1));
}

#[tokio::test]
async fn a_peer_that_ignores_goaway_is_cut() {
    let limits = AcceptLimits {
        idle_ms: HALF_A_SECOND_MS,
        header_read_ms: HALF_A_SECOND_MS,
        ..AcceptLimits::default()
    };
    let mut server = start(limits).await;
    let mut rest = Vec::new();
    server.client.stream.read_to_end(&mut rest).await.unwrap();
    server.shutdown.cancel();
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(0, 1));
}
