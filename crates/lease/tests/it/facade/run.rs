//! Work under a lease.

use std::cell::Cell;

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{LostReason, RunError};

use super::{World, is_pending, lost, ms, run_graced, run_under, secs, soon, until};

type Done = Result<u32, &'static str>;

#[tokio::test]
async fn lost_lease_stops_the_work() {
    let world = World::start().await;
    let written = Cell::new(0);
    let body = async |_| -> Done {
        loop {
            written.set(written.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    let mut run = Box::pin(run_under(world.locks.lease("a"), body));
    while written.get() < 3 {
        assert!(is_pending(&mut run).await);
    }
    world.faulty.pause();
    world.jump(secs(10));
    assert_eq!(soon(run).await, lost(LostReason::Deadline, None));
}

/// Another may have the lease from then on.
#[tokio::test]
async fn a_shutdown_stops_the_work() {
    let world = World::start().await;
    let lease = world.locks.lease("a").acquire().await.unwrap();
    let body = async |_| -> Done { std::future::pending().await };
    let mut run = Box::pin(lease.run(body));
    assert!(is_pending(&mut run).await);
    soon(world.locks.clone().shutdown(secs(5))).await;
    assert_eq!(soon(run).await, lost(LostReason::Gone, None));
}

#[tokio::test]
async fn release_after_expiry_keeps_the_result() {
    let world = World::start().await;
    let body = async |_| -> Done {
        // The server ends the lease while the body works, and this process cannot know.
        world.server.advance(secs(11));
        Ok(42)
    };
    let outcome = run_under(world.locks.lease("a"), body).await;
    assert_eq!(outcome.unwrap(), 42);
    let body = async |_| -> Done {
        world.faulty.next(Op::Release, Fault::LoseReply);
        world.faulty.next(Op::Release, Fault::NotSent);
        Ok(43)
    };
    let mut run = Box::pin(run_under(world.locks.lease("a"), body));
    let outcome = loop {
        if let Some(outcome) = world.poll_or_pass(&mut run, ms(20)).await {
            break outcome;
        }
    };
    assert_eq!(outcome.unwrap(), 43, "a release that failed hid the result");
}

#[tokio::test]
async fn refused_and_lost_are_different() {
    let world = World::start().await;
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let refused = world.locks.lease("a").try_acquire().await;
    assert!(
        matches!(refused, Ok(None)),
        "another holds it, which is no error: {refused:?}"
    );
    held.release().await.unwrap();
    // Finished, but too late: the output is there, and it is no success.
    let late = async |_| -> Done {
        world.faulty.pause();
        world.jump(secs(10));
        Ok(7)
    };
    let finished = run_under(world.locks.lease("a"), late).await;
    assert_eq!(finished, lost(LostReason::Deadline, Some(Ok(7))));
    world.faulty.resume();
    until(|| world.locks.stats().live == 0).await;
    let fails = async |_| -> Done { Err("no paper") };
    let failed = run_under(world.locks.lease("b"), fails).await;
    assert_eq!(failed, Err(RunError::Body("no paper")));
    world.settle().await;
    assert!(!world.holds("b").await);
}

#[tokio::test]
async fn a_cooperative_body_gets_its_grace_and_no_more() {
    let world = World::start().await;
    let tidy = async |lease: soldonce_lease::LeaseRef| -> Done {
        lease.lost().await;
        Ok(1)
    };
    let request = world.locks.lease("a");
    let mut run = Box::pin(run_graced(request, secs(1), tidy));
    until_running(&world, &mut run).await;
    world.faulty.pause();
    world.jump(secs(10));
    assert_eq!(soon(run).await, lost(LostReason::Deadline, Some(Ok(1))));
    world.faulty.resume();
    let stubborn = async |_| std::future::pending::<Done>().await;
    let request = world.locks.lease("b");
    let mut run = Box::pin(run_graced(request, secs(1), stubborn));
    until_running(&world, &mut run).await;
    world.faulty.pause();
    world.jump(secs(10));
    until(|| world.locks.stats().lost_deadline == 2).await;
    assert!(is_pending(&mut run).await);
    world.settle().await;
    assert!(is_pending(&mut run).await, "no grace");
    world.jump(secs(1));
    assert_eq!(soon(run).await, lost(LostReason::Deadline, None));
}

async fn until_running<F: Future + Unpin>(world: &World, run: &mut F) {
    let before = world.locks.stats().acquired;
    while world.locks.stats().acquired == before {
        assert!(is_pending(run).await);
    }
    world.settle().await;
    assert!(is_pending(run).await);
}
