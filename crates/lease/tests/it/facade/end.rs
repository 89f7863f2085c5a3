//! The end of a `Leases`: shut down, or just let go.

use soldonce_lease::backend::Backend;
use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, LeaseState, Leases, block_on};

use super::{World, is_pending, ms, secs, soon, until};

#[tokio::test]
async fn shutdown_releases_all_and_answers_everybody() {
    let world = World::start().await;
    let leases = [
        world.locks.lease("a").try_acquire().await.unwrap().unwrap(),
        world.locks.lease("b").try_acquire().await.unwrap().unwrap(),
    ];
    let mut waiting = Box::pin(world.locks.lease("a").acquire());
    assert!(is_pending(&mut waiting).await);
    world.settle().await;
    let drained = soon(world.locks.clone().shutdown(secs(5))).await;
    assert_eq!(drained.left_to_ttl, 0);
    assert!(drained.released >= 2, "{drained:?}");
    assert_eq!(soon(waiting).await.unwrap_err(), AcquireError::Closed);
    for lease in &leases {
        assert_eq!(lease.state(), LeaseState::Released);
    }
    assert!(!world.holds("a").await && !world.holds("b").await);
    let late = world.locks.lease("c").try_acquire().await;
    assert_eq!(late.unwrap_err(), AcquireError::Closed);
    let again = world.locks.clone().shutdown(secs(5)).await;
    assert_eq!(again.released, 0);
}

#[tokio::test]
async fn shutdown_of_a_hung_backend_ends_in_time_and_says_so() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.faulty.pause();
    let mut shutdown = Box::pin(world.locks.clone().shutdown(ms(200)));
    assert!(is_pending(&mut shutdown).await);
    until(|| world.faulty.calls(Op::Release) == 1).await;
    world.clock.advance(ms(200));
    let drained = soon(shutdown).await;
    assert_eq!((drained.released, drained.left_to_ttl), (0, 1));
    drop(lease);
}

/// The releases of all leases go in one call; a renewal that hangs is none.
#[tokio::test]
async fn what_a_hung_backend_keeps_is_counted_by_leases() {
    let world = World::start().await;
    let hall = world.locks.group("hall", ["A-1", "A-2"]);
    let leases = [
        world.locks.lease("a").try_acquire().await.unwrap().unwrap(),
        world.locks.lease("b").try_acquire().await.unwrap().unwrap(),
        hall.try_acquire().await.unwrap().unwrap(),
    ];
    world.faulty.pause();
    world.clock.advance(secs(4));
    until(|| world.faulty.calls(Op::Renew) == 1).await;
    let mut shutdown = Box::pin(world.locks.clone().shutdown(ms(200)));
    assert!(is_pending(&mut shutdown).await);
    until(|| world.faulty.calls(Op::Release) == 1).await;
    world.clock.advance(ms(200));
    let drained = soon(shutdown).await;
    assert_eq!((drained.released, drained.left_to_ttl), (0, 3));
    drop(leases);
}

/// An acquire whose answers are lost, and whose first delete has been answered.
async fn second_delete_is_due(world: &World) {
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    let unknown = world.locks.lease("a").try_acquire().await.unwrap_err();
    assert!(matches!(unknown, AcquireError::Unknown { .. }));
    until(|| world.faulty.calls(Op::Release) == 1).await;
    world.settle().await;
}

#[tokio::test]
async fn shutdown_waits_for_a_second_delete_that_is_due_in_time() {
    let world = World::start().await;
    second_delete_is_due(&world).await;
    let mut shutdown = Box::pin(world.locks.clone().shutdown(secs(20)));
    assert!(is_pending(&mut shutdown).await);
    world.jump(secs(5));
    let drained = soon(shutdown).await;
    assert_eq!(world.faulty.calls(Op::Release), 2);
    assert_eq!(drained.left_to_ttl, 0);
}

#[tokio::test]
async fn shutdown_counts_a_second_delete_that_is_not_due_in_time() {
    let world = World::start().await;
    second_delete_is_due(&world).await;
    let drained = soon(world.locks.clone().shutdown(secs(1))).await;
    assert_eq!(world.faulty.calls(Op::Release), 1);
    assert_eq!(drained.left_to_ttl, 1, "{drained:?}");
}

#[tokio::test]
async fn guards_outlive_their_locks() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let World {
        locks,
        faulty,
        memory,
        server,
        clock,
    } = world;
    drop(locks);
    clock.advance(secs(4));
    server.advance(secs(4));
    until(|| faulty.calls(Op::Renew) == 1).await;
    faulty.next(Op::Release, Fault::LoseRequest);
    drop(lease);
    until(|| faulty.calls(Op::Release) == 1).await;
    // The thread stays for what it still has to do, then ends.
    until(|| {
        clock.advance(ms(5));
        faulty.calls(Op::Release) == 2
    })
    .await;
    let name = soldonce_lease::Name::new("a").unwrap();
    assert_eq!(memory.inspect(None, &name).await, Ok(None));
}

#[test]
fn a_foreign_runtime_may_end_first() {
    let locks = block_on(Leases::memory().connect()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let lease = runtime.block_on(locks.lease("a").acquire()).unwrap();
    drop(runtime);
    assert!(block_on(lease.renew()).is_ok());
    drop(lease);
    let again = block_on(locks.lease("a").acquire_within(secs(5)));
    assert!(again.unwrap().is_some());
}
