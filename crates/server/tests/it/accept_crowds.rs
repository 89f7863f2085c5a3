//! Many connections: of one address, and more than there is room for.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use soldonce_server::{AcceptLimits, AcceptSettings, Drained, listen, serve};
use soldonce_testkit::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const LARGE_BYTES: usize = 1_024 * 1_024;

pub(crate) struct Server {
    address: SocketAddr,
    _tasks: JoinSet<Drained>,
}

pub(crate) async fn start(settings: AcceptSettings) -> Server {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new()
        .route("/", get(|| async { "here" }))
        .route("/taken", post(|_: Bytes| async { "taken" }))
        .route("/large", get(|| async { vec![b'x'; LARGE_BYTES] }));
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, router, settings, CancellationToken::new()));
    Server {
        address: SocketAddr::from(([127, 0, 0, 1], port)),
        _tasks: tasks,
    }
}

impl Server {
    /// A connection from an address of this machine.
    pub(crate) async fn connect_from(&self, address: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket
            .bind(SocketAddr::new(address.parse().unwrap(), 0))
            .unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

/// A new connection is let be for 25 milliseconds.
fn looked_at_often() -> AcceptLimits {
    AcceptLimits {
        write_stall_ms: 100,
        ..AcceptLimits::default()
    }
}

/// Whether a request is answered; false if the server closes.
async fn is_served(stream: &mut TcpStream) -> bool {
    let request = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n";
    if stream.write_all(request).await.is_err() {
        return false;
    }
    let mut answer = Vec::new();
    while !answer.ends_with(b"here") {
        match stream.read_buf(&mut answer).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    true
}

#[tokio::test]
async fn an_address_has_a_share_of_the_connections() {
    let limits = AcceptLimits {
        connections_per_address_max: 2,
        ..AcceptLimits::default()
    };
    let server = start(limits.into()).await;
    let mut own = [
        server.connect_from("127.0.0.2").await,
        server.connect_from("127.0.0.2").await,
    ];
    for stream in &mut own {
        assert!(is_served(stream).await);
    }
    assert!(!is_served(&mut server.connect_from("127.0.0.2").await).await);
    assert!(is_served(&mut server.connect_from("127.0.0.3").await).await);
    for stream in &mut own {
        assert!(is_served(stream).await, "who was there stays");
    }
    let [gone, _stays] = own;
    drop(gone);
    while !is_served(&mut server.connect_from("127.0.0.2").await).await {}
}

#[tokio::test]
async fn a_trusted_proxy_has_as_many_as_there_are() {
    let limits = AcceptLimits {
        connections_per_address_max: 1,
        ..AcceptLimits::default()
    };
    let settings = AcceptSettings {
        trusted_proxies: vec!["127.0.0.2".parse().unwrap()],
        ..limits.into()
    };
    let server = start(settings).await;
    let mut streams = Vec::new();
    for _ in 0..4 {
        let mut stream = server.connect_from("127.0.0.2").await;
        assert!(is_served(&mut stream).await);
        streams.push(stream);
    }
}

#[tokio::test]
async fn a_full_server_ends_the_longest_idle_for_a_new_one() {
    let limits = AcceptLimits {
        connections_max: 3,
        ..looked_at_often()
    };
    let server = start(limits.into()).await;
    let mut streams = Vec::new();
    // Thrice as many as there is room for, the last three of which stay.
    for _ in 0..9 {
        let mut stream = server.connect_from("127.0.0.1").await;
        assert!(is_served(&mut stream).await);
        streams.push(stream);
    }
    let mut served = 0;
    for stream in &mut streams {
        served += u32::from(is_served(stream).await);
    }
    assert_eq!(served, 3, "no client waits any more, so none is cut off");
}

#[tokio::test]
async fn connections_that_never_ask_give_way() {
    let limits = AcceptLimits {
        connections_max: 3,
        ..looked_at_often()
    };
    let server = start(limits.into()).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        silent.push(server.connect_from("127.0.0.1").await);
    }
    assert!(is_served(&mut server.connect_from("127.0.0.2").await).await);
}

/// As many as there is room for keep their bodies back. One ends its body and begins the next request in one packet,
/// so that it is never without a request.
#[tokio::test]
async fn connections_that_keep_their_bodies_back_give_way() {
    let limits = AcceptLimits {
        connections_max: 3,
        ..looked_at_often()
    };
    let server = start(limits.into()).await;
    let head = "POST /taken HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\n\r\na";
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut stream = server.connect_from("127.0.0.2").await;
        let twice = format!("{head}b{head}");
        stream.write_all(twice.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"taken") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        slow.push(stream);
    }
    assert!(is_served(&mut server.connect_from("127.0.0.3").await).await);
}

/// Far more than the 128 that a listener has room for by default. Both ends are this process's, and many logins let
/// it have 1,024 files.
const CROWD: usize = 450;

#[tokio::test]
async fn a_crowd_that_comes_at_once_waits_in_the_queue_of_the_listener() {
    let listener = listen("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Nothing accepts. The kernel drops what its queue has no room for, and the client tries again for minutes.
    let mut waiting = Vec::new();
    for _ in 0..CROWD {
        let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await;
        waiting.push(connected.expect("the queue is full").unwrap());
    }
    let (mut tasks, shutdown) = (JoinSet::new(), CancellationToken::new());
    let router = Router::new().route("/", get(|| async { "here" }));
    let limits = AcceptLimits::default();
    tasks.spawn(serve(listener, router, limits, shutdown));
    for stream in &mut waiting {
        assert!(is_served(stream).await);
    }
}
