//! Waits for a future without an executor.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

thread_local! {
    static WAITING: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether this thread is inside [`block_on`], so that its runtime, if any, cannot use it.
pub(crate) fn is_waiting() -> bool {
    WAITING.get()
}

/// Marks this thread as inside [`block_on`] until this is dropped; nested calls keep the mark.
struct Waiting {
    before: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.set(self.before);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `future`, of this crate, is ready: for code without an executor. The lease thread does
/// the work, so this works inside a runtime too; there it keeps one of the runtime's threads from other work. A
/// future that needs that runtime, such as one of its timers, may never be ready.
///
/// ```
/// use soldonce_lease::{Leases, block_on};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = block_on(Leases::memory().connect())?;
/// let lease = block_on(leases.lease("report").acquire())?;
/// block_on(lease.release())?;
/// # Ok(())
/// # }
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    let _waiting = Waiting {
        before: WAITING.replace(true),
    };
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            // A wake between the poll and here makes `park` return at once.
            Poll::Pending => std::thread::park(),
        }
    }
}
