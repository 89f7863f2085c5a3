//! The lease thread panics, by a bug of this crate or of what it was given: no caller waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use soldonce_lease::backend::Memory;
use soldonce_lease::{
    AcquireError, BackendError, BootTime, Clock, Drained, FencingToken, Lease, LeaseRef,
    LeaseState, Leases, LostReason, ManualClock, Name, NoticeKind, RenewError, SleepFuture,
    TokenError, Unsettled,
};

use super::{drain, is_pending, lost, run_graced, run_under, secs, soon, until};

/// Panics once, at the look that it is told, on any thread but the test's.
struct Breaking {
    right: ManualClock,
    test: ThreadId,
    /// Zero for never.
    breaks_at: AtomicUsize,
}

impl Breaking {
    fn break_at(&self, look: usize) {
        self.breaks_at.store(look, Ordering::SeqCst);
    }

    fn has_broken(&self) -> bool {
        self.breaks_at.load(Ordering::SeqCst) == 0
    }
}

impl Clock for Breaking {
    fn wall_ms(&self) -> i64 {
        self.right.wall_ms()
    }

    fn boot(&self) -> BootTime {
        if thread::current().id() != self.test {
            let left = self.breaks_at.load(Ordering::SeqCst);
            self.breaks_at
                .store(left.saturating_sub(1), Ordering::SeqCst);
            assert!(left != 1, "planted");
        }
        self.right.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        self.right.sleep_until(until)
    }
}

async fn start() -> (Arc<Breaking>, Leases) {
    let clock = Arc::new(Breaking {
        right: ManualClock::at(1_000_000),
        test: thread::current().id(),
        breaks_at: AtomicUsize::new(0),
    });
    let memory = Arc::new(Memory::new(Arc::new(clock.right.clone())));
    let locks = Leases::backend(memory).clock(clock.clone());
    (clock, locks.connect().await.unwrap())
}

/// A lease that its thread has nothing to do with before its end.
async fn hold(locks: &Leases, name: &str) -> Lease {
    let request = locks.lease(name).manual_renewal();
    request.try_acquire().await.unwrap().unwrap()
}

/// Lets the lease thread panic at its next look.
async fn blow(clock: &Breaking, locks: &Leases) {
    clock.break_at(1);
    let meets_it = soon(locks.lease("blow").try_acquire()).await;
    assert_eq!(meets_it.unwrap_err(), AcquireError::Closed);
    assert!(clock.has_broken(), "it did not panic");
}

#[tokio::test]
async fn whoever_asks_a_thread_that_has_panicked_is_told_at_once() {
    let (clock, locks) = start().await;
    let held = locks.lease("a").try_acquire().await.unwrap().unwrap();
    let ticket = locks
        .lease("t")
        .try_acquire()
        .await
        .unwrap()
        .unwrap()
        .detach();
    let mut waiting = Box::pin(locks.lease("a").acquire());
    assert!(is_pending(&mut waiting).await);
    // Callers of now are told, and so are later ones.
    blow(&clock, &locks).await;
    assert_eq!(soon(waiting).await.unwrap_err(), AcquireError::Closed);
    let forever = soon(locks.lease("c").acquire()).await;
    assert_eq!(forever.unwrap_err(), AcquireError::Closed);
    let resumed = soon(locks.resume(ticket)).await;
    assert_eq!(resumed.unwrap_err(), AcquireError::Closed);
    let (name, nobody) = (locks.lease("a"), FencingToken::from_parts(0, 1).unwrap());
    let inspected = soon(name.inspect()).await;
    assert!(matches!(inspected, Err(BackendError::NotSent(_))));
    let broken = soon(name.force_release(nobody, "test")).await;
    assert!(matches!(broken, Err(BackendError::NotSent(_))));
    assert!(soon(locks.doctor()).await.is_empty());
    let renewed = soon(held.renew()).await;
    assert_eq!(renewed, Err(RenewError::Lost(LostReason::Gone)));
    assert_eq!(soon(held.release()).await, Err(Unsettled));
    assert_eq!(soon(locks.shutdown(secs(5))).await, Drained::default());
}

/// Nothing renews any more, and at the deadline nothing would be there to tell it.
#[tokio::test]
async fn holders_hear_at_once_that_their_thread_has_panicked() {
    let (clock, locks) = start().await;
    let mut notices = locks.notices();
    let leases = [hold(&locks, "a").await, hold(&locks, "b").await];
    let mut first = Box::pin(leases[0].lost());
    let mut second = Box::pin(leases[1].lost());
    assert!(is_pending(&mut first).await && is_pending(&mut second).await);
    let mut changed = Box::pin(leases[0].changed(leases[0].state()));
    assert!(is_pending(&mut changed).await);
    blow(&clock, &locks).await;
    assert_eq!(soon(first).await, LostReason::Gone);
    assert_eq!(soon(second).await, LostReason::Gone);
    let ended = LeaseState::Lost(LostReason::Gone);
    assert_eq!(soon(changed).await, ended);
    let gone = TokenError::Lost(LostReason::Gone);
    assert_eq!(leases[1].token(), Err(gone));
    assert_eq!(soon(leases[1].lost()).await, LostReason::Gone);
    // Counted last, so that no holder waits for it.
    until(|| locks.stats().live == 0).await;
    assert_eq!(locks.stats().lost_gone, 2);
    let told = drain(&mut notices);
    let told = told.iter().filter(|told| told.what == NoticeKind::Lost);
    assert_eq!(told.count(), 2);
}

#[cfg(feature = "tokio-util")]
#[tokio::test]
async fn a_cancellation_token_fires_with_the_panic() {
    let (clock, locks) = start().await;
    let lease = hold(&locks, "a").await;
    let token = lease.cancellation_token();
    let mut cancelled = Box::pin(token.cancelled());
    assert!(is_pending(&mut cancelled).await);
    blow(&clock, &locks).await;
    soon(cancelled).await;
}

type Done = Result<u32, &'static str>;

#[tokio::test]
async fn work_under_a_lease_ends_with_its_thread() {
    let (clock, locks) = start().await;
    let stubborn = async |_| std::future::pending::<Done>().await;
    let tidy = async |lease: LeaseRef| -> Done {
        lease.lost().await;
        Ok(1)
    };
    let mut run = Box::pin(run_under(locks.lease("a"), stubborn));
    let request = locks.lease("b");
    let mut graced = Box::pin(run_graced(request, secs(1), tidy));
    let request = locks.lease("c");
    let mut ungraced = Box::pin(run_graced(request, secs(1), stubborn));
    let nobody = Name::new("nobody").unwrap();
    while locks.stats().live < 3 {
        assert!(is_pending(&mut run).await);
        assert!(is_pending(&mut graced).await && is_pending(&mut ungraced).await);
        locks.lease(nobody.clone()).inspect().await.unwrap();
    }
    // Each has its lease now, and its body waits.
    assert!(is_pending(&mut run).await);
    assert!(is_pending(&mut graced).await && is_pending(&mut ungraced).await);
    blow(&clock, &locks).await;
    assert_eq!(soon(run).await, lost(LostReason::Gone, None));
    assert_eq!(soon(graced).await, lost(LostReason::Gone, Some(Ok(1))));
    // Without the thread nothing keeps time for a grace.
    assert_eq!(soon(ungraced).await, lost(LostReason::Gone, None));
}

/// Looks at the clock that a turn with two ends has at least.
const LOOKS: std::ops::RangeInclusive<usize> = 1..=6;

#[tokio::test]
async fn no_panic_at_the_deadline_keeps_the_loss_from_anybody() {
    let mut told = Vec::new();
    for look in LOOKS {
        let (clock, locks) = start().await;
        let leases = [hold(&locks, "a").await, hold(&locks, "b").await];
        let mut first = Box::pin(leases[0].lost());
        let mut second = Box::pin(leases[1].lost());
        assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        clock.break_at(look);
        clock.right.advance(secs(10));
        told.extend([soon(first).await, soon(second).await]);
    }
    assert!(told.contains(&LostReason::Deadline), "{told:?}");
    assert!(told.contains(&LostReason::Gone), "{told:?}");
}

#[tokio::test]
async fn no_panic_of_a_shutdown_keeps_the_end_from_anybody() {
    let mut told = Vec::new();
    for look in LOOKS {
        let (clock, locks) = start().await;
        let leases = [hold(&locks, "a").await, hold(&locks, "b").await];
        let mut first = Box::pin(leases[0].changed(leases[0].state()));
        let mut second = Box::pin(leases[1].changed(leases[1].state()));
        assert!(is_pending(&mut first).await && is_pending(&mut second).await);
        clock.break_at(look);
        soon(locks.shutdown(secs(5))).await;
        told.extend([soon(first).await, soon(second).await]);
    }
    assert!(told.contains(&LeaseState::Released), "{told:?}");
    let gone = LeaseState::Lost(LostReason::Gone);
    assert!(told.contains(&gone), "{told:?}");
}
