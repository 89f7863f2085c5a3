//! The twins for code without an executor, where their way differs from that of the future.

use std::sync::Arc;

use soldonce_lease::backend::{Acquire, AcquireReply, Backend, Durability, Fut, Memory, Names};
use soldonce_lease::{
    EpochError, FencingToken, LeaseState, Locks, LostReason, ManualClock, Name, NoticeKind, Owner,
    ReleaseOutcome, Renew, SystemEntropy, TokenSource, Wait,
};

use super::{ms, secs};

#[test]
fn everything_can_be_asked_without_an_executor() {
    let locks = Locks::memory().connect_blocking().unwrap();
    let mut notices = locks.notices();
    let (hall, name) = (locks.group("hall"), Name::new("A-1").unwrap());
    let lease = hall.name("A-1").try_acquire_blocking().unwrap();
    assert_eq!(notices.next_blocking().unwrap().what, NoticeKind::Acquired);
    assert!(locks.inspect_blocking(&name).unwrap().is_none());
    let holder = hall.inspect_blocking(&name).unwrap().unwrap();
    let broken = hall.force_release_blocking(&name, holder.token, "a test");
    assert_eq!(broken, Ok(ReleaseOutcome::Released));
    let again = locks.force_release_blocking(&name, holder.token, "a test");
    assert_eq!(again, Ok(ReleaseOutcome::AlreadyGone));
    lease.verify_blocking().unwrap_err();
    assert_eq!(locks.doctor_blocking().findings, []);
}

#[test]
fn states_and_losses_wake_a_thread() {
    let clock = ManualClock::at(0);
    let locks = Locks::memory().clock(Arc::new(clock.clone()));
    let locks = locks.connect_blocking().unwrap();
    let manual = locks.lease("a").renew(Renew::Manual);
    let lease = manual.try_acquire_blocking().unwrap();
    let (mut watch, lost) = (lease.watch(), lease.lost());
    let seen = std::thread::spawn(move || watch.changed_blocking());
    let reason = std::thread::spawn(move || lost.wait_blocking());
    clock.advance(secs(60));
    let ended = LostReason::Deadline;
    assert_eq!(seen.join().unwrap(), Some(LeaseState::Lost(ended)));
    assert_eq!(reason.join().unwrap(), ended);
}

#[test]
fn a_cooperative_body_is_polled_on_this_thread() {
    let locks = Locks::memory().connect_blocking().unwrap();
    let here = std::thread::current().id();
    let run = locks.lease("a");
    let run = run.run_cooperative_blocking(Wait::No, ms(100), async |lease| {
        assert!(lease.live_token().is_ok());
        Ok::<_, ()>(std::thread::current().id())
    });
    assert_eq!(run.unwrap(), here);
}

/// Whole tokens, a few left out.
struct Sequence(std::sync::atomic::AtomicU64);

impl Sequence {
    fn from(number: u64) -> Arc<Self> {
        Arc::new(Self(number.into()))
    }
}

impl TokenSource for Sequence {
    fn next<'a>(&'a self, _: &'a str, above: u64) -> Fut<'a, Result<u64, EpochError>> {
        let order = std::sync::atomic::Ordering::SeqCst;
        let given = self.0.fetch_max(above, order).max(above) + 3;
        self.0.store(given, order);
        Box::pin(std::future::ready(Ok(given)))
    }
}

fn ask(name: &str) -> Acquire {
    Acquire {
        names: Names::one(Name::new(name).unwrap()),
        owner: Owner::draw(&SystemEntropy),
        ttl: secs(10),
        cap: None,
        floor: None,
        waiter: None,
        fair: false,
        meta: "".into(),
        durability: Durability::Primary,
    }
}

async fn granted(memory: &Memory, ask: &Acquire) -> FencingToken {
    match memory.acquire(ask).await {
        AcquireReply::Granted { token, .. } => token,
        other => panic!("not granted: {other:?}"),
    }
}

#[tokio::test]
async fn leases_in_memory_take_whole_tokens_from_a_source() {
    let first = 1 << 32;
    let clock = Arc::new(ManualClock::at(0));
    let source = Sequence::from(first);
    let memory = Memory::with_tokens(clock, source.clone(), "app");
    let mine = ask("a");
    assert_eq!(granted(&memory, &mine).await.number(), first + 3);
    // Again, and refused: neither takes a token.
    assert_eq!(granted(&memory, &mine).await.number(), first + 3);
    assert!(matches!(
        memory.acquire(&ask("a")).await,
        AcquireReply::Refused(_)
    ));
    assert_eq!(granted(&memory, &ask("b")).await.number(), first + 6);
    let floor = FencingToken::new(first + 100, soldonce_lease::Tag::default());
    let above = granted(&memory, &Acquire { floor, ..ask("c") }).await;
    assert_eq!(above.number(), first + 103);
}

/// A source that went back.
struct Stuck;

impl TokenSource for Stuck {
    fn next<'a>(&'a self, _: &'a str, _: u64) -> Fut<'a, Result<u64, EpochError>> {
        Box::pin(std::future::ready(Ok(7)))
    }
}

#[test]
fn a_token_source_that_gives_a_number_twice_grants_nothing() {
    let locks = Locks::memory().tokens(Stuck).connect_blocking().unwrap();
    let first = locks.lease("a").try_acquire_blocking().unwrap();
    assert_eq!(first.token().unwrap().number(), 7);
    let second = locks.lease("b").try_acquire_blocking().unwrap_err();
    assert!(
        matches!(second, soldonce_lease::AcquireError::Epoch(_)),
        "{second:?}"
    );
}
