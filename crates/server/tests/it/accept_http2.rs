//! HTTP/2 with prior knowledge through the accept loop, spoken in raw frames (RFC 9113).

use axum::Router;
use axum::routing::get;
use soldonce_server::limits::HEADER_FIELDS_MAX;
use soldonce_server::{AcceptLimits, Drained, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 0x01;
const END_STREAM_AND_HEADERS: u8 = 0x05;
/// "431" as HPACK writes it: Huffman, three bytes, 011010 011001 00001 and ones (RFC 7541, B).
const STATUS_431: &[u8] = &[0x83, 0x69, 0x90, 0xff];
/// `GET http /` from HPACK's static table, then `:authority: here`.
const GET_ROOT: &[u8] = b"\x82\x86\x84\x41\x04here";

struct Frame {
    kind: u8,
    stream: u32,
    payload: Vec<u8>,
}

struct Client(TcpStream);

impl Client {
    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.0.write_all(&frame).await.unwrap();
    }

    /// The next frame of that kind; None when the server closed first. Answers pings: the server
    /// ends a drained connection after a last round trip.
    async fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            if head[3] == PING {
                self.send(PING, ACK, 0, &payload).await;
            }
            if head[3] == kind {
                return Some(Frame {
                    kind,
                    stream,
                    payload,
                });
            }
        }
    }
}

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
    let mut client = Client(TcpStream::connect(address).await.unwrap());
    client
        .0
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    client.send(SETTINGS, 0, 0, b"").await;
    let settings = client.next_of(SETTINGS).await.unwrap();
    assert_eq!((settings.kind, settings.stream), (SETTINGS, 0));
    Server {
        client,
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
    let drained = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(
        drained,
        Drained {
            finished: 1,
            cut: 0,
            panicked: 0
        }
    );
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
async fn a_silent_connection_is_told_goaway() {
    let limits = AcceptLimits {
        idle_ms: 40,
        header_read_ms: 40,
        ..AcceptLimits::default()
    };
    let mut server = start(limits).await;
    assert!(server.client.next_of(GOAWAY).await.is_some());
    assert!(server.client.next_of(DATA).await.is_none());
    server.shutdown.cancel();
    let drained = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(
        drained,
        Drained {
            finished: 1,
            cut: 0,
            panicked: 0
        }
    );
}

#[tokio::test]
async fn a_peer_that_ignores_goaway_is_cut() {
    let limits = AcceptLimits {
        idle_ms: 40,
        header_read_ms: 40,
        ..AcceptLimits::default()
    };
    let mut server = start(limits).await;
    let mut rest = Vec::new();
    server.client.0.read_to_end(&mut rest).await.unwrap();
    server.shutdown.cancel();
    let drained = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(
        drained,
        Drained {
            finished: 0,
            cut: 1,
            panicked: 0
        }
    );
}
