//! A whole server on sockets: it sweeps, answers, and ends in order.

use std::net::SocketAddr;
use std::sync::Arc;

use soldonce_clock::{ManualClock, SystemEntropy};
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::{Engine, World};
use soldonce_server::{AcceptLimits, Access, Drained, Listeners, ServerSettings, run};
use soldonce_testkit::TempFolder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{NOON, hall};

/// A server on sockets, with a clock that stands still.
pub(crate) struct Served {
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) key: String,
    pub(crate) public: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) server: JoinSet<Drained>,
    _folder: TempFolder,
}

/// Open to shoppers, with an admin listener.
pub(crate) async fn served() -> Served {
    let settings = ServerSettings {
        shoppers: Access::Open,
        ..ServerSettings::default()
    };
    served_with(settings).await
}

pub(crate) async fn served_with(settings: ServerSettings) -> Served {
    let time = ManualClock::at(NOON);
    let world = World {
        clock: Arc::new(time.clone()),
        entropy: Arc::new(SystemEntropy),
    };
    let metrics = Arc::new(Metrics::default());
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let (clock, observer) = (Arc::clone(&world.clock), Arc::clone(&live));
    let folder = TempFolder::new().unwrap();
    let options = SqliteOptions::new(folder.path());
    let ledger = SqliteLedger::open(&options, clock, &SystemEntropy, observer).unwrap();
    let engine = Engine::new(Arc::new(ledger), live, metrics, world)
        .await
        .unwrap();
    let name = soldonce_core::Text::parse("admin").unwrap();
    let scopes = vec![soldonce_engine::keys::Scope::Admin];
    let (_, key) = engine.create_key(name, scopes).await.unwrap();
    let listener = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (public, admin) = (listener().await, listener().await);
    let addresses = (public.local_addr().unwrap(), admin.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let mut server = JoinSet::new();
    let listeners = Listeners {
        public,
        admin: Some(admin),
    };
    server.spawn(run(listeners, engine.clone(), settings, shutdown.clone()));
    Served {
        engine,
        clock: time,
        key,
        public: addresses.0,
        admin: addresses.1,
        shutdown,
        server,
        _folder: folder,
    }
}

/// Sends a request and reads the answer's head and what follows until `enough`.
pub(crate) async fn ask(address: SocketAddr, request: &str, enough: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let text = ask_on(&mut stream, request, enough).await;
    (stream, text)
}

/// The same on an open connection.
pub(crate) async fn ask_on(stream: &mut TcpStream, request: &str, enough: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4_096];
    while !text.contains(enough) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "closed after {text}");
        text.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
    }
    text
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

#[tokio::test]
async fn a_server_ends_its_streams_and_closes_the_ledger() {
    let mut served = served().await;
    let body = hall("hall", 1).to_string();
    let (key, length) = (&served.key, body.len());
    let create = format!(
        "POST /v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let (_idle, created) = ask(served.admin, &create, "server_time").await;
    assert!(created.starts_with("HTTP/1.1 201"), "{created}");
    let feed = get("/v1/events/hall/feed?after=0");
    let (mut stream, head) = ask(served.public, &feed, "event: event").await;
    assert!(head.contains("text/event-stream"), "{head}");
    ask(served.public, &get("/healthz"), "ok").await;
    let (_, ready) = ask(served.admin, &get("/readyz"), "ready").await;
    assert!(ready.starts_with("HTTP/1.1 200"));
    let (_, metrics) = ask(served.admin, &get("/metrics"), "/healthz").await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    served.shutdown.cancel();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"0\r\n\r\n", "the stream ends properly");
    let drained = served.server.join_next().await.unwrap().unwrap();
    assert_eq!((drained.cut, drained.panicked), (0, 0));
    assert!(drained.finished >= 3, "{drained:?}");
    assert!(!served.engine.is_writable());
}

#[tokio::test]
async fn connections_are_told_to_the_metrics() {
    let accept = AcceptLimits {
        connections_per_address_max: 2,
        ..AcceptLimits::default()
    };
    let served = served_with(ServerSettings {
        accept,
        ..ServerSettings::default()
    })
    .await;
    let (_one, _) = ask(served.public, &get("/healthz"), "ok").await;
    let (_two, _) = ask(served.public, &get("/healthz"), "ok").await;
    let mut third = TcpStream::connect(served.public).await.unwrap();
    let mut rest = Vec::new();
    // Closed without an answer, perhaps with a reset.
    third.read_to_end(&mut rest).await.ok();
    assert_eq!(rest, b"");
    let scrape = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let (mut stream, mut metrics) = ask(served.admin, scrape, "HTTP/1.1 200").await;
    stream.read_to_string(&mut metrics).await.unwrap();
    for told in [
        "soldonce_connections 3\n",
        "soldonce_connections_closed_early_total{why=\"address\"} 1\n",
        "soldonce_connections_closed_early_total{why=\"room\"} 0\n",
    ] {
        assert!(metrics.contains(told), "{told}{metrics}");
    }
}
