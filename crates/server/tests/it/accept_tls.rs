//! HTTPS on the server's own listener: what it shows, whom it cuts, and a certificate that is renewed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use soldonce_clock::ManualClock;
use soldonce_server::{AcceptLimits, AcceptSettings, Drained, serve};
use soldonce_testkit::{Authority, Validity};
use soldonce_tls::{Listener, Reloaded};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

use crate::harness::TestApp;

struct Server {
    authority: Authority,
    folder: PathBuf,
    listener: Listener,
    address: std::net::SocketAddr,
    clock: ManualClock,
    shutdown: CancellationToken,
    tasks: JoinSet<Drained>,
}

async fn start(name: &str) -> Server {
    let authority = Authority::new().unwrap();
    let own = format!("{name}-{}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(own);
    std::fs::create_dir_all(&folder).unwrap();
    let certificate = authority.certify("localhost", Validity::Now).unwrap();
    let [certificate, key] = certificate.write(&folder, "own").unwrap();
    let listener = Listener::load(certificate, key).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (clock, shutdown) = (ManualClock::at(0), CancellationToken::new());
    let settings = AcceptSettings {
        tls: Some(listener.clone()),
        clock: Arc::new(clock.clone()),
        ..AcceptLimits::default().into()
    };
    let router = Router::new().route("/", get(|| async { "here" }));
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(socket, router, settings, shutdown.clone()));
    Server {
        authority,
        folder,
        listener,
        address,
        clock,
        shutdown,
        tasks,
    }
}

impl Server {
    /// Connects as a client that trusts this authority and speaks these protocols.
    async fn connect(
        &self,
        authority: &Authority,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
        roots.add(trusted).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let host = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(host, stream)
            .await
    }
}

async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn it_answers_clients_that_trust_its_authority_in_the_protocol_they_choose() {
    let server = start("tls-answers").await;
    let mut stream = server
        .connect(&server.authority, &["http/1.1"])
        .await
        .unwrap();
    let answer = ask(&mut stream).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("here"),
        "{answer}"
    );
    let stream = server
        .connect(&server.authority, &["h2", "http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let stranger = Authority::new().unwrap();
    let refused = server.connect(&stranger, &[]).await.unwrap_err();
    assert!(
        refused.to_string().contains("invalid peer certificate"),
        "{refused}"
    );
}

#[tokio::test]
async fn clear_text_is_not_answered_and_a_silent_client_is_cut() {
    let mut server = start("tls-clear").await;
    let mut clear = TcpStream::connect(server.address).await.unwrap();
    clear
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    clear.read_to_end(&mut answer).await.ok();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut end = [0];
    let mut cut = std::pin::pin!(silent.read(&mut end));
    loop {
        tokio::select! {
            biased;
            read = &mut cut => {
                assert_eq!(read.unwrap_or(0), 0);
                break;
            }
            () = tokio::task::yield_now() => server.clock.advance(Duration::from_secs(1)),
        }
    }
    server.shutdown.cancel();
    let drained = server.tasks.join_next().await.unwrap().unwrap();
    assert_eq!((drained.finished, drained.cut, drained.panicked), (1, 1, 0));
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_a_broken_one_to_none() {
    let server = start("tls-renewed").await;
    let shown = |stream: &TlsStream<TcpStream>| {
        let chain = stream.get_ref().1.peer_certificates().unwrap();
        chain[0].to_vec()
    };
    let connect = || server.connect(&server.authority, &["http/1.1"]);
    let mut open = connect().await.unwrap();
    assert_eq!(server.listener.reload().unwrap(), Reloaded::Same);
    let renewed = server
        .authority
        .certify("localhost", Validity::Now)
        .unwrap();
    renewed.write(&server.folder, "own").unwrap();
    assert_eq!(server.listener.reload().unwrap(), Reloaded::Changed);
    assert_eq!(shown(&connect().await.unwrap()), renewed.der());
    assert!(ask(&mut open).await.contains("here"));
    // The certificate was renewed and the key not yet.
    let other = server
        .authority
        .certify("localhost", Validity::Now)
        .unwrap();
    let [certificate, _] = other.write(&server.folder, "other").unwrap();
    std::fs::copy(certificate, server.folder.join("own.pem")).unwrap();
    let refused = server.listener.reload().unwrap_err();
    assert!(refused.to_string().contains("cannot be used"), "{refused}");
    assert_eq!(shown(&connect().await.unwrap()), renewed.der());
}

#[tokio::test]
async fn the_metrics_tell_when_the_certificate_ends() {
    let server = start("tls-metrics").await;
    let tls = server.listener.clone();
    let app = TestApp::open_with(|settings| settings.tls = Some(tls)).await;
    let metrics = app.get("/metrics").send().await;
    let metrics = metrics.expect(StatusCode::OK).text();
    let line = "soldonce_tls_certificate_not_after_timestamp_seconds 67090118400\n";
    assert!(metrics.contains(line), "{metrics}");
}
