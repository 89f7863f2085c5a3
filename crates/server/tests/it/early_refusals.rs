//! Requests that are refused before their body is read: the next one on their connection is answered,
//! be it another client's behind a proxy.

use std::time::Duration;

use soldonce_server::limits::{LEFTOVER_KEPT_BYTES_MAX, LEFTOVER_READ_MS_MAX};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::frames::{self, END_HEADERS, END_STREAM_AND_HEADERS, HEADERS, STATUS_200};
use crate::served::{Served, served};

/// More refusals than a connection may reset streams of its own.
const REFUSALS: u32 = 160;

/// One HTTP/1.1 connection.
struct Client(TcpStream);

impl Client {
    async fn connect(served: &Served) -> Self {
        Self(TcpStream::connect(served.public).await.unwrap())
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    async fn send_head(&mut self, method: &str, path: &str, fields: &str) {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: here\r\n{fields}\r\n");
        self.send(head.as_bytes()).await;
    }

    /// A whole answer with a known length.
    async fn answer(&mut self) -> String {
        let mut answer = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&answer);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let mut fields = head.lines().filter_map(|line| line.split_once(": "));
                let length = fields.find(|(name, _)| *name == "content-length");
                if body.len() >= length.map_or(0, |(_, length)| length.parse().unwrap()) {
                    return text.into_owned();
                }
            }
            let read = self.0.read_buf(&mut answer).await.unwrap();
            assert!(read > 0, "closed early");
        }
    }

    async fn is_ready(&mut self) {
        self.send_head("GET", "/readyz", "").await;
        let answer = self.answer().await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    async fn closes(mut self) {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest).await {
            Ok(_) => assert_eq!(rest, b""),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
}

fn length(bytes: usize) -> String {
    format!("content-type: application/json\r\ncontent-length: {bytes}\r\n")
}

#[tokio::test]
async fn the_next_request_on_the_connection_is_answered() {
    let served = served().await;
    let key = format!("authorization: Bearer {}\r\n", served.key);
    let cases = [
        ("POST", "/v1/events/hall/holds", "", 39, "401"),
        ("POST", "/v1/events/hall/holds", "", 60_000, "401"),
        ("POST", "/nope", "", 39, "404"),
        ("POST", "/healthz", "", 60_000, "405"),
        ("POST", "/v1/events/hall/holds", &*key, 100_000, "413"),
        ("GET", "/readyz", "", 60_000, "200"),
    ];
    let mut client = Client::connect(&served).await;
    for (method, path, credentials, bytes, status) in cases {
        let fields = format!("{credentials}{}", length(bytes));
        client.send_head(method, path, &fields).await;
        let answer = client.answer().await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{method} {path}: {answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
        client.send(&vec![b' '; bytes]).await;
        client.is_ready().await;
    }
}

#[tokio::test]
async fn a_body_in_chunks_is_read_on_too() {
    let served = served().await;
    let mut client = Client::connect(&served).await;
    client
        .send_head("POST", "/nope", "transfer-encoding: chunked\r\n")
        .await;
    assert!(client.answer().await.starts_with("HTTP/1.1 404 "));
    client.send(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n").await;
    client.is_ready().await;
}

#[tokio::test]
async fn a_connection_that_is_not_used_again_is_told_so() {
    let served = served().await;
    let long = usize::try_from(LEFTOVER_KEPT_BYTES_MAX).unwrap() + 1;
    let mut client = Client::connect(&served).await;
    client.send_head("POST", "/nope", &length(long)).await;
    let answer = client.answer().await;
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    client.send(&vec![b' '; long]).await;
    client.closes().await;

    let mut waits = Client::connect(&served).await;
    let fields = format!("expect: 100-continue\r\n{}", length(39));
    waits.send_head("POST", "/nope", &fields).await;
    let answer = waits.answer().await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    waits.closes().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for_long() {
    let served = served().await;
    let mut client = Client::connect(&served).await;
    client.send_head("POST", "/nope", &length(39)).await;
    client.answer().await;
    served
        .clock
        .advance(Duration::from_millis(LEFTOVER_READ_MS_MAX));
    client.closes().await;
}

#[tokio::test]
async fn refusals_on_an_http2_connection_cost_its_other_requests_nothing() {
    let served = served().await;
    let mut client = frames::Client::connect(served.public, b"").await;
    let refused = frames::head("POST", "/v1/events/hall/holds", &[]);
    let asks = frames::head("GET", "/readyz", &[]);
    let body = vec![b' '; 60_000];
    for number in 0..REFUSALS {
        let (first, second) = (4 * number + 1, 4 * number + 3);
        client.send(HEADERS, END_HEADERS, first, &refused).await;
        let answer = client.next_of(HEADERS).await.unwrap();
        assert_eq!(answer.stream, first);
        assert_ne!(answer.payload.first(), Some(&STATUS_200));
        client
            .send(HEADERS, END_STREAM_AND_HEADERS, second, &asks)
            .await;
        client.send_body(first, &body).await;
        let ready = client.body_of(second).await;
        let ready = String::from_utf8(ready).unwrap();
        assert!(ready.contains("ready"), "{ready}");
    }
}
