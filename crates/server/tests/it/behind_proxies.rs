//! A server behind nginx and haproxy, whose connections to it serve everybody: what a stranger sends
//! without a key costs no buyer an answer.

use std::net::SocketAddr;

use serde_json::json;
use soldonce_testkit::proxy::{ProxyKind, ReverseProxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{hall, units};
use crate::served::served;

/// Holds of each buyer, each of which is released.
const HOLDS: usize = 150;
/// What a stranger sends at once: less than what is read on, more than a socket takes.
const REFUSED_BYTES: usize = 60_000;

/// A connection to the proxy that is kept, and opened anew where the proxy ended it.
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
        }
    }

    /// The status and the body of the answer.
    pub(crate) async fn ask(
        &mut self,
        (method, path): (&str, &str),
        key: &str,
        body: &[u8],
    ) -> std::io::Result<(u16, String)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(self.address).await?,
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: shop\r\ncontent-type: application/json\r\n{key}\
             content-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        let (status, body) = loop {
            if let Some(whole) = parsed(&String::from_utf8_lossy(&answer)) {
                break whole;
            }
            if stream.read_buf(&mut answer).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        };
        let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        if !text.contains("\r\nconnection: close\r\n") {
            self.stream = Some(stream);
        }
        Ok((status, body))
    }
}

/// A whole answer of a known length.
fn parsed(text: &str) -> Option<(u16, String)> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length?.parse().ok()?;
    (body.len() >= length).then(|| (status, body.to_owned()))
}

/// Sends bodies without a key until `stop`; returns how many were refused.
async fn stranger(address: SocketAddr, stop: CancellationToken) -> usize {
    let (body, mut client, mut refused) = (vec![b' '; REFUSED_BYTES], Client::of(address), 0);
    while !stop.is_cancelled() {
        let asked = ("POST", "/v1/events/hall/holds");
        // The proxy may end the stranger's own connection.
        if let Ok((status, text)) = client.ask(asked, "", &body).await {
            assert!([401, 429].contains(&status), "{status} {text}");
            refused += 1;
        }
    }
    refused
}

/// Holds and releases a seat; returns the answers that were lost.
async fn buyer(address: SocketAddr, key: String, seat: String) -> Vec<String> {
    let key = format!("authorization: Bearer {key}\r\n");
    let body = json!({"holder": seat, "units": units(&[&seat])}).to_string();
    let (mut client, mut lost) = (Client::of(address), Vec::new());
    for _ in 0..HOLDS {
        let asked = ("POST", "/v1/events/hall/holds");
        let held = client.ask(asked, &key, body.as_bytes()).await;
        let Ok((201, text)) = &held else {
            lost.push(format!("{held:?}"));
            continue;
        };
        let hold: serde_json::Value = serde_json::from_str(text).unwrap();
        let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
        let released = client.ask(("DELETE", &path), &key, b"").await;
        if !matches!(released, Ok((200, _))) {
            lost.push(format!("{released:?}"));
        }
    }
    lost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_valid_hold_is_lost_beside_bodies_that_are_refused() {
    for kind in ProxyKind::ALL {
        let served = served().await;
        let mut staff = Client::of(served.admin);
        let key = format!("authorization: Bearer {}\r\n", served.key);
        let event = hall("hall", 1).to_string();
        let made = staff
            .ask(("POST", "/v1/events"), &key, event.as_bytes())
            .await;
        assert_eq!(made.unwrap().0, 201);
        let proxy = ReverseProxy::start(kind, served.public).unwrap();
        let stop = CancellationToken::new();
        let mut strangers = JoinSet::new();
        for _ in 0..2 {
            strangers.spawn(stranger(proxy.address(), stop.clone()));
        }
        let mut buyers = JoinSet::new();
        for number in 1..=4 {
            let seat = format!("A-{number}");
            buyers.spawn(buyer(proxy.address(), served.key.clone(), seat));
        }
        let lost: Vec<String> = buyers.join_all().await.concat();
        stop.cancel();
        let refused: usize = strangers.join_all().await.iter().sum();
        assert!(refused > 0, "{kind:?}: the strangers were not there");
        assert_eq!(
            lost,
            Vec::<String>::new(),
            "{kind:?}, with {refused} refusals"
        );
        served.shutdown.cancel();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_opens_a_session_behind_the_nginx_of_the_manual() {
    let served = served().await;
    let proxy = ReverseProxy::start(ProxyKind::NginxManual, served.public).unwrap();
    let mut page = Client::of(proxy.address());
    let asked = ("POST", "/v1/sessions");
    let opened = page.ask(asked, "origin: https://shop\r\n", b"{}").await;
    let (status, text) = opened.unwrap();
    assert_eq!(status, 201, "{text}");
    served.shutdown.cancel();
}
