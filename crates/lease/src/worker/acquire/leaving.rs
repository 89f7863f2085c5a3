//! Tells the task that runs a call for several callers when one of them may have gone away, so that
//! it looks at all of them then, and not whenever the call comes further.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

/// Woken by callers who leave; wakes the task.
pub(super) struct Leaving {
    may_have_left: AtomicBool,
    task: Mutex<Waker>,
}

impl Leaving {
    /// One that nobody has looked at: each caller is looked at once to begin with.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            may_have_left: AtomicBool::new(true),
            task: Mutex::new(Waker::noop().clone()),
        })
    }

    fn task(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody may have left since the last look. Whoever does from here on wakes the task.
    pub(super) fn look(&self, cx: &Context<'_>) -> bool {
        self.task().clone_from(cx.waker());
        self.may_have_left.swap(false, Ordering::AcqRel)
    }

    /// Wakes the task, though nobody has left.
    pub(super) fn wake_task(&self) {
        self.task().wake_by_ref();
    }
}

impl Wake for Leaving {
    fn wake(self: Arc<Self>) {
        self.may_have_left.store(true, Ordering::Release);
        self.wake_task();
    }
}
