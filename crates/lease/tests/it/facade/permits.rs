//! Semaphores, readers and writers through the facade: counted, waited for, and given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, InvalidRequest, Leases};
use tokio::task::JoinSet;

use super::{World, is_pending, secs, soon, until};

const PERMITS: usize = 3;

async fn hold_many(leases: &Leases, held: &AtomicUsize, most: &AtomicUsize) {
    for _ in 0..20 {
        hold_one(leases, held, most).await;
    }
}

/// Holds a permit for a moment, and notes how many are held then.
async fn hold_one(leases: &Leases, held: &AtomicUsize, most: &AtomicUsize) {
    let lease = leases.permit("api", PERMITS).acquire().await.unwrap();
    most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    tokio::task::yield_now().await;
    held.fetch_sub(1, Ordering::SeqCst);
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_hold_a_permit_than_there_are() {
    let leases = Leases::memory().connect().await.unwrap();
    let (held, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut workers = JoinSet::new();
    for _ in 0..16 {
        let (leases, held, most) = (leases.clone(), Arc::clone(&held), Arc::clone(&most));
        workers.spawn(async move { hold_many(&leases, &held, &most).await });
    }
    soon(workers.join_all()).await;
    assert_eq!(most.load(Ordering::SeqCst), PERMITS);
}

#[tokio::test]
async fn a_released_permit_wakes_the_next_waiter() {
    let world = World::start().await;
    let permit = || world.locks.permit("api", PERMITS);
    let mut held = Vec::new();
    for _ in 0..PERMITS {
        held.push(permit().acquire().await.unwrap());
    }
    let names: Vec<_> = held.iter().map(|lease| lease.names()[0].as_str()).collect();
    assert_eq!(names, ["00", "01", "02"], "each says which it is");
    let mut first = Box::pin(permit().acquire());
    let mut second = Box::pin(permit().acquire());
    assert!(is_pending(&mut first).await && is_pending(&mut second).await);
    drop(held.remove(1));
    assert_eq!(soon(first).await.unwrap().names()[0].as_str(), "01");
    drop(held);
    drop(soon(second).await.unwrap());
}

#[tokio::test]
async fn a_lost_reply_costs_no_permit() {
    let world = World::start().await;
    let permit = || world.locks.permit("api", PERMITS);
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    let first = permit().try_acquire().await.unwrap().expect("asked again");
    // Another try whose reply was lost may have taken another permit: all but the first come free.
    let mut rest = Vec::new();
    for _ in 1..PERMITS {
        rest.push(permit().try_acquire().await.unwrap().expect("free"));
    }
    assert!(permit().try_acquire().await.unwrap().is_none());
    world.pass(secs(6)).await;
    assert!(
        first.verify().await.is_ok(),
        "what is held is not given back"
    );
    drop((first, rest));
    until(|| world.locks.stats().live == 0).await;
    world.settle().await;
    let mut all = Vec::new();
    for _ in 0..PERMITS {
        all.push(permit().try_acquire().await.unwrap().expect("free again"));
    }
}

#[tokio::test]
async fn a_writer_waits_for_the_readers_and_they_for_it() {
    let world = World::start().await;
    let leases = &world.locks;
    let readers = [
        leases.read("doc").acquire().await.unwrap(),
        leases.read("doc").acquire().await.unwrap(),
    ];
    let mut writing = Box::pin(leases.write("doc").acquire());
    assert!(is_pending(&mut writing).await);
    drop(readers);
    let writer = soon(writing).await.unwrap();
    let mut reading = Box::pin(leases.read("doc").acquire());
    assert!(is_pending(&mut reading).await);
    writer.release().await.unwrap();
    drop(soon(reading).await.unwrap());
    let fair = leases.read("doc").fair().try_acquire().await;
    let unsupported = matches!(
        fair,
        Err(AcquireError::Invalid(InvalidRequest::Unsupported { .. }))
    );
    assert!(unsupported, "{fair:?}");
}

#[tokio::test]
async fn a_refused_permit_is_worth_asking_for_when_the_first_ends() {
    let world = World::start().await;
    let permit = |ttl| world.locks.permit("api", 2).ttl(ttl).manual_renewal();
    let _long = permit(secs(60)).acquire().await.unwrap();
    let _short = permit(secs(1)).acquire().await.unwrap();
    let refused = permit(secs(1)).acquire_or_refusal(std::time::Duration::ZERO);
    let refusal = refused.await.unwrap().unwrap_err();
    assert_eq!(refusal.conflicts.len(), 2);
    assert!(refusal.retry_after <= secs(1), "{:?}", refusal.retry_after);
}
