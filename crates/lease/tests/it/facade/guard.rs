//! Guards: moved, dropped, detached, resumed.

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{
    LeaseState, LeaseTicket, LostReason, NoticeKind, ReleaseOutcome, RenewError, TokenError,
    Unsettled, block_on,
};

use super::{World, drain, is_pending, ms, secs, soon, until};

#[tokio::test]
async fn guard_moves_between_threads() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let token = lease.token_for_logs();
    let moved = std::thread::spawn(move || {
        assert_eq!(lease.token().ok(), token);
        block_on(lease.renew()).unwrap();
        block_on(lease.release())
    });
    assert_eq!(moved.join().unwrap(), Ok(ReleaseOutcome::Released));
    // Dropped outside of every runtime, and while a panic unwinds.
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    std::thread::spawn(move || drop(lease)).join().unwrap();
    until(|| world.locks.stats().released == 2).await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let panicked = std::thread::spawn(move || {
        let _held = lease;
        panic!("as planned");
    });
    assert!(panicked.join().is_err());
    until(|| world.locks.stats().released == 3).await;
    assert!(!world.holds("a").await);
}

#[tokio::test]
async fn handles_read_and_cannot_release() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let handle = lease.handle();
    assert_eq!(handle.token(), lease.token());
    drop(handle.clone());
    assert!(handle.state().is_live());
    lease.release().await.unwrap();
    assert_eq!(handle.token(), Err(TokenError::Released));
    assert_eq!(handle.state(), LeaseState::Released);
    assert_eq!(handle.remaining(), ms(0));
}

#[tokio::test]
async fn release_tells_what_it_found() {
    let world = World::start().await;
    let mut notices = world.locks.notices();
    let manual = |name: &str| world.locks.lease(name).manual_renewal();
    let gone = manual("a").try_acquire().await.unwrap().unwrap();
    let taken = manual("b").try_acquire().await.unwrap().unwrap();
    world.server.advance(secs(11));
    let other = world.other().await;
    let thief = other.lease("b").try_acquire().await.unwrap().unwrap();
    assert_eq!(gone.release().await, Ok(ReleaseOutcome::AlreadyGone));
    let Ok(ReleaseOutcome::TakenBy(by)) = taken.release().await else {
        panic!("not taken");
    };
    assert_eq!(by.number(), thief.token_for_logs().unwrap().number());
    assert!(thief.verify().await.is_ok());
    let stats = world.locks.stats();
    assert_eq!((stats.released, stats.held), (0, ms(0)));
    let told = drain(&mut notices);
    assert!(told.iter().all(|told| told.what != NoticeKind::Released));
}

#[tokio::test]
async fn a_release_whose_answer_was_lost_is_counted_once() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    world.faulty.next(Op::Release, Fault::LoseReply);
    let outcome = world.drive(Box::pin(lease.release())).await;
    assert_eq!(outcome, Ok(ReleaseOutcome::AlreadyGone));
    assert_eq!(world.locks.stats().released, 1);
}

#[tokio::test]
async fn a_release_without_an_answer_is_unsettled_and_goes_on() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    for _ in 0..3 {
        world.faulty.next(Op::Release, Fault::LoseRequest);
    }
    let mut release = Box::pin(lease.release());
    let outcome = loop {
        if let Some(outcome) = world.poll_or_pass(&mut release, ms(20)).await {
            break outcome;
        }
    };
    assert_eq!(outcome, Err(Unsettled));
    world.pass(ms(500)).await;
    assert!(!world.holds("a").await, "nobody tried on");
    assert_eq!(world.faulty.calls(Op::Release), 4);
}

#[tokio::test]
async fn a_ticket_is_resumed_once_it_is_in_time() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let token = lease.token_for_logs();
    let handle = lease.handle();
    let ticket = lease.detach();
    assert!(!handle.state().is_live(), "here it is over");
    let shown = format!("{ticket:?}");
    let text = serde_json::to_string(&ticket).unwrap();
    let owner = text.split("\"owner\":\"").nth(1).unwrap();
    assert!(!shown.contains(&owner[..32]), "Debug shows the secret");
    world.pass(secs(8)).await;
    assert_eq!(world.faulty.calls(Op::Renew), 0, "a ticket is not renewed");
    let other = world.other().await;
    let read: LeaseTicket = serde_json::from_str(&text).unwrap();
    assert_eq!(read, ticket);
    let resumed = other.resume(read).await.unwrap().unwrap();
    assert_eq!(resumed.token_for_logs(), token);
    world.pass(secs(8)).await;
    assert!(resumed.token().is_ok());
    resumed.release().await.unwrap();
    let late = world.locks.resume(ticket).await;
    assert!(matches!(late, Ok(None)), "{late:?}");
    for wrong in ["{}", "{\"owner\":\"x\"}", "[]"] {
        assert!(serde_json::from_str::<LeaseTicket>(wrong).is_err());
    }
}

#[tokio::test]
async fn a_ticket_outlives_a_resume_that_was_dropped() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let ticket = lease.detach();
    world.faulty.next(Op::Renew, Fault::DelayReply(ms(400)));
    let mut resume = Box::pin(world.locks.resume(ticket.clone()));
    assert!(is_pending(&mut resume).await);
    until(|| world.faulty.calls(Op::Renew) == 1).await;
    drop(resume);
    world.pass(secs(1)).await;
    assert_eq!(world.faulty.calls(Op::Release), 0);
    let other = world.other().await;
    assert!(other.resume(ticket).await.unwrap().is_some());
    world.pass(secs(20)).await;
    assert_eq!(
        world.faulty.calls(Op::Renew),
        1,
        "nothing renews what was left"
    );
}

#[tokio::test]
async fn a_ticket_that_is_resumed_twice_is_of_the_last() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let ticket = lease.detach();
    let resume = || world.locks.resume(ticket.clone());
    let first = resume().await.unwrap().unwrap();
    let second = resume().await.unwrap().unwrap();
    assert_eq!(soon(first.lost()).await, LostReason::Gone);
    drop(first);
    let last = resume().await.unwrap().unwrap();
    assert_eq!(second.release().await, Ok(ReleaseOutcome::AlreadyGone));
    world.pass(secs(20)).await;
    assert!(last.token().is_ok() && world.holds("a").await);
}

#[tokio::test]
async fn a_renewal_that_another_resume_overtook_releases_nothing() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let ticket = lease.detach();
    let resume = || world.locks.resume(ticket.clone());
    let first = resume().await.unwrap().unwrap();
    world.faulty.next(Op::Renew, Fault::DelayReply(ms(400)));
    let mut late = Box::pin(first.renew());
    assert!(is_pending(&mut late).await);
    until(|| world.faulty.calls(Op::Renew) == 2).await;
    let second = resume().await.unwrap().unwrap();
    world.jump(ms(400));
    let lost = Err(RenewError::Lost(LostReason::Gone));
    assert_eq!(soon(late).await, lost);
    world.settle().await;
    assert!(second.token().is_ok() && world.holds("a").await);
}

/// The backend keeps the longest life that it has promised.
#[tokio::test]
async fn a_release_is_sent_until_the_longest_life_ends() {
    let world = World::start().await;
    let lease = world.locks.lease("a").manual_renewal().acquire().await;
    let lease = lease.unwrap();
    lease.renew_for(secs(600)).await.unwrap();
    lease.renew_for(secs(1)).await.unwrap();
    world.faulty.pause();
    assert_eq!(world.drive(Box::pin(lease.release())).await, Err(Unsettled));
    world.pass(secs(10)).await;
    world.faulty.resume();
    world.pass(secs(5)).await;
    assert!(!world.holds("a").await);
}

#[cfg(feature = "tokio-util")]
#[tokio::test]
async fn a_cancellation_token_fires_with_the_loss() {
    let world = World::start().await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let token = lease.cancellation_token();
    lease.cancellation_token().cancel();
    assert!(!token.is_cancelled(), "by another watcher");
    world.faulty.pause();
    world.jump(secs(10));
    super::soon(token.cancelled()).await;
    assert!(lease.cancellation_token().is_cancelled());
}
