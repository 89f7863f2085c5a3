//! HTTP/2 answers that wait behind closed windows: how many, of how many bytes, of one address.

use soldonce_server::limits::{
    ANSWER_BYTES_PER_ADDRESS_MAX, HTTP2_REQUESTS_PER_ADDRESS_MAX, HTTP2_STREAMS_MAX,
};
use soldonce_server::{AcceptLimits, AcceptSettings};

use crate::accept_crowds::{LARGE_BYTES, Server, start};
use crate::frames::{
    self, Client, END_STREAM, END_STREAM_AND_HEADERS, HEADERS, NO_WINDOW, STATUS_200,
};

/// A connection whose windows are closed.
struct Stalled {
    client: Client,
    next: u32,
}

impl Server {
    async fn stalled(&self, from: &str) -> Stalled {
        let stream = self.connect_from(from).await;
        Stalled {
            client: Client::over(stream, NO_WINDOW).await,
            next: 1,
        }
    }
}

impl Stalled {
    /// Whether an answer waits; else it was refused and is over.
    async fn ask(&mut self, path: &str) -> bool {
        let head = frames::head("GET", path, &[]);
        let stream = self.next;
        self.next += 2;
        self.client
            .send(HEADERS, END_STREAM_AND_HEADERS, stream, &head)
            .await;
        let answer = self.client.next_of(HEADERS).await.unwrap();
        assert_eq!(answer.stream, stream);
        let waits = answer.payload.first() == Some(&STATUS_200);
        assert_eq!(answer.flags & END_STREAM == 0, waits, "no refusal waits");
        waits
    }

    async fn ask_often(&mut self, path: &str, times: u32) -> u64 {
        let mut waiting = 0;
        for _ in 0..times {
            waiting += u64::from(self.ask(path).await);
        }
        waiting
    }
}

#[tokio::test]
async fn an_address_has_a_bound_of_answers_that_wait() {
    let server = start(AcceptLimits::default().into()).await;
    let (mut waiting, mut connections) = (0, Vec::new());
    while waiting < HTTP2_REQUESTS_PER_ADDRESS_MAX {
        let mut stalled = server.stalled("127.0.0.2").await;
        waiting += stalled.ask_often("/", HTTP2_STREAMS_MAX).await;
        connections.push(stalled);
    }
    assert_eq!(waiting, HTTP2_REQUESTS_PER_ADDRESS_MAX);
    let mut further = server.stalled("127.0.0.2").await;
    assert_eq!(further.ask_often("/", 9).await, 1, "its only one");
    let mut other = server.stalled("127.0.0.3").await;
    assert_eq!(other.ask_often("/", 9).await, 9);
    // What is taken makes room.
    connections[0].client.grant(1, 100).await;
    assert_eq!(connections[0].client.body_of(1).await, b"here");
    drop(connections);
    while further.ask_often("/", 1).await == 0 {}
}

#[tokio::test]
async fn an_address_has_a_bound_of_bytes_that_wait() {
    let server = start(AcceptLimits::default().into()).await;
    let mut stalled = server.stalled("127.0.0.2").await;
    let most = ANSWER_BYTES_PER_ADDRESS_MAX / u64::try_from(LARGE_BYTES).unwrap();
    assert_eq!(stalled.ask_often("/large", 64).await, most);
    assert!(!stalled.ask("/").await);
    let large = u32::try_from(LARGE_BYTES).unwrap();
    stalled.client.grant(0, large).await;
    stalled.client.grant(1, large).await;
    assert_eq!(stalled.client.body_of(1).await.len(), LARGE_BYTES);
    assert!(stalled.ask("/").await);
}

#[tokio::test]
async fn a_trusted_proxy_has_no_share() {
    let settings = AcceptSettings {
        trusted_proxies: vec!["127.0.0.2".parse().unwrap()],
        ..AcceptLimits::default().into()
    };
    let server = start(settings).await;
    let mut proxy = server.stalled("127.0.0.2").await;
    assert_eq!(proxy.ask_often("/large", 64).await, 64);
}
