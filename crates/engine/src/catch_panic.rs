//! Panics end only the work that they come from: tasks of the engine go on.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Waits for the work; `None` when it panicked. What it changed may then be half done.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        if let Ok(polled) = polled {
            return polled.map(Some);
        }
        // The panic hook has told where and why.
        tracing::error!("a task of the engine panicked and goes on");
        Poll::Ready(None)
    })
    .await
}
