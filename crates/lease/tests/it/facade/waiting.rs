//! Waiting: who asks, how often, in which order, and for how long.

use soldonce_lease::backend::{Acquire, Backend, Waiter};
use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, Clock, FencingToken, Lease};
use tokio::task::JoinSet;

use super::{World, is_pending, ms, secs, soon};
use crate::conformance::{one, owner};
use crate::requests;

#[tokio::test]
async fn wait_and_ttl_are_separate() {
    let world = World::start().await;
    let held = world
        .locks
        .lease("a")
        .ttl(secs(600))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    // A short wait for a long lease, and a long wait for a short one.
    let short = world
        .locks
        .lease("a")
        .ttl(secs(600))
        .acquire_or_refusal(ms(300));
    let mut short = Box::pin(short);
    assert!(is_pending(&mut short).await);
    let begun = world.clock.boot();
    let refusal = loop {
        if let Some(result) = world.poll_or_pass(&mut short, ms(20)).await {
            break result.unwrap().unwrap_err();
        }
    };
    let waited = world.clock.boot().since(begun);
    assert!(waited >= ms(300) && waited < ms(400), "{waited:?}");
    assert_eq!(refusal.conflicts.len(), 1);
    assert!(world.faulty.calls(Op::Acquire) >= 3);
    let long = world
        .locks
        .lease("a")
        .ttl(ms(500))
        .acquire_within(secs(3_600));
    let mut long = Box::pin(long);
    assert!(is_pending(&mut long).await);
    world.pass(secs(30)).await;
    assert!(is_pending(&mut long).await, "gave up with its ttl");
    held.release().await.unwrap();
    let lease = soon(long).await.unwrap().unwrap();
    assert!(lease.remaining() >= ms(250));
}

/// The target told the holder of a higher token while another task waited for the name.
#[tokio::test]
async fn a_waiter_is_granted_above_a_floor_that_came_later() {
    let world = World::start().await;
    let held = world.locks.lease("a").acquire().await.unwrap();
    let mut waiter = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut waiter).await);
    world.pass(secs(1)).await;
    let seen = FencingToken::from_parts(0, 1_000).unwrap();
    held.report_overtaken(seen);
    let next = soon(waiter).await.unwrap();
    assert!(next.token().unwrap() > seen);
}

#[tokio::test]
async fn release_wakes_one_waiter_per_process() {
    let world = World::start().await;
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..50 {
        let request = world.locks.lease("a").ttl(secs(600));
        waiters.spawn(async move { request.acquire().await.unwrap() });
    }
    until_quiet(&world).await;
    // One stands at the head; its hand-over costs a bounded number of commands.
    let before = world.faulty.calls(Op::Acquire);
    held.release().await.unwrap();
    let lease = soon(waiters.join_next()).await.unwrap().unwrap();
    until_quiet(&world).await;
    let spent = world.faulty.calls(Op::Acquire) - before;
    assert!(spent <= 4, "{spent} tries for one hand-over");
    lease.release().await.unwrap();
    let next = soon(waiters.join_next()).await.unwrap().unwrap();
    assert!(next.token().is_ok());
}

/// Until no more commands are sent.
async fn until_quiet(world: &World) {
    let mut calls = usize::MAX;
    while calls != world.faulty.calls(Op::Acquire) {
        calls = world.faulty.calls(Op::Acquire);
        for _ in 0..20 {
            world.settle().await;
        }
    }
}

#[tokio::test]
async fn waiters_of_a_process_are_served_in_the_order_of_arrival() {
    let world = World::start().await;
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        let mut next = Box::pin(world.locks.lease("a").acquire());
        assert!(is_pending(&mut next).await);
        // Each is at its place before the next one asks.
        until_quiet(&world).await;
        waiting.push(next);
    }
    held.release().await.unwrap();
    let mut last = 0;
    for next in waiting {
        let lease: Lease = soon(next).await.unwrap();
        let counter = lease.token_for_logs().unwrap().counter();
        assert!(counter > last, "out of turn");
        last = counter;
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_wake_up_lost_costs_a_poll() {
    let world = World::start().await;
    let other = world.other().await;
    let held = other
        .lease("a")
        .ttl(secs(600))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let mut waiting = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut waiting).await);
    until_quiet(&world).await;
    // It ends without a message, as by a crash of its server's connection.
    let token = held.token_for_logs().unwrap();
    let kept = soldonce_lease::backend::State::default();
    world.memory.restore(kept);
    world.pass(ms(1_300)).await;
    let lease = soon(waiting).await.unwrap();
    assert!(
        lease.token_for_logs().unwrap() < token || lease.token_for_logs().unwrap().counter() == 1
    );
}

#[tokio::test]
async fn a_waiter_gets_through_failures() {
    let world = World::start().await;
    let faults = [Fault::NotSent, Fault::LoseReply, Fault::LoseRequest];
    for fault in faults {
        world.faulty.next(Op::Acquire, fault);
    }
    let mut waiting = Box::pin(world.locks.lease("a").acquire_within(secs(5)));
    assert!(is_pending(&mut waiting).await);
    let lease = loop {
        if let Some(result) = world.poll_or_pass(&mut waiting, ms(20)).await {
            break result.unwrap().unwrap();
        }
    };
    assert_eq!(
        lease.token_for_logs().unwrap().counter(),
        1,
        "the same owner all along"
    );
    assert_eq!(world.faulty.calls(Op::Acquire), 4);
}

#[tokio::test]
async fn dead_waiter_costs_three_seconds() {
    let world = World::start().await;
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    // A waiter of a process that dies: it takes a place and never asks again.
    let dead = Acquire {
        waiter: Some(Waiter(99)),
        fair: true,
        ..requests::ask(one("a"), owner(99), secs(10))
    };
    world.memory.acquire(&dead).await;
    let mut waiting = Box::pin(world.locks.lease("a").fair().acquire());
    assert!(is_pending(&mut waiting).await);
    until_quiet(&world).await;
    held.release().await.unwrap();
    world.pass(ms(2_900)).await;
    assert!(
        is_pending(&mut waiting).await,
        "the dead was overtaken too soon"
    );
    world.pass(ms(1_400)).await;
    assert!(soon(waiting).await.is_ok());
}

#[tokio::test]
async fn a_fair_waiter_that_gives_up_leaves_the_queue() {
    let world = World::start().await;
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut waiting = Box::pin(world.locks.lease("a").fair().acquire());
    assert!(is_pending(&mut waiting).await);
    until_quiet(&world).await;
    drop(waiting);
    held.release().await.unwrap();
    until_quiet(&world).await;
    // No one stands in line any more.
    let other = world.other().await;
    assert!(other.lease("a").try_acquire().await.is_ok());
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused() {
    let world = World::start().await;
    let held = world
        .locks
        .lease("a")
        .ttl(secs(600))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let mut line = Vec::new();
    for _ in 0..soldonce_lease::limits::WAITERS_MAX {
        let mut next = Box::pin(world.locks.lease("a").acquire());
        assert!(is_pending(&mut next).await);
        line.push(next);
    }
    let one_more = soon(world.locks.lease("a").acquire()).await;
    assert_eq!(one_more.unwrap_err(), AcquireError::QueueFull);
    drop(line);
    held.release().await.unwrap();
    assert!(soon(world.locks.lease("a").acquire()).await.is_ok());
}

/// None of those behind the head of the queue has asked, so nothing says that another holds the name.
#[tokio::test]
async fn a_waiter_behind_another_hears_that_nothing_answers() {
    let world = World::start().await;
    for _ in 0..1_000 {
        world.faulty.next(Op::Acquire, Fault::NotSent);
    }
    let ask = |span| Box::pin(world.locks.lease("a").acquire_within(span));
    let mut waiting = vec![ask(secs(2))];
    assert!(is_pending(&mut waiting[0]).await);
    until_quiet(&world).await;
    // One ends before the first, and the others in its very moment.
    waiting.extend([1, 2, 2, 2].map(|seconds| ask(secs(seconds))));
    for wait in &mut waiting {
        assert!(is_pending(wait).await);
    }
    let mut told = Vec::new();
    for wait in waiting.into_iter().rev() {
        told.push(world.drive(wait).await);
    }
    let is_away = |told| matches!(told, &Err(AcquireError::Unavailable(_)));
    assert!(told.iter().all(is_away), "{told:?}");
}

#[tokio::test]
async fn a_waiter_behind_another_is_told_who_holds_the_name() {
    let world = World::start().await;
    let held = world.locks.lease("a").acquire().await.unwrap();
    let mut first = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut first).await);
    until_quiet(&world).await;
    let behind = Box::pin(world.locks.lease("a").acquire_or_refusal(ms(300)));
    let refusal = world.drive(behind).await.unwrap().unwrap_err();
    assert_eq!(refusal.conflicts.len(), 1);
    drop(held);
}

/// A waiter that takes no place in the backend's queue is refused while others have one.
#[tokio::test]
async fn a_fair_waiter_stands_behind_no_other_kind() {
    let world = World::start().await;
    let other = world.other().await;
    let mut held = other.lease("a").fair().acquire().await.unwrap();
    let mut unfair = Box::pin(world.locks.lease("a").acquire());
    let mut fair = Box::pin(world.locks.lease("a").fair().acquire());
    for _ in 0..8 {
        let mut next = Box::pin(other.lease("a").fair().acquire());
        for _ in 0..4 {
            assert!(is_pending(&mut next).await);
            assert!(is_pending(&mut unfair).await);
            assert!(is_pending(&mut fair).await);
            world.pass(ms(25)).await;
        }
        held.release().await.unwrap();
        let served = async {
            tokio::select! {
                biased;
                _ = &mut fair => None,
                granted = &mut next => Some(granted),
            }
        };
        let Some(granted) = world.drive(Box::pin(served)).await else {
            return;
        };
        held = granted.unwrap();
    }
    panic!("it is overtaken without end");
}
