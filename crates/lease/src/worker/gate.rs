//! The local gate: of all that wait in this process for the same names, one asks the backend; the
//! others stand in line behind it. `lease.md` 7.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};

use crate::backend::{Names, WakeStream};
use crate::limits::WAITERS_MAX;

/// The lines of this process.
#[derive(Default)]
pub(super) struct Gate {
    lines: Mutex<HashMap<Names, Line>>,
}

#[derive(Clone)]
struct Line {
    /// One permit, given in the order of arrival.
    turn: Arc<Semaphore>,
    /// Tells the waiter at the head that this process has released the names.
    poke: Arc<Notify>,
    /// What the last head listened to: the next one need not subscribe anew.
    wake: Arc<Mutex<Option<WakeStream>>>,
    waiting: usize,
}

/// A place in a line. Dropping it leaves the line.
pub(super) struct Place<'a> {
    gate: &'a Gate,
    names: Names,
    line: Line,
}

/// The line is as long as it may be.
#[derive(Debug)]
pub(super) struct Full;

impl Gate {
    fn lines(&self) -> MutexGuard<'_, HashMap<Names, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anyone waits for `names`.
    pub(super) fn is_contended(&self, names: &Names) -> bool {
        let lines = self.lines();
        !lines.is_empty() && lines.contains_key(names)
    }

    /// Takes a place at the end.
    pub(super) fn enter(&self, names: &Names) -> Result<Place<'_>, Full> {
        let mut lines = self.lines();
        let line = lines.entry(names.clone()).or_insert_with(|| Line {
            turn: Arc::new(Semaphore::new(1)),
            poke: Arc::default(),
            wake: Arc::default(),
            waiting: 0,
        });
        if line.waiting >= WAITERS_MAX {
            return Err(Full);
        }
        line.waiting += 1;
        Ok(Place {
            gate: self,
            names: names.clone(),
            line: line.clone(),
        })
    }

    /// This process has released `names`: whoever waits for one of them may ask at once.
    pub(super) fn poke(&self, names: &Names) {
        let lines = self.lines();
        if lines.is_empty() {
            return;
        }
        if names.group().is_none() {
            if let Some(line) = lines.get(names) {
                line.poke.notify_one();
            }
            return;
        }
        let touched = lines.iter().filter(|(waited, _)| overlap(waited, names));
        touched.for_each(|(_, line)| line.poke.notify_one());
    }
}

fn overlap(a: &Names, b: &Names) -> bool {
    a.group() == b.group() && a.as_slice().iter().any(|name| b.as_slice().contains(name))
}

impl Place<'_> {
    /// Waits for the turn to ask the backend, which lasts as long as the permit.
    ///
    /// # Errors
    /// Never: the semaphore is not closed.
    pub(super) async fn turn(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.line.turn.clone().acquire_owned().await
    }

    /// What the head before this one listened to.
    pub(super) fn heard(&self) -> Option<WakeStream> {
        self.wake().take()
    }

    /// Leaves `wake` to the next head of the line, if there is one.
    pub(super) fn hand_on(&self, wake: WakeStream) {
        *self.wake() = Some(wake);
    }

    fn wake(&self) -> MutexGuard<'_, Option<WakeStream>> {
        self.line
            .wake
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a release that the next try will see anyway.
    pub(super) async fn forget_poke(&self) {
        tokio::select! {
            biased;
            () = self.poked() => {}
            () = std::future::ready(()) => {}
        }
    }

    /// Waits until this process has released one of the names.
    pub(super) async fn poked(&self) {
        self.line.poke.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.gate.lines();
        if let Some(line) = lines.get_mut(&self.names) {
            line.waiting = line.waiting.saturating_sub(1);
            if line.waiting == 0 {
                lines.remove(&self.names);
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
        let gate = Gate::default();
        let places: Vec<_> = (0..WAITERS_MAX)
            .map(|_| gate.enter(&names("a")).expect("room"))
            .collect();
        assert!(gate.enter(&names("a")).is_err(), "one too many");
        assert!(
            gate.enter(&names("b")).is_ok(),
            "another name is another line"
        );
        assert!(gate.is_contended(&names("a")));
        drop(places);
        assert!(gate.lines().is_empty());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn turns_come_in_the_order_of_arrival() {
        let gate = Gate::default();
        let (first, second) = (
            gate.enter(&names("a")).expect("room"),
            gate.enter(&names("a")).expect("room"),
        );
        let turn = first.turn().await.expect("open");
        let mut waits = Box::pin(second.turn());
        let poll =
            std::future::poll_fn(|cx| std::task::Poll::Ready(waits.as_mut().poll(cx).is_pending()));
        assert!(poll.await, "two turns at once");
        drop(turn);
        drop(waits.await.expect("open"));
    }
}
