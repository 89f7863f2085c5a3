//! B7 on a Redis behind a proxy that loses answers, at its memory's end, and gone.

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{Redis, RedisPair};

use super::site::{Site, connect, settings, until};
use crate::conformance::{
    Unheard, b7_what_found_nobody_is_not_sent, b7_what_is_rejected_did_not_run,
    b7_what_ran_unheard_is_unknown,
};

#[tokio::test]
async fn b7_what_ran_and_was_not_heard_is_unknown() {
    let redis = Redis::start().unwrap();
    let witness = connect(&redis, settings()).await;
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let url = proxy.url(&redis.url(), redis.address());
    let behind = url.into();
    let backend = RedisBackend::connect(&behind, settings()).await.unwrap();
    let lose = |text: &str| proxy.next_with(text, Fault::DropReply);
    b7_what_ran_unheard_is_unknown(&backend, &witness, Unheard::Stays, lose).await;
    assert_eq!(proxy.to_come(), 0);
}

#[tokio::test]
async fn b7_what_the_server_rejects_did_not_run() {
    let Site { redis, backend } = Site::start().await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    b7_what_is_rejected_did_not_run(&backend, &backend, "OOM").await;
    let pair = RedisPair::start().unwrap();
    let replica = connect(&pair.replica, settings()).await;
    let primary = connect(&pair.primary, settings()).await;
    b7_what_is_rejected_did_not_run(&replica, &primary, "READONLY").await;
}

#[tokio::test]
async fn b7_what_found_a_closed_port_was_not_sent() {
    let Site { mut redis, backend } = Site::start().await;
    redis.kill().unwrap();
    // A command on the connection that broke may have run; the next ones find no server.
    until("the broken connection is noticed", async || {
        let holder = soldonce_lease::Name::new("a").unwrap();
        let answer = soldonce_lease::backend::Backend::inspect(&backend, None, &holder).await;
        matches!(answer, Err(soldonce_lease::BackendError::NotSent(_))).then_some(())
    })
    .await;
    b7_what_found_nobody_is_not_sent(&backend).await;
}
