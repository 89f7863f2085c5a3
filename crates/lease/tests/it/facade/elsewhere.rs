//! Grants to holders in other processes.

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{
    AcquireError, InvalidRequest, LostReason, Owner, ReleaseOutcome, RenewError, SystemEntropy,
};

use super::{TEN_LESS_MARGIN, World, is_pending, ms, secs};

fn owner() -> Owner {
    Owner::draw(&SystemEntropy)
}

#[tokio::test]
async fn any_process_renews_and_releases_for_the_holder() {
    let world = World::start().await;
    let other = world.other().await;
    let (owner, wait) = (owner(), ms(0));
    let first = world
        .locks
        .lease("a")
        .grant_to(owner, wait)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (first.remaining(), first.waited()),
        (TEN_LESS_MARGIN, ms(0))
    );
    assert!(!first.is_again());
    // Neither process renews it, nor releases it when it forgets it.
    let token = first.token();
    drop(first);
    world.pass(secs(6)).await;
    let again = other
        .lease("a")
        .grant_to(owner, wait)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((again.token(), again.is_again()), (token, true));
    world.pass(secs(6)).await;
    let asked = other.lease("a").ttl(secs(20)).granted_to(owner, token);
    let left = asked.unwrap().renew().await.unwrap();
    assert!(left > secs(19), "{left:?}");
    world.locks.shutdown(secs(1)).await;
    let named = || other.lease("a").granted_to(owner, token).unwrap();
    assert!(named().renew().await.is_ok(), "a shutdown ends nothing");
    assert_eq!(named().release().await, Ok(ReleaseOutcome::Released));
    assert_eq!(named().release().await, Ok(ReleaseOutcome::AlreadyGone));
    let lost = RenewError::Lost(LostReason::Gone);
    assert_eq!(named().renew().await, Err(lost));
    assert_eq!(other.stats().lost_gone, 0, "its holder alone is told");
}

/// The process that releases for a holder may not be the one that granted.
#[tokio::test]
async fn how_long_a_holder_elsewhere_held_is_not_made_up() {
    let world = World::start().await;
    let owner = owner();
    let request = || world.locks.lease("a");
    let granted = request().grant_to(owner, ms(0)).await.unwrap().unwrap();
    let named = request().granted_to(owner, granted.token()).unwrap();
    world.pass(secs(3)).await;
    assert_eq!(named.release().await, Ok(ReleaseOutcome::Released));
    let stats = world.locks.stats();
    assert_eq!((stats.released, stats.held), (1, ms(0)));
}

#[tokio::test]
async fn others_are_refused_and_told_who_holds_it_now() {
    let world = World::start().await;
    let (mine, theirs) = (owner(), owner());
    let ask = |owner| world.locks.lease("a").grant_to(owner, ms(0));
    let first = ask(mine).await.unwrap().unwrap().token();
    let refused = ask(theirs).await;
    assert!(matches!(refused, Ok(Err(_))), "{refused:?}");
    world.jump(secs(11));
    let second = ask(theirs).await.unwrap().unwrap().token();
    assert!(second > first);
    let stale = world.locks.lease("a").granted_to(mine, first).unwrap();
    let Err(RenewError::Lost(LostReason::Taken { by })) = stale.renew().await else {
        panic!("it was renewed");
    };
    assert_eq!(by.number(), second.number());
    let Ok(ReleaseOutcome::TakenBy(_)) = stale.release().await else {
        panic!("it was released");
    };
    assert!(world.holds("a").await);
}

#[tokio::test]
async fn what_was_waited_counts_apart() {
    let world = World::start().await;
    let held = world.locks.lease("a").grant_to(owner(), ms(0)).await;
    let held = held.unwrap().unwrap();
    let ask = world.locks.lease("a").grant_to(owner(), secs(30));
    let mut ask = Box::pin(ask);
    assert!(is_pending(&mut ask).await);
    world.settle().await;
    world.pass(secs(3)).await;
    assert!(is_pending(&mut ask).await);
    held.release().await.unwrap();
    let granted = loop {
        if let Some(granted) = world.poll_or_pass(&mut ask, ms(25)).await {
            break granted.unwrap().unwrap();
        }
    };
    assert!(granted.waited() >= secs(3), "{:?}", granted.waited());
    assert_eq!(granted.remaining(), TEN_LESS_MARGIN);
}

/// The owner asks again, so nothing that was sent for it may be given back behind its back.
#[tokio::test]
async fn a_lost_answer_and_a_dropped_call_are_asked_again() {
    let world = World::start().await;
    let owner = owner();
    let ask = || world.locks.lease("a").grant_to(owner, ms(0));
    for _ in 0..2 {
        world.faulty.next(Op::Acquire, Fault::LoseReply);
    }
    let mut lost = Box::pin(ask());
    let unknown = loop {
        if let Some(outcome) = world.poll_or_pass(&mut lost, ms(25)).await {
            break outcome;
        }
    };
    assert!(
        matches!(unknown, Err(AcquireError::Unknown { .. })),
        "{unknown:?}"
    );
    // A lost answer would be asked for again at once, and perhaps be there before it is dropped.
    world.faulty.next(Op::Acquire, Fault::DelayReply(secs(1)));
    let mut dropped = Box::pin(ask());
    assert!(is_pending(&mut dropped).await);
    world.settle().await;
    drop(dropped);
    let granted = ask().await.unwrap().unwrap();
    assert!(granted.is_again());
    // Half a ttl later a grant of this process would be deleted once more.
    world.pass(secs(9)).await;
    assert!(world.holds("a").await);
    assert_eq!(world.locks.stats().released, 0);
}

/// The first answer was lost, which has a grant of this process deleted twice.
#[tokio::test]
async fn a_release_ends_nothing_that_the_owner_is_granted_later() {
    let world = World::start().await;
    let owner = owner();
    let ask = || Box::pin(world.locks.lease("a").grant_to(owner, ms(0)));
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    let granted = world.drive(ask()).await.unwrap().unwrap();
    assert_eq!(granted.release().await, Ok(ReleaseOutcome::Released));
    ask().await.unwrap().unwrap();
    world.pass(secs(6)).await;
    assert!(world.holds("a").await);
}

#[tokio::test]
async fn a_cap_ends_it_and_the_owner_is_granted_anew() {
    let world = World::start().await;
    let owner = owner();
    let request = || world.locks.lease("a").max_lifetime(secs(12));
    let first = request()
        .grant_to(owner, ms(0))
        .await
        .unwrap()
        .unwrap()
        .token();
    world.pass(secs(8)).await;
    let cut = request().granted_to(owner, first).unwrap();
    let left = cut.renew().await.unwrap();
    assert!(left <= secs(4), "{left:?}");
    let again = request().grant_to(owner, ms(0)).await.unwrap().unwrap();
    assert!(
        again.remaining() <= secs(4),
        "less than half the ttl, and told"
    );
    world.pass(secs(5)).await;
    let second = request().grant_to(owner, ms(0)).await.unwrap().unwrap();
    assert!(second.token() > first && !second.is_again());
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let world = World::start().await;
    let fair = world.locks.lease("a").fair().grant_to(owner(), ms(0));
    let fair = fair.await;
    let unsupported = matches!(
        fair,
        Err(AcquireError::Invalid(InvalidRequest::Unsupported { .. }))
    );
    assert!(unsupported, "{fair:?}");
    let token = world.locks.lease("a").grant_to(owner(), ms(0)).await;
    let token = token.unwrap().unwrap().token();
    let long = world.locks.lease("a").ttl(secs(100_000));
    assert!(long.granted_to(owner(), token).is_err());
    let any = world.locks.permit("pool", 3);
    assert!(
        any.granted_to(owner(), token).is_err(),
        "which one is not said"
    );
}
