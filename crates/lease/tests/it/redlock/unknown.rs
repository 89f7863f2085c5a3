//! B7 on a Redlock behind proxies that lose the answers of all nodes or of one, at the end of their
//! memory, and with no server there.

use soldonce_lease::FencingToken;
use soldonce_lease::backend::redis::RedlockConfig;
use soldonce_lease::backend::{AcquireReply, Backend, ReleaseReply, RenewReply};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};
use std::time::Duration;

use super::{ask, connect, granted, redlock, release, renew};
use crate::conformance::{
    Unheard, b7_what_found_nobody_is_not_sent, b7_what_is_rejected_did_not_run,
    b7_what_ran_unheard_is_unknown,
};

/// Three servers, each behind a proxy, and a backend that knows only the proxies.
struct Behind {
    servers: Vec<Redis>,
    proxies: Vec<FaultProxy>,
    backend: soldonce_lease::backend::redis::Redlock,
}

impl Behind {
    async fn start() -> Self {
        let servers = Redis::independent(3).unwrap();
        let before = |server: &Redis| FaultProxy::to(server.address()).unwrap();
        let proxies: Vec<FaultProxy> = servers.iter().map(before).collect();
        let url = |(server, proxy): (&Redis, &FaultProxy)| {
            proxy.url(&server.url(), server.address()).into()
        };
        let nodes = servers.iter().zip(&proxies).map(url).collect();
        let backend = connect(RedlockConfig::new(nodes).sit_out(Duration::ZERO)).await;
        Self {
            servers,
            proxies,
            backend,
        }
    }

    /// Waits until so many servers have the lease: a majority answered, and the last node may still
    /// be about to do what it was asked.
    fn settled(&self, text: &str, having: usize) {
        let pattern = format!("sl:*:l:{text}");
        let has = |server: &&Redis| !server.cli(&["KEYS", &pattern]).unwrap().is_empty();
        let all = || self.servers.iter().filter(has).count() == having;
        until("every node has done what it was asked", PATIENCE, all).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_what_ran_on_all_nodes_unheard_is_unknown() {
    let behind = Behind::start().await;
    let witness = redlock(&behind.servers).await;
    let lose = |text: &str| {
        behind.settled(text, if text == "unheard-grant" { 0 } else { 3 });
        for proxy in &behind.proxies {
            proxy.next_with(text, Fault::DropReply);
        }
    };
    // A vote that did not win is given back before a caller is told.
    let withdrawn = Unheard::IsWithdrawn;
    b7_what_ran_unheard_is_unknown(&behind.backend, &witness, withdrawn, lose).await;
    for proxy in &behind.proxies {
        assert_eq!(proxy.to_come(), 0, "an answer that was not lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_what_one_node_does_not_answer_is_known() {
    let behind = Behind::start().await;
    let lose = || behind.proxies[1].next_with("report", Fault::DropReply);
    let (warm, mine) = (ask("report"), ask("report"));
    let token = granted(&behind.backend, &warm).await;
    renew(&behind.backend, &warm, token).await;
    release(&behind.backend, &warm, None).await;
    behind.settled("report", 0);
    lose();
    let token = granted(&behind.backend, &mine).await;
    behind.settled("report", 3);
    lose();
    let renewed = renew(&behind.backend, &mine, token).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
    lose();
    let released = release(&behind.backend, &mine, None).await;
    assert_eq!(released, ReleaseReply::Released);
    behind.settled("report", 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_what_all_nodes_reject_did_not_run() {
    let servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    let full = |server: &Redis| server.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    servers.iter().map(full).for_each(drop);
    b7_what_is_rejected_did_not_run(&backend, &backend, "OOM").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_what_found_closed_ports_was_not_sent() {
    let mut servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    for server in &mut servers {
        server.kill().unwrap();
    }
    // A command on a connection that broke may have run; the next ones find no server.
    for _ in 0..2 {
        let reply = backend.acquire(&ask("a")).await;
        assert!(matches!(reply, AcquireReply::Failed(_)), "{reply:?}");
    }
    let unheld = FencingToken::from_parts(0, 1).unwrap();
    renew(&backend, &ask("a"), unheld).await;
    b7_what_found_nobody_is_not_sent(&backend).await;
}
