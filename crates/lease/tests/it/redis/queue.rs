//! What the scripts answer to those who wait in a fair queue, and beside it.

use soldonce_lease::backend::{AcquireReply, Backend, ReleaseReply};

use super::site::{Site, ask, ask_fair, granted, one, refused, release, while_waiters_live};
use crate::conformance;

#[tokio::test]
pub(super) async fn waiters_are_served_in_order_and_nobody_overtakes() {
    let (holder, first, second) = (ask(one("a")), ask_fair(one("a"), 1), ask_fair(one("a"), 2));
    let scene = while_waiters_live(async |site: Site| {
        granted(&site.backend, &holder).await;
        assert_eq!(refused(&site.backend, &first).await, ["a"]);
        assert_eq!(refused(&site.backend, &second).await, ["a"]);
        release(&site.backend, &holder, None).await;
        let passer_by = site.backend.acquire(&ask(one("a"))).await;
        let early = site.backend.acquire(&second).await;
        let head = site.backend.acquire(&first).await;
        let behind = site.backend.acquire(&second).await;
        let freed = release(&site.backend, &first, None).await;
        // The second gives its place up: a passer-by may go.
        let given_up = release(&site.backend, &second, None).await;
        let next = site.backend.acquire(&ask(one("a"))).await;
        ([passer_by, early], behind, [head, next], [freed, given_up])
    });
    let (waiting, behind, served, releases) = scene.await;
    for reply in waiting {
        let conflicts = conformance::refused(reply).conflicts;
        assert!(conflicts.is_empty(), "the first is next: {conflicts:?}");
    }
    assert_eq!(conformance::refused(behind).conflicts.len(), 1);
    for reply in served {
        conformance::granted(reply);
    }
    assert_eq!(releases, [ReleaseReply::Released, ReleaseReply::Gone]);
}

#[tokio::test]
pub(super) async fn a_waiter_that_died_is_passed_over_after_its_beat_is_old() {
    passes_over_a_beat(|now| now - 4).await;
}

/// The server's clock went back an hour after its last beat.
#[tokio::test]
pub(super) async fn a_dead_waiter_of_a_clock_that_was_ahead_is_passed_over() {
    passes_over_a_beat(|now| now + 3_600).await;
}

/// A waiter asked last when the clock said so, in seconds.
async fn passes_over_a_beat(beat: impl Fn(u64) -> u64) {
    let site = Site::start().await;
    let dead = ask_fair(one("a"), 1);
    let holder = ask(one("a"));
    granted(&site.backend, &holder).await;
    refused(&site.backend, &dead).await;
    release(&site.backend, &holder, None).await;
    // Its beat is set instead of waiting that long.
    let queue = site.redis.cli(&["KEYS", "sl:*:q:a"]).unwrap();
    let time = site.redis.cli(&["TIME"]).unwrap();
    let now: u64 = time.lines().next().unwrap().parse().unwrap();
    let place = format!("1:{}", beat(now) * 1_000);
    site.redis
        .cli(&["HSET", &queue, &format!("{:016x}", 1), &place])
        .unwrap();
    granted(&site.backend, &ask(one("a"))).await;
    assert_eq!(
        site.redis.cli(&["EXISTS", &queue]).unwrap(),
        "0",
        "the dead one is removed"
    );
}

#[tokio::test]
pub(super) async fn a_full_queue_says_so() {
    let queued = while_waiters_live(async |site: Site| {
        granted(&site.backend, &ask(one("a"))).await;
        for waiter in 0..128 {
            refused(&site.backend, &ask_fair(one("a"), waiter)).await;
        }
        let one_more = site.backend.acquire(&ask_fair(one("a"), 128)).await;
        (one_more, site.backend.acquire(&ask_fair(one("a"), 5)).await)
    });
    let (one_more, again) = queued.await;
    assert_eq!(one_more, AcquireReply::QueueFull);
    conformance::refused(again);
}
