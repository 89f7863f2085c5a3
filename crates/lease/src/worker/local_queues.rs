//! The local queues: of all waiters of this process for the same names, one asks the backend; the
//! others queue behind it. `lease.md` 7.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

use crate::backend::{Names, WakeStream};
use crate::limits::WAITERS_MAX;
use crate::locks::lock;

/// The queues of this process, by the names that are waited for.
#[derive(Default)]
pub(super) struct LocalQueues {
    queues: Mutex<HashMap<Names, LocalQueue>>,
    /// How many there are, so that a release for which nothing waits takes no lock. A waiter counts before it asks
    /// and then sleeps, so a release that the backend runs after its refusal finds it.
    len: AtomicUsize,
}

#[derive(Clone)]
struct LocalQueue {
    /// A semaphore with one permit, given in the order of arrival.
    turn: Arc<Semaphore>,
    /// Notifies the waiter at the head that this process has released the names.
    poke: Arc<Notify>,
    /// The wake-up stream of the last head: the next one need not subscribe again.
    wake: Arc<Mutex<Option<WakeStream>>>,
    waiting: usize,
}

/// A place in a queue. Dropping it leaves the queue.
pub(super) struct Position<'a> {
    queues: &'a LocalQueues,
    names: Names,
    queue: LocalQueue,
}

impl LocalQueues {
    pub(super) fn is_contended(&self, names: &Names) -> bool {
        self.len.load(Ordering::SeqCst) > 0 && lock(&self.queues).contains_key(names)
    }

    /// Takes a place at the end of the queue; `None` when it is full.
    pub(super) fn enter(&self, names: &Names) -> Option<Position<'_>> {
        let mut queues = lock(&self.queues);
        let queue = queues.entry(names.clone()).or_insert_with(|| LocalQueue {
            turn: Arc::new(Semaphore::new(1)),
            poke: Arc::default(),
            wake: Arc::default(),
            waiting: 0,
        });
        if queue.waiting >= WAITERS_MAX {
            return None;
        }
        queue.waiting += 1;
        let queue = queue.clone();
        self.len.store(queues.len(), Ordering::SeqCst);
        Some(Position {
            queues: self,
            names: names.clone(),
            queue,
        })
    }

    /// Wakes the waiters for `names`, which this process has released.
    pub(super) fn poke(&self, names: &Names) {
        if self.len.load(Ordering::SeqCst) == 0 {
            return;
        }
        let queues = lock(&self.queues);
        if names.group().is_none() {
            if let Some(queue) = queues.get(names) {
                queue.poke.notify_one();
            }
            return;
        }
        let touched = queues.iter().filter(|(waited, _)| overlap(waited, names));
        touched.for_each(|(_, queue)| queue.poke.notify_one());
    }
}

fn overlap(a: &Names, b: &Names) -> bool {
    a.group() == b.group() && a.as_slice().iter().any(|name| b.as_slice().contains(name))
}

impl Position<'_> {
    /// Waits for the turn to ask the backend, which ends when the permit is dropped. Never fails: nothing closes it.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.queue.turn.clone().acquire_owned().await
    }

    /// Takes the wake-up stream that the head before left, if there is one.
    pub(super) fn heard(&self) -> Option<WakeStream> {
        lock(&self.queue.wake).take()
    }

    /// Leaves `wake` to the next head of the queue, if there is one.
    pub(super) fn hand_on(&self, wake: WakeStream) {
        *lock(&self.queue.wake) = Some(wake);
    }

    /// Forgets a release that was notified: the next try will see it anyway.
    pub(super) async fn forget_poke(&self) {
        tokio::select! {
            biased;
            () = self.poked() => {}
            () = std::future::ready(()) => {}
        }
    }

    /// Waits until this process has released one of the names.
    pub(super) async fn poked(&self) {
        self.queue.poke.notified().await;
    }
}

impl Drop for Position<'_> {
    fn drop(&mut self) {
        let mut queues = lock(&self.queues.queues);
        if let Some(queue) = queues.get_mut(&self.names) {
            queue.waiting = queue.waiting.saturating_sub(1);
            if queue.waiting == 0 {
                queues.remove(&self.names);
                self.queues.len.store(queues.len(), Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn names(name: &str) -> Names {
        Names::one(Name::new(name).expect("legal"))
    }

    #[test]
    fn a_line_is_bounded_and_leaves_nothing_when_it_is_empty() {
        let queues = LocalQueues::default();
        let places: Vec<_> = (0..WAITERS_MAX)
            .map(|_| queues.enter(&names("a")).expect("room"))
            .collect();
        assert!(queues.enter(&names("a")).is_none(), "one too many");
        assert!(
            queues.enter(&names("b")).is_some(),
            "another name is another queue"
        );
        assert!(queues.is_contended(&names("a")));
        drop(places);
        assert!(lock(&queues.queues).is_empty());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn turns_come_in_the_order_of_arrival() {
        let queues = LocalQueues::default();
        let enter = || queues.enter(&names("a")).expect("room");
        let (first, second) = (enter(), enter());
        let turn = first.turn().await.expect("open");
        let mut waits = Box::pin(second.turn());
        let poll =
            std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending()));
        assert!(poll.await, "two turns at once");
        drop(turn);
        drop(waits.await.expect("open"));
    }
}
