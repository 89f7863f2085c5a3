//! Waiting at the backend: hints and fair queues. A backend without them has nothing to show.

use std::time::Duration;

use soldonce_lease::backend::{Acquire, Waiter};
use soldonce_lease::{Clock, SystemClock};

use super::{Bench, acquire, ask, granted, one, refused, release};
use crate::requests;

/// Longest wait for a hint that must come.
const HINT_LIMIT: Duration = Duration::from_secs(5);

pub(crate) async fn a_release_wakes(bench: &dyn Bench) {
    if !bench.wakes() {
        return;
    }
    let names = one("a");
    granted(acquire(bench, &names, 1).await);
    let mut wake = bench.backend().wake(&names).await;
    release(bench, &names, 1, None).await;
    let hint = tokio::time::timeout(HINT_LIMIT, wake.next()).await;
    assert!(hint.is_ok(), "no hint within {HINT_LIMIT:?}");
    // Hints come before the wait for them, too.
    granted(acquire(bench, &names, 2).await);
    let mut wake = bench.backend().wake(&names).await;
    release(bench, &names, 2, None).await;
    granted(acquire(bench, &names, 3).await);
    let hint = tokio::time::timeout(HINT_LIMIT, wake.next()).await;
    assert!(hint.is_ok(), "a hint before the wait was lost");
}

fn fair(bench: &dyn Bench, n: u64) -> Acquire {
    Acquire {
        fair: true,
        waiter: Some(Waiter(n)),
        ..ask(bench, &one("q"), n)
    }
}

/// Holds the name for owner 1 and queues 2 and 3 behind it.
async fn queue_of_two(bench: &dyn Bench) {
    granted(bench.backend().acquire(&fair(bench, 1)).await);
    for n in [2, 3] {
        let refusal = refused(bench.backend().acquire(&fair(bench, n)).await);
        assert!(refusal.queued, "{n} has no place");
    }
}

pub(crate) async fn a_fair_queue_keeps_the_order(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    queue_of_two(bench).await;
    release(bench, &one("q"), 1, None).await;
    let refusal = refused(bench.backend().acquire(&fair(bench, 3)).await);
    assert!(
        refusal.queued && refusal.conflicts.is_empty(),
        "{refusal:?}"
    );
    granted(bench.backend().acquire(&fair(bench, 2)).await);
    release(bench, &one("q"), 2, None).await;
    granted(bench.backend().acquire(&fair(bench, 3)).await);
}

pub(crate) async fn nobody_overtakes_a_live_waiter(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    queue_of_two(bench).await;
    release(bench, &one("q"), 1, None).await;
    let refusal = refused(acquire(bench, &one("q"), 9).await);
    assert!(refusal.conflicts.is_empty(), "{refusal:?}");
    // A waiter that gives up leaves at once.
    for n in [2, 3] {
        requests::release(bench.backend(), &fair(bench, n), None).await;
    }
    granted(acquire(bench, &one("q"), 9).await);
}

pub(crate) async fn a_dead_waiter_costs_three_seconds(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    let [skipped, rest] = [500, 2_500].map(Duration::from_millis);
    let begun = SystemClock.boot();
    queue_of_two(bench).await;
    release(bench, &one("q"), 1, None).await;
    bench.advance(skipped).await;
    // Waiter 3 asks on, waiter 2 is dead and still counts.
    let refusal = refused(bench.backend().acquire(&fair(bench, 3)).await);
    let left = refusal.retry_after;
    let passed = skipped + SystemClock.boot().since(begun);
    let most = rest + Duration::from_millis(10);
    assert!(left <= most && left + passed >= skipped + rest, "{left:?}");
    bench.advance(rest + bench.slack()).await;
    granted(bench.backend().acquire(&fair(bench, 3)).await);
}
