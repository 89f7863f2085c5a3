//! B7 on a cluster whose nodes are known by their proxies, at the end of its memory, and gone.

use std::time::Duration;

use soldonce_lease::BackendError;
use soldonce_lease::backend::Backend;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{FullCoverage, Redis};

use super::{Site, ask, granted, key_of, name, one};
use crate::conformance::{
    Unheard, b7_what_found_nobody_is_not_sent, b7_what_is_rejected_did_not_run,
    b7_what_ran_unheard_is_unknown,
};
use crate::redis::site::until;

/// Puts a proxy before each node, and lets the cluster tell clients of the proxies alone.
async fn behind_proxies(nodes: &[Redis]) -> Vec<FaultProxy> {
    let before = |node: &Redis| FaultProxy::to(node.address()).unwrap();
    let proxies: Vec<FaultProxy> = nodes.iter().map(before).collect();
    for (node, proxy) in nodes.iter().zip(&proxies) {
        let port = proxy.address().port().to_string();
        node.cli(&["CONFIG", "SET", "cluster-announce-port", &port])
            .unwrap();
    }
    let knows_all = |node: &Redis| {
        let told = node.cli(&["CLUSTER", "NODES"]).unwrap();
        let by = |proxy: &FaultProxy| told.contains(&format!("{}@", proxy.address()));
        proxies.iter().all(by)
    };
    until("every node tells of the proxies", async || {
        nodes.iter().all(knows_all).then_some(())
    })
    .await;
    proxies
}

#[tokio::test]
async fn b7_what_ran_on_a_cluster_unheard_is_unknown() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let proxies = behind_proxies(site.cluster.nodes()).await;
    let (backend, witness) = (site.connect().await, site.witness().await);
    let lose = |text: &str| {
        let place = site.cluster.node_of(&key_of(text)).unwrap();
        proxies[place].next_with(text, Fault::DropReply);
    };
    b7_what_ran_unheard_is_unknown(&backend, &witness, Unheard::Stays, lose).await;
    for proxy in &proxies {
        assert_eq!(proxy.to_come(), 0, "an answer that was not lost");
    }
}

/// Nodes are far away: to connect to one takes longer than half a second, and a call may take a minute.
#[tokio::test]
async fn a_node_may_be_connected_for_as_long_as_a_call_takes() {
    let site = Site::start(FullCoverage::NotRequired).await;
    let proxies = behind_proxies(site.cluster.nodes()).await;
    for proxy in &proxies {
        proxy.set(Fault::Delay(Duration::from_millis(600)));
    }
    let backend = site.connect().await;
    for place in 0..3 {
        granted(&backend, &ask(one(&site.name_on(place)))).await;
    }
}

#[tokio::test]
async fn b7_what_a_cluster_rejects_did_not_run_and_what_found_nobody_was_not_sent() {
    let mut site = Site::start(FullCoverage::NotRequired).await;
    for node in site.cluster.nodes() {
        node.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    }
    b7_what_is_rejected_did_not_run(&*site.backend, &*site.backend, "OOM").await;
    for place in 0..6 {
        site.cluster.node(place).unwrap().kill().unwrap();
    }
    // A command on a connection that broke may have run; the next ones find no server.
    until("the broken connections are noticed", async || {
        let answer = site.backend.inspect(None, &name("nobody")).await;
        matches!(answer, Err(BackendError::NotSent(_))).then_some(())
    })
    .await;
    b7_what_found_nobody_is_not_sent(&*site.backend).await;
}
