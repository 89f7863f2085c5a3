//! The cadence of renewals (LT6), their batches, and what their failures change.

use std::sync::Arc;

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{Lease, LeaseState, Notice, NoticeKind, RenewError};

use super::{TEN_LESS_MARGIN, World, drain, ms, secs, ten_less, until};

#[tokio::test]
async fn renewed_every_third_of_the_ttl() {
    let world = World::start().await;
    let lease = world
        .locks
        .lease("a")
        .ttl(secs(9))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    world.pass(ms(2_900)).await;
    assert_eq!(world.faulty.calls(Op::Renew), 0, "too early");
    world.pass(ms(200)).await;
    assert_eq!(world.faulty.calls(Op::Renew), 1);
    world.pass(secs(30)).await;
    let calls = world.faulty.calls(Op::Renew);
    assert!((10..=12).contains(&calls), "{calls} renewals in 33 s");
    assert!(matches!(lease.state(), LeaseState::Held { .. }));
    assert_eq!(world.locks.stats().lost_deadline, 0);
}

#[tokio::test]
async fn renewals_due_together_go_together_in_batches_of_a_hundred() {
    let world = World::start().await;
    let mut leases = Vec::new();
    for n in 0..250 {
        let request = world.locks.lease(format!("a-{n}"));
        leases.push(request.try_acquire().await.unwrap().unwrap());
    }
    world.jump(secs(4));
    until(|| world.locks.stats().renewed == 250).await;
    assert_eq!(world.faulty.calls(Op::Renew), 3);
    assert!(
        leases
            .iter()
            .all(|lease| lease.remaining() == TEN_LESS_MARGIN)
    );
}

#[tokio::test]
async fn at_least_three_tries_before_the_deadline() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.faulty.pause();
    world.pass(ten_less(ms(25))).await;
    let calls = world.faulty.calls(Op::Renew);
    assert!(calls >= 3, "{calls} tries");
    world.faulty.resume();
    // The last try may still save it.
    let renewed = lease.renew().await;
    assert_eq!(renewed, Ok(TEN_LESS_MARGIN));
    assert!(matches!(lease.state(), LeaseState::Held { .. }));
}

#[tokio::test]
async fn suspect_is_told_and_recovered_from() {
    let world = World::start().await;
    let mut notices = world.locks.notices();
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let watch = lease.handle();
    world.faulty.pause();
    world.pass(ms(5_500)).await;
    let at_first = LeaseState::Held { remaining: ms(0) };
    let suspect = super::soon(watch.changed(at_first)).await;
    assert!(matches!(suspect, LeaseState::Suspect { .. }), "{suspect:?}");
    world.faulty.resume();
    world.pass(secs(2)).await;
    let held = super::soon(watch.changed(suspect)).await;
    assert!(matches!(held, LeaseState::Held { .. }), "{held:?}");
    lease.release().await.unwrap();
    let end = super::soon(watch.changed(held)).await;
    assert_eq!(end, LeaseState::Released);
    let told: Vec<_> = drain(&mut notices).iter().map(|told| told.what).collect();
    for what in [
        NoticeKind::Suspect,
        NoticeKind::RenewFailed,
        NoticeKind::Recovered,
        NoticeKind::Released,
    ] {
        assert!(told.contains(&what), "{what:?} is not in {told:?}");
    }
}

/// It comes off the deadline alone: a lease that is renewed in time is not suspect for it.
#[tokio::test]
async fn a_lease_with_much_safety_is_granted_and_held() {
    let world = World::start().await;
    let mut notices = world.locks.notices();
    for safety in [secs(3), ms(4_950)] {
        let request = world.locks.lease("a").safety(safety);
        let lease = request.try_acquire().await.unwrap().unwrap();
        world.pass(secs(20)).await;
        assert!(matches!(lease.state(), LeaseState::Held { .. }));
        lease.release().await.unwrap();
    }
    let told = drain(&mut notices);
    let suspect = told.iter().find(|told| told.what == NoticeKind::Suspect);
    assert!(suspect.is_none(), "{suspect:?}");
}

#[tokio::test]
async fn a_lease_that_is_held_for_long_is_told_also_when_it_was_resumed() {
    let world = World::start().await;
    let request = |name| world.locks.lease(name).ttl(secs(60));
    let first = request("a").acquire().await.unwrap();
    assert_eq!(times_told_that_it_is_long(&world, &first).await, 1);
    let resumed = world.locks.resume(first.detach()).await.unwrap().unwrap();
    assert_eq!(times_told_that_it_is_long(&world, &resumed).await, 1);
    let capped = request("b").max_lifetime(secs(7_200)).acquire().await;
    let capped = world.locks.resume(capped.unwrap().detach()).await;
    let capped = capped.unwrap().unwrap();
    assert_eq!(times_told_that_it_is_long(&world, &capped).await, 0);
}

/// Lets more than 15 minutes pass.
async fn times_told_that_it_is_long(world: &World, lease: &Lease) -> usize {
    let mut notices = world.locks.notices();
    for _ in 0..50 {
        world.jump(secs(20));
        world.settle().await;
    }
    assert!(lease.token().is_ok(), "{:?}", lease.state());
    let names = lease.names().first();
    let is_long = |told: &&Arc<Notice>| told.what == NoticeKind::LongHeld;
    let told = drain(&mut notices);
    let told = told.iter().filter(is_long);
    told.filter(|told| told.name.as_ref() == names).count()
}

#[tokio::test]
async fn a_lost_answer_leaves_the_deadline_where_it_was() {
    let world = World::start().await;
    let manual = world.locks.lease("a").manual_renewal();
    let lease = manual.try_acquire().await.unwrap().unwrap();
    world.jump(secs(3));
    world.faulty.next(Op::Renew, Fault::LoseReply);
    assert_eq!(lease.renew().await, Err(RenewError::Unknown));
    assert_eq!(lease.remaining(), ten_less(secs(3)));
    world.faulty.next(Op::Renew, Fault::NotSent);
    let failed = lease.renew().await;
    assert!(
        matches!(failed, Err(RenewError::Unavailable(_))),
        "{failed:?}"
    );
    assert_eq!(lease.remaining(), ten_less(secs(3)));
    assert_eq!(lease.renew().await, Ok(TEN_LESS_MARGIN));
}

#[tokio::test]
async fn the_deadline_counts_from_the_send() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    deadline_counts_from_the_send(&world, &lease).await;
}

/// The answer to a renewal takes 400 ms, which the holder must not count as its own.
pub(super) async fn deadline_counts_from_the_send(world: &World, lease: &Lease) {
    world.faulty.next(Op::Renew, Fault::DelayReply(ms(400)));
    let mut renewal = Box::pin(lease.renew());
    assert!(super::is_pending(&mut renewal).await);
    until(|| world.faulty.calls(Op::Renew) == 1).await;
    world.settle().await;
    world.jump(ms(400));
    let left = super::soon(renewal).await;
    assert_eq!(left, Ok(ten_less(ms(400))));
}

#[tokio::test]
async fn renew_for_lasts_and_verify_changes_nothing() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(lease.renew_for(secs(100)).await, Ok(ms(98_998)));
    world.jump(secs(20));
    let left = lease.verify().await.unwrap();
    assert!(left < secs(80) && left > secs(78), "{left:?}");
    world.pass(secs(20)).await;
    let left = lease.remaining();
    assert!(
        left > secs(90),
        "the thread renews for the new ttl: {left:?}"
    );
}

/// The server renewed for a second, and its answer was lost: the holder goes by what it knew before.
#[tokio::test]
async fn a_lost_answer_for_less_ends_no_lease_early() {
    let world = World::start().await;
    let manual = world.locks.lease("a").ttl(secs(60)).manual_renewal();
    let lease = manual.try_acquire().await.unwrap().unwrap();
    world.faulty.next(Op::Renew, Fault::LoseReply);
    assert_eq!(lease.renew_for(secs(1)).await, Err(RenewError::Unknown));
    world.jump(secs(30));
    assert!(lease.state().is_live());
    assert!(world.holds("a").await, "it is believed and has ended");
}

#[tokio::test]
async fn renewal_survives_reconnect_and_ends_with_release() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    for fault in [Fault::NotSent, Fault::LoseRequest, Fault::LoseReply] {
        world.faulty.next(Op::Renew, fault);
    }
    world.pass(secs(20)).await;
    assert!(matches!(lease.state(), LeaseState::Held { .. }));
    lease.release().await.unwrap();
    let calls = world.faulty.calls(Op::Renew);
    world.pass(secs(20)).await;
    assert_eq!(
        world.faulty.calls(Op::Renew),
        calls,
        "renewed after the release"
    );
    assert!(!world.holds("a").await);
}
