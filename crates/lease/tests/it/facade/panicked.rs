//! The lease thread panics, by a bug of this crate or of what it was given: nobody waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ThreadId};

use soldonce_lease::backend::Memory;
use soldonce_lease::{
    AcquireError, BackendError, BootTime, Clock, Drained, FencingToken, Locks, LostReason,
    ManualClock, Name, RenewError, SleepFuture, Unsettled, Wait,
};

use super::{is_pending, secs, soon};

/// Panics once, when it is told to, on any thread but the test's.
struct Breaking {
    right: ManualClock,
    test: ThreadId,
    breaks: AtomicBool,
}

impl Clock for Breaking {
    fn wall_ms(&self) -> i64 {
        self.right.wall_ms()
    }

    fn boot(&self) -> BootTime {
        if thread::current().id() != self.test {
            assert!(!self.breaks.swap(false, Ordering::SeqCst), "planted");
        }
        self.right.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        self.right.sleep_until(until)
    }
}

#[tokio::test]
async fn whoever_asks_a_thread_that_has_panicked_is_told_at_once() {
    let clock = Arc::new(Breaking {
        right: ManualClock::at(1_000_000),
        test: thread::current().id(),
        breaks: AtomicBool::new(false),
    });
    let memory = Arc::new(Memory::new(Arc::new(clock.right.clone())));
    let locks = Locks::backend(memory).clock(clock.clone());
    let locks = locks.connect().await.unwrap();
    let held = locks.lease("a").try_acquire().await.unwrap();
    let ticket = locks.lease("t").try_acquire().await.unwrap().detach();
    let mut waiting = Box::pin(locks.lease("a").acquire(Wait::Forever));
    assert!(is_pending(&mut waiting).await);
    clock.breaks.store(true, Ordering::SeqCst);
    // Whoever is there is told, and so is whoever comes later.
    let meets_it = soon(locks.lease("b").try_acquire()).await;
    assert_eq!(meets_it.unwrap_err(), AcquireError::Closed);
    assert_eq!(soon(waiting).await.unwrap_err(), AcquireError::Closed);
    assert!(!clock.breaks.load(Ordering::SeqCst), "it did not panic");
    let forever = soon(locks.lease("c").acquire(Wait::Forever)).await;
    assert_eq!(forever.unwrap_err(), AcquireError::Closed);
    let resumed = soon(locks.resume(ticket)).await;
    assert_eq!(resumed.unwrap_err(), AcquireError::Closed);
    let (name, nobody) = (
        Name::new("a").unwrap(),
        FencingToken::from_parts(0, 1).unwrap(),
    );
    let inspected = soon(locks.inspect(&name)).await;
    assert!(matches!(inspected, Err(BackendError::NotSent(_))));
    let broken = soon(locks.force_release(&name, nobody, "test")).await;
    assert!(matches!(broken, Err(BackendError::NotSent(_))));
    assert!(soon(locks.doctor()).await.findings.is_empty());
    let renewed = soon(held.renew()).await;
    assert_eq!(renewed, Err(RenewError::Lost(LostReason::Gone)));
    assert_eq!(soon(held.release()).await, Err(Unsettled));
    assert_eq!(soon(locks.shutdown(secs(5))).await, Drained::default());
}
