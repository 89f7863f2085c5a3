//! Where the answers to single items of a script go: to a caller who waits for this one, or to the
//! desk of a batch of callers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::BackendError;

/// Takes the answers to the items of one batch of callers, which are known by their place in it.
pub(super) trait Desk<R>: Send + Sync + 'static {
    /// Whether anybody waits for this answer.
    fn is_awaited(&self, index: usize) -> bool;

    fn take(&self, index: usize, answer: Result<R, BackendError>);
}

/// Who gets the answer to an item.
pub(super) enum To<R: 'static> {
    Caller(oneshot::Sender<Result<R, BackendError>>),
    Desk(Seat<R>),
}

impl<R: 'static> To<R> {
    /// A place at `desk`.
    pub(super) fn seat(desk: &Arc<dyn Desk<R>>, index: usize) -> Self {
        let desk = Some(Arc::clone(desk));
        To::Desk(Seat { desk, index })
    }

    /// Whether nobody waits for the answer any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            To::Caller(to) => to.is_closed(),
            To::Desk(seat) => !seat.is_awaited(),
        }
    }

    pub(super) fn send(self, answer: Result<R, BackendError>) {
        match self {
            // Fails when the caller has gone away, who then releases by owner.
            To::Caller(to) => drop(to.send(answer)),
            To::Desk(mut seat) => seat.take(answer),
        }
    }
}

/// One place at a desk. It is answered even if nobody comes to do it.
pub(super) struct Seat<R: 'static> {
    /// `None` once it has its answer.
    desk: Option<Arc<dyn Desk<R>>>,
    index: usize,
}

impl<R: 'static> Seat<R> {
    fn is_awaited(&self) -> bool {
        let desk = self.desk.as_ref();
        desk.is_some_and(|desk| desk.is_awaited(self.index))
    }

    fn take(&mut self, answer: Result<R, BackendError>) {
        if let Some(desk) = self.desk.take() {
            desk.take(self.index, answer);
        }
    }
}

impl<R: 'static> Drop for Seat<R> {
    fn drop(&mut self) {
        if self.desk.is_some() {
            self.take(Err(broken_off()));
        }
    }
}

fn broken_off() -> BackendError {
    BackendError::Unknown("the call was broken off".to_owned())
}

/// The answer to an item, as a future. Dropped before the item is sent, it is never sent;
/// afterwards it may have run.
pub(super) struct Posted<R>(oneshot::Receiver<Result<R, BackendError>>);

impl<R> Posted<R> {
    pub(super) fn channel() -> (To<R>, Self) {
        let (to, answer) = oneshot::channel();
        (To::Caller(to), Self(answer))
    }
}

impl<R> Future for Posted<R> {
    type Output = Result<R, BackendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|answer| answer.unwrap_or_else(|_| Err(broken_off())))
    }
}
