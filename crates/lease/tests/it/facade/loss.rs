//! When a lease ends without being released, and who learns it when.

use soldonce_lease::backend::{Backend, Memory};
use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{
    FencingToken, Lease, LeaseState, LostReason, Name, NoticeKind, RenewError, TokenError,
};

use super::{TEN_LESS_MARGIN, World, drain, is_pending, ms, secs, soon, ten_less, until};

#[tokio::test]
async fn the_signal_fires_at_the_deadline_though_the_backend_hangs() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(lease.remaining(), TEN_LESS_MARGIN);
    world.faulty.pause();
    world.pass(ten_less(ms(1))).await;
    assert_eq!(lease.state(), LeaseState::Suspect { remaining: ms(1) });
    assert!(lease.token().is_ok());
    let mut signal = Box::pin(lease.lost());
    assert!(is_pending(&mut signal).await, "lost before the deadline");
    world.jump(ms(1));
    assert_eq!(soon(signal).await, LostReason::Deadline);
    let ended = TokenError::Lost(LostReason::Deadline);
    assert_eq!(lease.token(), Err(ended));
    assert!(lease.token_for_logs().is_some(), "for logs");
    world.faulty.resume();
    // What the backend answers now comes too late, and is given back.
    until(|| world.locks.stats().live == 0).await;
    assert_eq!(lease.state(), LeaseState::Lost(LostReason::Deadline));
}

/// The lease thread has not looked at most of them yet: they are lost all the same, told, and given back.
#[tokio::test]
async fn what_is_released_after_its_deadline_is_told_as_lost() {
    let world = World::start().await;
    let mut leases = Vec::new();
    for number in 0..20 {
        let lease = world.locks.lease(format!("n-{number}")).try_acquire();
        leases.push(lease.await.unwrap().unwrap());
    }
    let readers: Vec<_> = leases.iter().map(Lease::handle).collect();
    let mut lost: Vec<_> = readers.iter().map(|one| Box::pin(one.lost())).collect();
    for lost in &mut lost {
        assert!(is_pending(lost).await);
    }
    let released = leases.pop().unwrap();
    world.clock.advance(secs(11));
    drop(leases);
    released.release().await.unwrap();
    for lost in lost {
        assert_eq!(soon(lost).await, LostReason::Deadline);
    }
    until(|| world.locks.stats().lost_deadline == 20).await;
    world.settle().await;
    assert_eq!(world.locks.stats().released, 0);
    for number in 0..20 {
        assert!(!world.holds(&format!("n-{number}")).await);
    }
}

#[tokio::test]
async fn a_late_good_answer_revives_nothing_and_is_released() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    // The server is slower than this process thinks: its lease outlives the deadline.
    world.faulty.next(Op::Renew, Fault::DelayReply(secs(60)));
    world.clock.advance(secs(4));
    until(|| world.faulty.calls(Op::Renew) > 0).await;
    world.clock.advance(secs(6));
    assert_eq!(soon(lease.lost()).await, LostReason::Deadline);
    assert!(lease.renew().await.is_err());
    until(|| world.faulty.calls(Op::Release) > 0).await;
    world.settle().await;
    assert!(!world.holds("a").await, "the late grant was kept");
}

#[tokio::test]
async fn renew_after_expiry_is_lost() {
    let world = World::start().await;
    let manual = world.locks.lease("a").manual_renewal();
    let lease = manual.try_acquire().await.unwrap().unwrap();
    // Only the server's clock jumps: here all looks well.
    world.server.advance(secs(11));
    assert!(lease.state().is_live());
    let lost = RenewError::Lost(LostReason::Gone);
    assert_eq!(lease.renew().await, Err(lost.clone()));
    assert_eq!(lease.state(), LeaseState::Lost(LostReason::Gone));
    assert_eq!(lease.verify().await, Err(lost));
    assert!(!world.holds("a").await, "renew created something");
}

#[tokio::test]
async fn a_lease_taken_by_another_says_by_whom() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.server.advance(secs(11));
    let other = world
        .other()
        .await
        .lease("a")
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let by = other.token_for_logs().unwrap();
    let Err(RenewError::Lost(LostReason::Taken { by: seen })) = lease.renew().await else {
        panic!("not taken: {:?}", lease.state());
    };
    assert_eq!(seen.number(), by.number());
    assert!(world.holds("a").await, "the loser freed what is another's");
}

#[tokio::test]
async fn stuck_task_loses_lease_at_cap() {
    let world = World::start().await;
    let mut notices = world.locks.notices();
    let request = world.locks.lease("a").max_lifetime(secs(30));
    let lease = request.try_acquire().await.unwrap().unwrap();
    world.pass(secs(29)).await;
    assert!(lease.state().is_live(), "{:?}", lease.state());
    world.pass(secs(1)).await;
    assert_eq!(lease.state(), LeaseState::Lost(LostReason::CapReached));
    assert!(!world.holds("a").await);
    until(|| world.locks.stats().lost_cap == 1).await;
    let told = drain(&mut notices);
    assert!(told.iter().any(|notice| notice.what == NoticeKind::Lost));
}

#[tokio::test]
async fn a_lease_without_a_cap_is_renewed_on() {
    let world = World::start().await;
    let request = world.locks.lease("a").ttl(secs(60));
    let lease = request.try_acquire().await.unwrap().unwrap();
    for _ in 0..100 {
        world.jump(secs(20));
        world.settle().await;
    }
    assert!(matches!(lease.state(), LeaseState::Held { .. }));
    assert!(world.holds("a").await);
}

#[tokio::test]
async fn a_name_of_a_group_lost_is_the_group_lost_and_the_rest_released() {
    let world = World::start().await;
    let lease = world
        .locks
        .group("hall", ["A-1", "A-2"])
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let hall = Name::new("hall").unwrap();
    let rest = Name::new("A-2").unwrap();
    let token = lease.token_for_logs().unwrap();
    let one = world.locks.group("hall", ["A-1"]);
    one.force_release(token, "test").await.unwrap();
    assert_eq!(lease.renew().await, Err(RenewError::Lost(LostReason::Gone)));
    world.settle().await;
    let rest = world.memory.inspect(Some(&hall), &rest).await;
    assert_eq!(rest, Ok(None));
}

#[tokio::test]
async fn a_stale_write_ends_the_lease_and_the_next_token_is_above() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let token = lease.token_for_logs().unwrap();
    let seen = FencingToken::from_parts(0, token.counter() + 500).unwrap();
    lease.report_overtaken(seen);
    let by = LostReason::Overtaken { by: seen };
    assert_eq!(lease.token(), Err(TokenError::Lost(by)));
    until(|| world.locks.stats().lost_overtaken == 1).await;
    world.settle().await;
    let next = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert!(next.token_for_logs().unwrap() > seen);
}

#[tokio::test]
async fn a_restart_that_kept_the_grant_is_no_loss_and_one_that_did_not_is() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let kept = world.memory.snapshot();
    let restarted = Memory::new(std::sync::Arc::new(world.server.clone()));
    restarted.restore(kept);
    world.faulty.replace(std::sync::Arc::new(restarted));
    assert!(lease.renew().await.is_ok());
    let empty = Memory::new(std::sync::Arc::new(world.server.clone()));
    world.faulty.replace(std::sync::Arc::new(empty));
    assert_eq!(lease.renew().await, Err(RenewError::Lost(LostReason::Gone)));
}

#[tokio::test]
async fn client_clock_skew_changes_nothing() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let hour = 3_600_000;
    for wall in [1_000_000 - hour, 1_000_000 + hour, 0] {
        world.clock.step_wall(wall);
        world.pass(secs(5)).await;
        assert!(lease.token().is_ok(), "{:?}", lease.state());
    }
    assert!(world.holds("a").await);
}

#[tokio::test]
async fn a_wall_clock_that_ran_ahead_makes_suspect_until_verified() {
    let world = World::start().await;
    let mut notices = world.locks.notices();
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.faulty.pause();
    // A resumed virtual host: the wall clock knows of the time, the boot clock does not.
    world.clock.step_wall(1_000_000 + 2_000);
    assert!(matches!(lease.state(), LeaseState::Suspect { .. }));
    world.clock.advance(ms(250));
    until(|| world.faulty.calls(Op::Renew) == 1).await;
    world.faulty.resume();
    until(|| matches!(lease.state(), LeaseState::Held { .. })).await;
    until(|| world.locks.stats().renewed == 1).await;
    let told: Vec<_> = drain(&mut notices).iter().map(|told| told.what).collect();
    assert_eq!(
        told,
        [
            NoticeKind::Acquired,
            NoticeKind::Suspect,
            NoticeKind::Recovered
        ]
    );
}

#[tokio::test]
async fn starved_executor_keeps_the_lease() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    // This executor runs nothing while the closure below blocks its only thread; renewals go on.
    for _ in 0..10 {
        let before = world.locks.stats().renewed;
        world.jump(secs(4));
        let renewed = || world.locks.stats().renewed > before;
        assert!(wait_without_executor(renewed), "nobody renewed");
    }
    assert!(matches!(lease.state(), LeaseState::Held { .. }));
    assert!(world.holds("a").await);
}

/// Blocks the thread until `done`, at most a minute.
fn wait_without_executor(done: impl Fn() -> bool) -> bool {
    use soldonce_lease::{Clock, SystemClock};
    let end = SystemClock.boot().plus(soldonce_testkit::PATIENCE);
    while SystemClock.boot() < end {
        if done() {
            return true;
        }
        std::thread::yield_now();
    }
    false
}
