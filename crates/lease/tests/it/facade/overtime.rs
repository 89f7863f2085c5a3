//! A wait ends within its limit and one call timeout, whatever the backend does at its end.

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, Wait};

use super::steered::{Asking, Manner, Scene};
use super::{is_pending, ms, secs, soon, until};

const LIMIT: Wait = Wait::UpTo(ms(100));

/// The limit, and the call timeout that nobody has set to another.
const LATEST: u64 = 100 + 500;

async fn wait_for(scene: &Scene, name: &str, wait: Wait) -> Asking {
    let mut asking: Asking = Box::pin(scene.locks.lease(name).acquire(wait));
    assert!(is_pending(&mut asking).await);
    asking
}

/// As a backend does which is asked for an epoch: its answer takes two calls.
#[tokio::test]
async fn a_question_that_takes_two_calls_has_one_limit() {
    let scene = Scene::start(Manner::Never).await;
    scene.faulty.pause();
    let asking = wait_for(&scene, "a", LIMIT).await;
    until(|| !scene.steered.kept.lock().unwrap().is_empty()).await;
    scene.clock.advance(ms(400));
    scene.steered.kept.lock().unwrap()[0].give_back(0);
    until(|| scene.faulty.calls(Op::Acquire) == 1).await;
    scene.clock.advance(ms(LATEST - 400));
    let error = soon(asking).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_listens_for_longer_than_he_waits() {
    let scene = Scene::start(Manner::Deaf).await;
    let held = scene.locks.lease("a").try_acquire().await.unwrap();
    let asking = wait_for(&scene, "a", LIMIT).await;
    until(|| {
        scene
            .steered
            .deaf_ears
            .load(std::sync::atomic::Ordering::SeqCst)
            == 1
    })
    .await;
    scene.clock.advance(ms(100));
    let error = soon(asking).await.unwrap_err();
    let AcquireError::TimedOut { attempts, last, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((attempts, last.conflicts.len()), (1, 1));
    assert!(held.live_token().is_ok());
}

/// What was left of a limit is not what is left after an hour in line.
#[tokio::test]
async fn a_question_is_asked_anew_after_the_line() {
    let scene = Scene::start(Manner::Never).await;
    let stopped = scene.stop().await;
    let first = wait_for(&scene, "a", Wait::Forever).await;
    let second = wait_for(&scene, "a", Wait::Forever).await;
    stopped.go_on().await.unwrap();
    until(|| !scene.steered.kept.lock().unwrap().is_empty()).await;
    // The first has to wait for an answer, so the second finds him in line.
    scene.faulty.next(Op::Acquire, Fault::NotSent);
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let kept = scene.steered.kept.lock().unwrap()[0].clone();
    kept.give_back(0);
    until(|| scene.faulty.calls(Op::Acquire) == 2).await;
    kept.give_back(1);
    scene.settle().await;
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    scene.clock.advance(ms(450));
    let lease = soon(first).await.unwrap();
    lease.release().await.unwrap();
    until(|| scene.faulty.calls(Op::Acquire) == 3).await;
    scene.settle().await;
    // More than the 50 ms that were left, and less than a limit.
    scene.clock.advance(ms(100));
    scene.settle().await;
    scene.clock.advance(ms(350));
    let lease = soon(second).await.unwrap();
    assert_eq!(scene.locks.stats().unknown_acquire, 0);
    assert!(lease.remaining() > secs(5));
}
