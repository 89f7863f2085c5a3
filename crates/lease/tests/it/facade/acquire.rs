//! Acquire: what it answers, what it refuses, and what a lost reply leaves.

use soldonce_lease::test_kit::{Fault, Op};
use soldonce_lease::{AcquireError, BackendError, InvalidRequest, Request, TokenError};

use super::{World, is_pending, ms, secs, soon, ten_less, until};

#[tokio::test]
async fn expired_grant_is_never_returned() {
    let world = World::start().await;
    // The process sleeps while the answer is on its way: half the ttl is gone when it comes.
    world.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let mut asking = Box::pin(world.locks.lease("a").ttl(ms(700)).acquire());
    assert!(is_pending(&mut asking).await);
    until(|| world.faulty.calls(Op::Acquire) == 1).await;
    world.settle().await;
    world.jump(ms(400));
    until(|| world.faulty.calls(Op::Acquire) >= 1).await;
    let lease = loop {
        if let Some(lease) = world.poll_or_pass(&mut asking, ms(20)).await {
            break lease.unwrap();
        }
    };
    assert!(lease.remaining() >= ms(350), "{:?}", lease.remaining());
    assert!(
        world.faulty.calls(Op::Acquire) >= 2,
        "the useless grant was returned"
    );
    until(|| world.locks.stats().orphans == 1).await;
}

#[tokio::test]
async fn lost_reply_leaves_no_orphan() {
    let world = World::start().await;
    // Healed: the second try has the same owner and gets the same grant.
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(
        lease.token_for_logs().unwrap().counter(),
        1,
        "granted twice"
    );
    lease.release().await.unwrap();
    // Not healed: told as unknown, and released in the background.
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    world.faulty.next(Op::Acquire, Fault::LoseReply);
    let error = world.locks.lease("b").try_acquire().await.unwrap_err();
    let retry_after = secs(10);
    assert_eq!(error, AcquireError::Unknown { retry_after });
    until(|| world.locks.stats().orphans == 1).await;
    assert!(!world.holds("b").await);
}

#[tokio::test]
async fn a_command_still_in_a_buffer_is_deleted_after_half_the_ttl() {
    let world = World::start().await;
    for _ in 0..2 {
        world.faulty.next(Op::Acquire, Fault::Buffer);
    }
    let unknown = world.locks.lease("a").try_acquire().await;
    assert!(matches!(unknown, Err(AcquireError::Unknown { .. })));
    until(|| world.faulty.calls(Op::Release) == 1).await;
    world.settle().await;
    world.faulty.deliver().await;
    assert!(world.holds("a").await, "the late command was granted");
    world.pass(ms(5_050)).await;
    until(|| world.faulty.calls(Op::Release) == 2).await;
    world.settle().await;
    assert!(!world.holds("a").await);
}

#[tokio::test]
async fn a_doubled_command_is_one_grant() {
    let world = World::start().await;
    world.faulty.next(Op::Acquire, Fault::Double);
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(lease.token_for_logs().unwrap().counter(), 1);
    world.faulty.next(Op::Release, Fault::Double);
    lease.release().await.unwrap();
    assert!(!world.holds("a").await);
}

#[tokio::test]
async fn not_sent_is_asked_again_once() {
    let world = World::start().await;
    world.faulty.next(Op::Acquire, Fault::NotSent);
    assert!(
        world
            .locks
            .lease("a")
            .try_acquire()
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(world.faulty.calls(Op::Acquire), 2);
    world.faulty.next(Op::Acquire, Fault::NotSent);
    let no_wait = world.locks.lease("b").acquire_within(ms(0)).await;
    assert!(no_wait.unwrap().is_some());
    assert_eq!(world.faulty.calls(Op::Acquire), 4);
}

/// The connection is under way, and takes longer than the wait.
#[tokio::test]
async fn not_sent_is_asked_again_once_after_a_short_wait() {
    let world = World::start().await;
    world.faulty.next(Op::Acquire, Fault::NotSent);
    world.faulty.pause();
    let mut asking = Box::pin(world.locks.lease("a").acquire_within(ms(5)));
    assert!(is_pending(&mut asking).await);
    until(|| world.faulty.calls(Op::Acquire) == 1).await;
    world.jump(ms(5));
    world.faulty.resume();
    assert!(soon(asking).await.unwrap().is_some());
    assert_eq!(world.faulty.calls(Op::Acquire), 2);
}

#[tokio::test]
async fn not_sent_is_unavailable_and_leaves_nothing_to_release() {
    let world = World::start().await;
    world.faulty.next(Op::Acquire, Fault::NotSent);
    world.faulty.next(Op::Acquire, Fault::NotSent);
    let error = world.locks.lease("a").try_acquire().await.unwrap_err();
    let sent = matches!(error, AcquireError::Unavailable(BackendError::NotSent(_)));
    assert!(sent, "{error:?}");
    world.settle().await;
    assert_eq!(world.faulty.calls(Op::Release), 0);
}

#[tokio::test]
async fn a_hung_backend_is_unknown_after_the_call_timeout() {
    let world = World::start().await;
    world.faulty.pause();
    let mut asking = Box::pin(world.locks.lease("a").try_acquire());
    assert!(is_pending(&mut asking).await);
    until(|| world.faulty.calls(Op::Acquire) == 1).await;
    world.settle().await;
    world.jump(ms(500));
    until(|| world.faulty.calls(Op::Acquire) == 2).await;
    world.settle().await;
    world.jump(ms(500));
    let error = soon(asking).await.unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refusal_lists_conflicts_and_is_no_error_for_those_who_ask_so() {
    let world = World::start().await;
    let held = world
        .locks
        .group("hall", ["A-1", "A-3"])
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let wanted = || world.locks.group("hall", ["A-1", "A-2", "A-3"]);
    let refused = wanted().acquire_or_refusal(ms(0)).await.unwrap();
    let refusal = refused.unwrap_err();
    let names: Vec<_> = refusal
        .conflicts
        .iter()
        .map(|held| held.name.as_str())
        .collect();
    assert_eq!(names, ["A-1", "A-3"]);
    let said = "held by another owner; retry after 10000 ms";
    assert_eq!(refusal.to_string(), said);
    assert!(wanted().try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    let seats = wanted().try_acquire().await.unwrap();
    assert!(seats.is_some());
}

#[tokio::test]
async fn impossible_requests_are_refused_before_anything_is_sent() {
    let world = World::start().await;
    let lease = || world.locks.lease("a");
    let day = secs(86_400);
    let group = |names: Vec<String>| world.locks.group("g", names);
    let many = (0..65).map(|n| format!("n-{n}"));
    let wrong: [(&str, Request); 14] = [
        ("ttl", lease().ttl(ms(0))),
        ("ttl", lease().ttl(day + ms(1))),
        ("lifetime", lease().max_lifetime(secs(9))),
        ("lifetime", lease().max_lifetime(day * 31)),
        ("safety", lease().ttl(secs(10)).safety(secs(5))),
        ("names", group(many.collect())),
        ("names", group(Vec::new())),
        ("names", world.locks.permit("g", 65)),
        ("name", world.locks.lease("no spaces")),
        ("replicas", lease().replicas(1, ms(0))),
        ("replicas", lease().replicas(1, secs(10))),
        ("meta", lease().meta("key", "a\nb")),
        ("meta", lease().meta("", "b")),
        ("unsupported", group(vec!["a".to_owned()]).fair()),
    ];
    for (what, request) in wrong {
        let error = request.try_acquire().await.unwrap_err();
        let AcquireError::Invalid(reason) = error else {
            panic!("{what}: {error:?}");
        };
        let said = match reason {
            InvalidRequest::Ttl { .. } => "ttl",
            InvalidRequest::MaxLifetime(_) => "lifetime",
            InvalidRequest::Safety(_) => "safety",
            InvalidRequest::Replicas(_) => "replicas",
            InvalidRequest::Names { .. } => "names",
            InvalidRequest::Name(_) => "name",
            InvalidRequest::Meta => "meta",
            InvalidRequest::Unsupported { .. } => "unsupported",
            other => panic!("{other:?}"),
        };
        assert_eq!(said, what);
    }
    assert_eq!(world.faulty.calls(Op::Acquire), 0);
}

#[tokio::test]
async fn memory_keeps_leases_of_a_few_milliseconds() {
    let world = World::start().await;
    let lease = world
        .locks
        .lease("a")
        .ttl(ms(1))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    assert!(lease.token().is_ok());
    assert!(lease.remaining() >= ms(1) / 2);
}

#[tokio::test]
async fn without_fencing_there_is_no_token() {
    let world = World::with(soldonce_lease::Builder::no_fencing).await;
    let lease = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(lease.token(), Err(TokenError::NoFencing));
    assert_eq!(lease.token_for_logs(), None);
    assert!(lease.renew().await.is_ok());
}

#[tokio::test]
async fn inspect_shows_all_but_the_secret() {
    let world = World::start().await;
    let request = world
        .locks
        .lease("a")
        .meta("host", "db-1")
        .meta("why", "a=b");
    let lease = request
        .safety(secs(1))
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lease.remaining(), ten_less(secs(1)));
    world.pass(secs(1)).await;
    let info = world
        .locks
        .lease("a")
        .inspect()
        .await
        .unwrap()
        .expect("held");
    assert_eq!(
        info.token.number(),
        lease.token_for_logs().unwrap().number()
    );
    assert_eq!((info.held, info.remaining), (secs(1), secs(9)));
    assert_eq!(info.cap, None, "no silent end");
    let pairs = [("host", "db-1"), ("why", "a=b")];
    assert_eq!(
        info.meta,
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    let shown = format!("{lease:?} {:?}", world.locks);
    assert!(!shown.contains("Owner"), "{shown}");
}

#[tokio::test]
async fn force_release_needs_exact_token() {
    let world = World::start().await;
    let first = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let seen = first.token_for_logs().unwrap();
    first.release().await.unwrap();
    let second = world.locks.lease("a").try_acquire().await.unwrap().unwrap();
    let a = world.locks.lease("a");
    let outcome = a.force_release(seen, "old news").await;
    assert!(
        matches!(outcome, Ok(soldonce_lease::ReleaseOutcome::TakenBy(_))),
        "{outcome:?}"
    );
    assert!(second.verify().await.is_ok());
    let seen = second.token_for_logs().unwrap();
    let outcome = a.force_release(seen, "stuck").await;
    assert_eq!(outcome, Ok(soldonce_lease::ReleaseOutcome::Released));
    assert!(second.verify().await.is_err());
}
