//! Acquires of one turn of the lease thread: a late, dropped or panicking one does not affect the others.

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, ReleaseOutcome};

use super::steered::{Asking, Manner, Scene};
use super::{is_pending, ms, secs, soon, until};

#[tokio::test]
async fn a_late_answer_holds_up_no_neighbour() {
    let scene = Scene::start(Manner::AtOnce).await;
    // No time passes, so this answer never comes.
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let [mut late, quick] = scene.ask(["late", "quick"]).await;
    let quick = soon(quick).await.unwrap().expect("granted");
    assert!(is_pending(&mut late).await);
    assert_eq!(quick.release().await, Ok(ReleaseOutcome::Released));
}

#[tokio::test]
async fn a_panic_takes_no_neighbour_along() {
    let scene = Scene::start(Manner::AtOnce).await;
    let [bad, good] = scene.ask(["bad", "good"]).await;
    let good = soon(good).await.unwrap().expect("granted");
    assert_eq!(soon(bad).await.unwrap_err(), AcquireError::Closed);
    assert_eq!(good.release().await, Ok(ReleaseOutcome::Released));
    assert!(!scene.holds("good").await);
}

#[tokio::test]
async fn who_goes_away_takes_no_neighbour_along() {
    let scene = Scene::start(Manner::AtOnce).await;
    // Both commands ran, and the first caller goes before its answer comes.
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let [gone, stays] = scene.ask(["gone", "stays"]).await;
    let stays = soon(stays).await.unwrap().expect("granted");
    assert!(scene.holds("gone").await);
    drop(gone);
    until(|| scene.locks.stats().orphans == 1).await;
    assert!(!scene.holds("gone").await);
    assert!(stays.token().is_ok());
}

#[tokio::test]
async fn shutdown_cuts_off_tries_and_gives_back_what_they_took() {
    let scene = Scene::start(Manner::AtOnce).await;
    for _ in 0..2 {
        scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    }
    let asking = scene.ask(["a", "b"]).await;
    until(|| scene.faulty.calls(Op::Acquire) == 2).await;
    // Calls are counted before they run.
    scene.settle().await;
    assert!(scene.holds("a").await && scene.holds("b").await);
    let drained = soon(scene.locks.clone().shutdown(secs(1))).await;
    for one in asking {
        assert_eq!(soon(one).await.unwrap_err(), AcquireError::Closed);
    }
    assert!(!scene.holds("a").await && !scene.holds("b").await);
    // The second delete of each is due after half the ttl, which no caller waits for.
    assert_eq!((drained.released, drained.left_to_ttl), (2, 2));
}

#[tokio::test]
async fn two_shutdowns_of_one_turn_count_the_same() {
    let scene = Scene::start(Manner::AtOnce).await;
    let [a, b] = scene.ask(["a", "b"]).await;
    let held = (soon(a).await.unwrap(), soon(b).await.unwrap());
    let stopped = scene.stop().await;
    let mut first = Box::pin(scene.locks.clone().shutdown(secs(1)));
    let mut second = Box::pin(scene.locks.clone().shutdown(secs(1)));
    assert!(is_pending(&mut first).await && is_pending(&mut second).await);
    stopped.go_on().await.ok();
    for ending in [first, second] {
        let drained = soon(ending).await;
        assert_eq!((drained.released, drained.left_to_ttl), (2, 0));
    }
    drop(held);
}

#[tokio::test]
async fn what_is_asked_with_the_end_is_not_served() {
    let scene = Scene::start(Manner::AtOnce).await;
    let stopped = scene.stop().await;
    let mut ending = Box::pin(scene.locks.clone().shutdown(secs(1)));
    assert!(is_pending(&mut ending).await);
    let alone = scene.locks.lease("alone").replicas(1, ms(10));
    let mut alone: Asking = Box::pin(alone.try_acquire());
    assert!(is_pending(&mut alone).await);
    let plain = scene.ask_now("plain").await;
    stopped.go_on().await.ok();
    for late in [alone, plain] {
        assert_eq!(soon(late).await.unwrap_err(), AcquireError::Closed);
    }
    let drained = soon(ending).await;
    assert_eq!((drained.released, drained.left_to_ttl), (0, 0));
    assert_eq!(scene.faulty.calls(Op::Acquire), 0);
}
