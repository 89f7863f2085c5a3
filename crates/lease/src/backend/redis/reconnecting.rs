//! A connection that is made when it is first needed, shared while it works, and made again after
//! it broke. One attempt at a time; all that wait for it share its result.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

/// After so many timeouts in a row a connection counts as broken: its other end may be gone
/// without a word (lease.md 8).
const TIMEOUTS_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Reconnecting<C> {
    current: Mutex<Arc<Attempt<C>>>,
}

/// One connection, made or about to be.
#[derive(Debug)]
pub(super) struct Attempt<C> {
    made: OnceCell<C>,
    timeouts: AtomicU32,
    /// It takes the place of one that broke.
    replaces: bool,
}

impl<C> Attempt<C> {
    fn unmade() -> Self {
        Self {
            made: OnceCell::new(),
            timeouts: AtomicU32::new(0),
            replaces: false,
        }
    }

    /// Whether another connection was given up for it.
    pub(super) fn replaces(&self) -> bool {
        self.replaces
    }
}

impl<C: Clone> Reconnecting<C> {
    pub(super) fn unmade() -> Self {
        let current = Mutex::new(Arc::new(Attempt::unmade()));
        Self { current }
    }

    /// The attempt that is current now.
    pub(super) fn current(&self) -> Arc<Attempt<C>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Puts a connection that was made elsewhere in the place of the current one.
    #[cfg(feature = "cluster")]
    pub(super) fn replace(&self, made: C) {
        let fresh = Attempt {
            made: OnceCell::new_with(Some(made)),
            replaces: true,
            ..Attempt::unmade()
        };
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
    }

    /// Gives up `attempt`, unless another took its place already. Calls in flight on it end by
    /// themselves. Answers whether it was this call that gave it up.
    pub(super) fn give_up(&self, attempt: &Arc<Attempt<C>>) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = Arc::ptr_eq(&current, attempt);
        if is_current {
            *current = Arc::new(Attempt {
                replaces: true,
                ..Attempt::unmade()
            });
        }
        is_current
    }
}

impl<C: Clone> Attempt<C> {
    /// The connection, made by `connect` if it is not yet. When the caller who makes it goes away,
    /// the next one takes over.
    pub(super) async fn get<E>(&self, connect: impl Future<Output = Result<C, E>>) -> Result<C, E> {
        match self.made.get() {
            Some(made) => Ok(made.clone()),
            None => self.made.get_or_try_init(|| connect).await.cloned(),
        }
    }

    /// An answer came.
    pub(super) fn answered(&self) {
        if self.timeouts.load(Ordering::Relaxed) != 0 {
            self.timeouts.store(0, Ordering::Relaxed);
        }
    }

    /// No answer came in time. Tells whether the connection counts as broken now.
    pub(super) fn timed_out(&self) -> bool {
        self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(number: u32) -> std::future::Ready<Result<u32, ()>> {
        std::future::ready(Ok(number))
    }

    #[tokio::test]
    async fn one_connection_serves_until_it_is_given_up() {
        let held = Reconnecting::unmade();
        let first = held.current();
        assert_eq!(first.get(ready(1)).await, Ok(1));
        assert_eq!(held.current().get(ready(2)).await, Ok(1));
        assert!(held.give_up(&first));
        assert!(
            !held.give_up(&first),
            "the new one must not be given up for the old one"
        );
        assert_eq!(held.current().get(ready(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_failed_attempt_is_made_again() {
        let attempt = Reconnecting::unmade().current();
        assert_eq!(attempt.get(async { Err("refused") }).await, Err("refused"));
        assert_eq!(attempt.get(async { Ok::<_, &str>(1) }).await, Ok(1));
    }

    #[test]
    fn two_timeouts_in_a_row_break_it_and_an_answer_between_does_not() {
        let attempt = Reconnecting::<u32>::unmade().current();
        assert!(!attempt.timed_out());
        attempt.answered();
        assert!(!attempt.timed_out());
        assert!(attempt.timed_out());
    }
}
