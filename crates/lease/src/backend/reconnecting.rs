//! A connection that is made when it is first needed, shared while it works, and made again after
//! it broke. One attempt at a time; all that wait for it share its result. It continues without
//! them: a server that is far away is reached in the time of several calls.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::BackendError;
use crate::locks::lock;

/// After this many time-outs in a row a connection counts as broken: its server may be gone without
/// a word (lease.md 8).
const TIMEOUTS_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Reconnecting<C> {
    current: Mutex<Arc<Attempt<C>>>,
}

/// One connection, made or not yet made.
#[derive(Debug)]
pub(super) struct Attempt<C> {
    made: OnceLock<C>,
    making: Mutex<Option<Making<C>>>,
    timeouts: AtomicU32,
    /// Whether it replaces one that broke.
    replaces: bool,
}

/// The result of a connect; `None` while it is under way.
type Outcome<C> = Option<Result<C, BackendError>>;

/// A connect under way, which ends when it is dropped.
#[derive(Debug)]
struct Making<C> {
    outcome: watch::Receiver<Outcome<C>>,
    _task: JoinSet<()>,
}

impl<C> Making<C> {
    fn has_failed(&self) -> bool {
        let ended = self.outcome.has_changed().is_err();
        let outcome = self.outcome.borrow();
        matches!(&*outcome, Some(Err(_))) || ended && outcome.is_none()
    }
}

impl<C> Attempt<C> {
    fn unmade() -> Self {
        Self {
            made: OnceLock::new(),
            making: Mutex::new(None),
            timeouts: AtomicU32::new(0),
            replaces: false,
        }
    }

    /// Tells whether it replaces a connection that was given up.
    pub(super) fn replaces(&self) -> bool {
        self.replaces
    }
}

impl<C: Clone> Reconnecting<C> {
    pub(super) fn unmade() -> Self {
        let current = Mutex::new(Arc::new(Attempt::unmade()));
        Self { current }
    }

    pub(super) fn current(&self) -> Arc<Attempt<C>> {
        Arc::clone(&lock(&self.current))
    }

    /// Replaces the current connection by one that was made elsewhere.
    #[cfg(feature = "cluster")]
    pub(super) fn replace(&self, made: C) {
        let fresh = Attempt {
            made: OnceLock::from(made),
            replaces: true,
            ..Attempt::unmade()
        };
        *lock(&self.current) = Arc::new(fresh);
    }

    /// Gives up `attempt`, unless it has been replaced already, and returns whether it did. Calls
    /// in flight on it end by themselves.
    pub(super) fn give_up(&self, attempt: &Arc<Attempt<C>>) -> bool {
        let mut current = lock(&self.current);
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

impl<C: Clone + Send + Sync + 'static> Attempt<C> {
    /// Returns the connection, made by `connect` if need be. The connect outlives a dropped caller.
    pub(super) async fn get<F>(&self, connect: impl Fn() -> F) -> Result<C, BackendError>
    where
        F: Future<Output = Result<C, BackendError>> + Send + 'static,
    {
        match self.made.get() {
            Some(made) => Ok(made.clone()),
            // Boxed: each call that waits would carry the room for it.
            None => Box::pin(self.make(connect)).await,
        }
    }

    async fn make<F>(&self, connect: impl Fn() -> F) -> Result<C, BackendError>
    where
        F: Future<Output = Result<C, BackendError>> + Send + 'static,
    {
        let (is_joined, outcome) = self.making(&connect);
        let made = match ended(outcome).await {
            // It had begun before, so its time was up sooner than this caller's.
            Err(error) if is_joined && !error.is_lasting() => ended(self.making(connect).1).await,
            made => made,
        }?;
        Ok(self.made.get_or_init(|| made).clone())
    }

    /// Returns the connect under way, or starts a new one. Tells whether it was under way.
    fn making<F>(&self, connect: impl Fn() -> F) -> (bool, watch::Receiver<Outcome<C>>)
    where
        F: Future<Output = Result<C, BackendError>> + Send + 'static,
    {
        let mut making = lock(&self.making);
        making.take_if(|making| making.has_failed());
        let is_joined = making.is_some();
        let making = making.get_or_insert_with(|| {
            let (tell, outcome) = watch::channel(None);
            let (mut task, connecting) = (JoinSet::new(), connect());
            task.spawn(async move {
                tell.send_replace(Some(connecting.await));
            });
            Making {
                outcome,
                _task: task,
            }
        });
        (is_joined, making.outcome.clone())
    }

    /// Notes an answer, which resets the count of time-outs.
    pub(super) fn answered(&self) {
        if self.timeouts.load(Ordering::Relaxed) != 0 {
            self.timeouts.store(0, Ordering::Relaxed);
        }
    }

    /// Notes a time-out. Returns whether the connection counts as broken now.
    pub(super) fn timed_out(&self) -> bool {
        self.timeouts.fetch_add(1, Ordering::Relaxed) + 1 >= TIMEOUTS_MAX
    }
}

/// Waits for the result of a connect.
async fn ended<C: Clone>(mut outcome: watch::Receiver<Outcome<C>>) -> Result<C, BackendError> {
    let ended = outcome.wait_for(Option::is_some).await;
    let made = ended.ok().and_then(|outcome| outcome.clone());
    let broken_off = || BackendError::NotSent("the runtime that connects has ended".to_owned());
    made.unwrap_or_else(|| Err(broken_off()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Made = std::future::Ready<Result<u32, BackendError>>;

    fn ready(number: u32) -> Made {
        std::future::ready(Ok(number))
    }

    fn refused() -> Made {
        std::future::ready(Err(BackendError::NotSent("refused".to_owned())))
    }

    #[tokio::test]
    async fn one_connection_serves_until_it_is_given_up() {
        let held = Reconnecting::unmade();
        let first = held.current();
        assert_eq!(first.get(|| ready(1)).await, Ok(1));
        assert_eq!(held.current().get(|| ready(2)).await, Ok(1));
        assert!(held.give_up(&first));
        let again = held.give_up(&first);
        assert!(!again, "the new one must not be given up for the old one");
        assert_eq!(held.current().get(|| ready(3)).await, Ok(3));
    }

    #[tokio::test]
    async fn a_failed_attempt_is_made_again() {
        let attempt = Reconnecting::unmade().current();
        assert_eq!(attempt.get(refused).await, refused().await);
        assert_eq!(attempt.get(|| ready(1)).await, Ok(1));
    }

    #[tokio::test]
    async fn a_caller_that_joined_a_connect_that_fails_makes_another() {
        let attempt = Reconnecting::unmade().current();
        let (early, late) = tokio::join!(attempt.get(refused), attempt.get(|| ready(1)));
        assert_eq!((early, late), (refused().await, Ok(1)));
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
