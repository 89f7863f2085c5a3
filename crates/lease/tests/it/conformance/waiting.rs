//! Waiting at the backend: hints and fair queues. A backend without them has nothing to show.

use std::time::Duration;

use soldonce_lease::backend::{Acquire, AcquireReply, Names, Waiter};
use soldonce_lease::limits::WAITER_ALIVE;
use soldonce_lease::{BootTime, Clock, SystemClock};

use super::{Bench, acquire, ask, granted, one, refused, release};
use crate::requests;

/// Longest wait for a hint that must come. With a planted bug it is waited for to the end.
pub(crate) const HINT_LIMIT: Duration = Duration::from_secs(20);

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

fn fair(bench: &dyn Bench, names: &Names, n: u64) -> Acquire {
    Acquire {
        fair: true,
        waiter: Some(Waiter(n)),
        ..ask(bench, names, n)
    }
}

/// Queues 2 and 3 behind owner 1, who gives the name back.
async fn queue_of_two(bench: &dyn Bench, names: &Names) {
    granted(bench.backend().acquire(&fair(bench, names, 1)).await);
    for n in [2, 3] {
        let refusal = refused(bench.backend().acquire(&fair(bench, names, n)).await);
        assert!(refusal.queued, "{n} has no place");
    }
    release(bench, names, 1, None).await;
}

/// An answer behind a queue of two.
struct QueueAnswer {
    names: Names,
    begun: BootTime,
    reply: AcquireReply,
}

/// Asks `then` after the queue was made and `skipped` has passed. Waiters are alive for three seconds: if the machine
/// stood still meanwhile, the answer shows nothing, and another name is asked for.
async fn behind_two(
    bench: &dyn Bench,
    skipped: Duration,
    then: impl Fn(&Names) -> Acquire,
) -> QueueAnswer {
    for at in 1..=20 {
        let (names, begun) = (one(&format!("queue-{at}")), SystemClock.boot());
        queue_of_two(bench, &names).await;
        bench.advance(skipped).await;
        let reply = bench.backend().acquire(&then(&names)).await;
        if skipped + SystemClock.boot().since(begun) < WAITER_ALIVE {
            return QueueAnswer {
                names,
                begun,
                reply,
            };
        }
    }
    panic!("no answer in three seconds, 20 times");
}

pub(crate) async fn a_fair_queue_keeps_the_order(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    let third = |names: &Names| fair(bench, names, 3);
    let QueueAnswer { names, reply, .. } = behind_two(bench, Duration::ZERO, third).await;
    let refusal = refused(reply);
    assert!(
        refusal.queued && refusal.conflicts.is_empty(),
        "{refusal:?}"
    );
    granted(bench.backend().acquire(&fair(bench, &names, 2)).await);
    release(bench, &names, 2, None).await;
    granted(bench.backend().acquire(&third(&names)).await);
}

pub(crate) async fn nobody_overtakes_a_live_waiter(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    let other = |names: &Names| ask(bench, names, 9);
    let QueueAnswer { names, reply, .. } = behind_two(bench, Duration::ZERO, other).await;
    let refusal = refused(reply);
    assert!(refusal.conflicts.is_empty(), "{refusal:?}");
    // A waiter that gives up leaves at once.
    for n in [2, 3] {
        requests::release(bench.backend(), &fair(bench, &names, n), None).await;
    }
    granted(acquire(bench, &names, 9).await);
}

pub(crate) async fn a_dead_waiter_costs_three_seconds(bench: &dyn Bench) {
    if !bench.backend().facts().fair {
        return;
    }
    let [skipped, rest] = [500, 2_500].map(Duration::from_millis);
    // Waiter 3 asks on, waiter 2 is dead and still counts.
    let third = |names: &Names| fair(bench, names, 3);
    let QueueAnswer {
        names,
        begun,
        reply,
    } = behind_two(bench, skipped, third).await;
    let left = refused(reply).retry_after;
    let passed = skipped + SystemClock.boot().since(begun);
    let most = rest + Duration::from_millis(10);
    assert!(left <= most && left + passed >= skipped + rest, "{left:?}");
    bench.advance(rest + bench.slack()).await;
    granted(bench.backend().acquire(&third(&names)).await);
}
