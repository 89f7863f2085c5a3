//! A future may be dropped wherever it waits: nothing stays behind.

use soldonce_lease::test_kit::{Fault, Op};

use super::{World, is_pending, ms, run_under, secs, until};

#[tokio::test]
async fn cancel_at_every_await_leaves_nothing() {
    let world = World::start().await;
    // Before it was polled, and before the thread took it.
    drop(world.locks.lease("a").acquire());
    let mut asked = Box::pin(world.locks.lease("a").acquire());
    // The answer may be there at once.
    is_pending(&mut asked).await;
    drop(asked);
    nothing_is_left(&world).await;
    cancel_once_sent_leaves_nothing(&world).await;
    cancel_while_it_hangs(&world).await;
    cancel_in_line(&world).await;
    cancel_with_a_place_unheard(&world).await;
    cancel_with_the_answer_there(&world).await;
    cancel_a_release(&world).await;
    cancel_a_run(&world).await;
}

/// The command ran, its answer is on the way, and the caller goes.
pub(super) async fn cancel_once_sent_leaves_nothing(world: &World) {
    world.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let calls = world.faulty.calls(Op::Acquire);
    let mut asked = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut asked).await);
    until(|| world.faulty.calls(Op::Acquire) > calls).await;
    world.settle().await;
    assert!(world.holds("a").await, "the command ran");
    drop(asked);
    nothing_is_left(world).await;
}

/// The command hangs before it arrives, and arrives after the caller has gone.
async fn cancel_while_it_hangs(world: &World) {
    let calls = world.faulty.calls(Op::Acquire);
    world.faulty.pause();
    let mut asked = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut asked).await);
    until(|| world.faulty.calls(Op::Acquire) > calls).await;
    drop(asked);
    world.settle().await;
    world.faulty.resume();
    nothing_is_left(world).await;
}

/// The command took a place in the queue, its answer is on the way, and the caller goes.
async fn cancel_with_a_place_unheard(world: &World) {
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let calls = world.faulty.calls(Op::Acquire);
    let mut asked = Box::pin(world.locks.lease("a").fair().acquire());
    assert!(is_pending(&mut asked).await);
    until(|| world.faulty.calls(Op::Acquire) > calls).await;
    world.settle().await;
    let releases = world.faulty.calls(Op::Release);
    drop(asked);
    until(|| world.faulty.calls(Op::Release) > releases).await;
    world.settle().await;
    held.release().await.unwrap();
    // No one stands before us.
    let next = world.locks.lease("a").try_acquire().await;
    let next = next.unwrap().expect("the place was given up");
    next.release().await.unwrap();
    nothing_is_left(world).await;
}

/// At the head of the line, and behind it.
async fn cancel_in_line(world: &World) {
    let held = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut first = Box::pin(world.locks.lease("a").fair().acquire());
    let mut behind = Box::pin(world.locks.lease("a").fair().acquire());
    for waiting in [&mut first, &mut behind] {
        assert!(is_pending(waiting).await);
        for _ in 0..10 {
            world.settle().await;
        }
    }
    drop(first);
    drop(behind);
    held.release().await.unwrap();
    nothing_is_left(world).await;
}

/// The lease is in the channel, and no task takes it out.
async fn cancel_with_the_answer_there(world: &World) {
    let acquired = world.locks.stats().acquired;
    let mut asked = Box::pin(world.locks.lease("a").acquire());
    is_pending(&mut asked).await;
    until(|| world.locks.stats().acquired > acquired).await;
    drop(asked);
    nothing_is_left(world).await;
}

async fn cancel_a_release(world: &World) {
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let mut release = Box::pin(lease.release());
    is_pending(&mut release).await;
    drop(release);
    nothing_is_left(world).await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    drop(lease.release());
    nothing_is_left(world).await;
}

async fn cancel_a_run(world: &World) {
    let forever = async |_| std::future::pending::<Result<(), ()>>().await;
    let acquired = world.locks.stats().acquired;
    let mut run = Box::pin(run_under(world.locks.lease("a"), forever));
    while world.locks.stats().acquired == acquired {
        assert!(is_pending(&mut run).await);
    }
    drop(run);
    nothing_is_left(world).await;
}

/// At once if the backend answers, after ttl/2 and a second at the latest, and for good.
async fn nothing_is_left(world: &World) {
    world.settle().await;
    world.pass(secs(6)).await;
    assert!(!world.holds("a").await, "an orphan stayed");
    until(|| world.locks.stats().live == 0).await;
    // No one stands in line either.
    let other = world.other().await;
    let lease = other.lease("a").try_acquire().await.unwrap().unwrap();
    lease.release().await.unwrap();
}
