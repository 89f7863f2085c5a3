//! A wait ends within its limit and one call timeout, for anything the backend does at its end.

use std::time::Duration;

use soldonce_lease::AcquireError;
use soldonce_lease::test_kit::Op;

use super::steered::{Manner, Scene};
use super::{World, is_pending, ms, soon, until};

const LIMIT: Duration = ms(100);

#[tokio::test]
async fn nobody_listens_for_longer_than_he_waits() {
    let scene = Scene::start(Manner::Deaf).await;
    let held = scene.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut asking = Box::pin(scene.locks.lease("a").acquire_or_refusal(LIMIT));
    assert!(is_pending(&mut asking).await);
    until(|| {
        scene
            .steered
            .deaf_ears
            .load(std::sync::atomic::Ordering::SeqCst)
            == 1
    })
    .await;
    scene.clock.advance(ms(100));
    let refusal = soon(asking).await.unwrap().unwrap_err();
    assert_eq!(refusal.conflicts.len(), 1);
    assert_eq!(scene.faulty.calls(Op::Acquire), 2);
    assert!(held.token().is_ok());
}

/// A fair waiter behind another has not asked before its end.
#[tokio::test]
async fn a_waiter_that_asks_at_its_end_asks_once() {
    let world = World::start().await;
    let other = world.other().await;
    let _held = other.lease("a").acquire().await.unwrap();
    let fair = || world.locks.lease("a").fair();
    let mut first = Box::pin(fair().acquire());
    assert!(is_pending(&mut first).await);
    until(|| world.faulty.calls(Op::Acquire) == 2).await;
    world.settle().await;
    world.faulty.pause();
    let mut behind = Box::pin(fair().acquire_within(LIMIT));
    assert!(is_pending(&mut behind).await);
    world.settle().await;
    world.clock.advance(LIMIT);
    until(|| world.faulty.calls(Op::Acquire) == 3).await;
    world.clock.advance(ms(500));
    let unheard = soon(behind).await;
    assert!(
        matches!(unheard, Err(AcquireError::Unknown { .. })),
        "{unheard:?}"
    );
}
