//! The accept loop's bounds and its drain. Nothing here sleeps: every wait is for something that
//! the server does.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::routing::get;
use axum::{Extension, Router};
use soldonce_server::limits::{HEADER_BYTES_MAX, HEADER_FIELDS_MAX};
use soldonce_server::{AcceptLimits, Drained, Peer, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time of a limit that must pass, but not before a client on a busy machine has done its part.
pub(crate) const HALF_A_SECOND_MS: u64 = 500;

/// A server on a port of its own. `GET /slow` says that it was entered and answers when let.
struct Server {
    address: SocketAddr,
    shutdown: CancellationToken,
    entered: Arc<Semaphore>,
    released: Arc<Semaphore>,
    tasks: JoinSet<Drained>,
}

/// What came of connections without a panic.
pub(crate) fn drained(finished: u64, cut: u64) -> Drained {
    Drained {
        finished,
        cut,
        panicked: 0,
    }
}

impl Server {
    async fn start(limits: AcceptLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let entered = Arc::new(Semaphore::new(0));
        let released = Arc::new(Semaphore::new(0));
        let gates = (Arc::clone(&entered), Arc::clone(&released));
        let slow = move || async move {
            gates.0.add_permits(1);
            gates.1.acquire().await.unwrap().forget();
            "slow"
        };
        let peer = |Extension(peer): Extension<Peer>| async move { peer.0.to_string() };
        let router = Router::new()
            .route("/", get(|| async { "here" }))
            .route("/peer", get(peer))
            .route("/slow", get(slow))
            .route("/large", get(|| async { vec![b'x'; 64 * 1024 * 1024] }))
            .route("/panic", get(|| async { panic_on_purpose() }));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, router, limits, shutdown.clone()));
        Self {
            address,
            shutdown,
            entered,
            released,
            tasks,
        }
    }

    async fn connect(&self) -> Client {
        Client {
            stream: TcpStream::connect(self.address).await.unwrap(),
        }
    }

    async fn ended(mut self) -> Drained {
        self.shutdown.cancel();
        self.tasks.join_next().await.unwrap().unwrap()
    }

    async fn slow_was_entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }
}

fn panic_on_purpose() {
    panic!("on purpose");
}

struct Client {
    stream: TcpStream,
}

impl Client {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a GET and gives the whole answer. The bodies here end with the text asked for.
    async fn get(&mut self, path: &str, body: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: here\r\n\r\n"))
            .await;
        self.answer(body).await
    }

    async fn answer(&mut self, end: &str) -> String {
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            assert!(
                self.stream.read_buf(&mut answer).await.unwrap() > 0,
                "closed early"
            );
        }
        String::from_utf8(answer).unwrap()
    }

    /// Everything until the server closes. A reset is a close too.
    async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
        rest
    }
}

/// Limits that never matter in a test, but for those that it names.
fn generous() -> AcceptLimits {
    let long_ms = 600_000;
    AcceptLimits {
        connections_max: 100,
        connections_per_address_max: 100,
        header_read_ms: long_ms,
        idle_ms: long_ms,
        write_stall_ms: long_ms,
        drain_ms: long_ms,
    }
}

#[tokio::test]
async fn requests_are_answered_on_one_connection_and_know_their_peer() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    for _ in 0..3 {
        let answer = client.get("/", "here").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let own = client.stream.local_addr().unwrap().to_string();
    assert!(
        client
            .get("/peer", &own)
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    drop(client);
    assert_eq!(server.ended().await, drained(1, 0));
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut() {
    let server = Server::start(AcceptLimits {
        header_read_ms: HALF_A_SECOND_MS,
        ..generous()
    })
    .await;
    let began = ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nhost: here\r\n"];
    for text in began {
        let mut client = server.connect().await;
        client.send(text).await;
        assert_eq!(client.rest().await, b"", "began with {text:?}");
    }
    let mut second_head = server.connect().await;
    second_head.get("/", "here").await;
    second_head.send("GET / HT").await;
    assert_eq!(second_head.rest().await, b"");
    assert_eq!(server.ended().await, drained(0, 5));
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_a_busy_one_is_not() {
    let limits = AcceptLimits {
        header_read_ms: HALF_A_SECOND_MS,
        idle_ms: HALF_A_SECOND_MS,
        ..generous()
    };
    let server = Server::start(limits).await;
    let mut busy = server.connect().await;
    busy.send("GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await;
    server.slow_was_entered().await;
    for _ in 0..3 {
        let mut idle = server.connect().await;
        idle.get("/", "here").await;
        assert_eq!(idle.rest().await, b"");
    }
    server.released.add_permits(1);
    assert!(busy.answer("slow").await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(busy.rest().await, b"");
    assert_eq!(server.ended().await, drained(4, 0));
}

#[tokio::test]
async fn a_peer_that_does_not_read_its_answer_is_cut() {
    let mut server = Server::start(AcceptLimits {
        write_stall_ms: 40,
        ..generous()
    })
    .await;
    let mut client = server.connect().await;
    client
        .send("GET /large HTTP/1.1\r\nhost: here\r\n\r\n")
        .await;
    client.stream.read_u8().await.unwrap();
    // The drain's own deadline is far: it can only end by the cut.
    server.shutdown.cancel();
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(0, 1));
    assert!(client.rest().await.len() < 64 * 1024 * 1024);
}

#[tokio::test]
async fn one_field_too_many_is_refused() {
    let server = Server::start(generous()).await;
    for (fields, status) in [
        (HEADER_FIELDS_MAX, "200"),
        (HEADER_FIELDS_MAX + 1, "431"),
        (101, "431"),
    ] {
        let mut client = server.connect().await;
        let more = "x: 1\r\n".repeat(fields - 1);
        client
            .send(&format!("GET / HTTP/1.1\r\nhost: here\r\n{more}\r\n"))
            .await;
        client.stream.shutdown().await.unwrap();
        let answer = String::from_utf8(client.rest().await).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{fields}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_head_of_too_many_bytes_is_refused() {
    let server = Server::start(generous()).await;
    let mut client = server.connect().await;
    let long = "y".repeat(usize::from(HEADER_BYTES_MAX));
    client
        .send(&format!("GET / HTTP/1.1\r\nhost: here\r\nx: {long}"))
        .await;
    let answer = String::from_utf8(client.rest().await).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn connections_beyond_the_cap_wait_while_all_are_busy() {
    let server = Server::start(AcceptLimits {
        connections_max: 2,
        write_stall_ms: 100,
        ..generous()
    })
    .await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    for busy in [&mut first, &mut second] {
        busy.send("GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await;
        server.slow_was_entered().await;
    }
    let mut third = server.connect().await;
    third.send("GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await;
    // A fourth is not even accepted, and the third is not served.
    let mut fourth = server.connect().await;
    server.released.add_permits(1);
    let first_answered = tokio::select! {
        _ = first.answer("slow") => true,
        _ = second.answer("slow") => false,
    };
    server.slow_was_entered().await;
    assert_eq!(server.entered.available_permits(), 0);
    server.released.add_permits(2);
    let busy = if first_answered {
        &mut second
    } else {
        &mut first
    };
    busy.answer("slow").await;
    third.answer("slow").await;
    fourth.get("/", "here").await;
}

#[tokio::test]
async fn a_request_names_its_host_once() {
    let server = Server::start(generous()).await;
    let cases = [
        ("HTTP/1.1", "", "400"),
        ("HTTP/1.1", "host: here\r\nhost: there\r\n", "400"),
        ("HTTP/1.1", "host: a b/c\r\n", "400"),
        ("HTTP/1.1", "host: here@there\r\n", "400"),
        ("HTTP/1.1", "host: [::1]:8080\r\n", "200"),
        ("HTTP/1.1", "host:\r\n", "200"),
        ("HTTP/1.0", "", "200"),
    ];
    for (version, fields, status) in cases {
        let mut client = server.connect().await;
        client
            .send(&format!(
                "GET / {version}\r\n{fields}connection: close\r\n\r\n"
            ))
            .await;
        let answer = String::from_utf8(client.rest().await).unwrap();
        let expected = format!(" {status} ");
        assert_eq!(answer.find(&expected), Some(8), "{fields}: {answer}");
    }
}

#[tokio::test]
async fn a_panic_ends_its_connection_alone() {
    let server = Server::start(generous()).await;
    let (mut loses, mut stays) = (server.connect().await, server.connect().await);
    stays.get("/", "here").await;
    loses
        .send("GET /panic HTTP/1.1\r\nhost: here\r\n\r\n")
        .await;
    assert_eq!(loses.rest().await, b"");
    stays.get("/", "here").await;
    assert_eq!(
        server.ended().await,
        Drained {
            finished: 1,
            cut: 0,
            panicked: 1
        }
    );
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_closes_what_is_idle() {
    let mut server = Server::start(generous()).await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    idle.get("/", "here").await;
    busy.send("GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await;
    server.slow_was_entered().await;

    server.shutdown.cancel();
    assert_eq!(idle.rest().await, b"");
    let refused = TcpStream::connect(server.address).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(
        server.tasks.try_join_next().is_none(),
        "drained before the request was answered"
    );

    server.released.add_permits(1);
    let answer = busy.answer("slow").await;
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(busy.rest().await, b"");
    let end = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!(end, drained(2, 0));
}

#[tokio::test]
async fn a_drain_ends_at_its_deadline() {
    let server = Server::start(AcceptLimits {
        drain_ms: 40,
        ..generous()
    })
    .await;
    let mut busy = server.connect().await;
    busy.send("GET /slow HTTP/1.1\r\nhost: here\r\n\r\n").await;
    server.slow_was_entered().await;
    assert_eq!(server.ended().await, drained(0, 1));
    assert_eq!(busy.rest().await, b"");
}
