//! What callers share: the way to the lease thread, and what can be read without asking it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use super::OwnerInfo;
use crate::backend::{Facts, Holder};
use crate::notice::Notices;
use crate::worker::{Command, Inbox, Where};
use crate::{
    BackendError, BootTime, Clock, Entropy, FencingToken, Name, ReleaseOutcome, Stats, request,
};

/// Kept by every `Locks`, request and lease. Its drop tells the thread that nobody can ask any more.
pub(crate) struct Door {
    pub(super) inbox: Arc<Inbox>,
    pub(super) facts: Facts,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) notices: Notices,
    pub(super) ttl_min: Option<Duration>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door")
            .field("backend", &self.facts.kind)
            .finish_non_exhaustive()
    }
}

impl Door {
    /// Hands over a command. After the end it is dropped, and whoever waits for its answer sees
    /// that none comes.
    pub(crate) fn send(&self, command: Command) {
        drop(self.inbox.push(command));
    }

    pub(crate) fn facts(&self) -> Facts {
        self.facts
    }

    pub(crate) fn ttl_min(&self) -> Duration {
        self.ttl_min
            .unwrap_or_else(|| request::ttl_min(&self.facts))
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.entropy
    }

    pub(crate) fn now(&self) -> BootTime {
        self.clock.boot()
    }

    pub(super) fn notices(&self) -> &Notices {
        &self.notices
    }

    pub(super) fn stats(&self) -> Stats {
        self.notices.counters().read()
    }

    /// Waits for the end of the thread, which has told that it ends.
    pub(super) fn join(&self) {
        let thread = self.thread.lock();
        let thread = thread.unwrap_or_else(PoisonError::into_inner).take();
        // A panic has been reported by the hook.
        drop(thread.map(JoinHandle::join));
    }

    pub(crate) async fn inspect(&self, place: Where) -> Result<Option<OwnerInfo>, BackendError> {
        let (to, answer) = oneshot::channel();
        self.send(Command::Inspect(place, to));
        let holder = answer.await.unwrap_or_else(|_| Err(closed()))?;
        Ok(holder.as_ref().map(OwnerInfo::of))
    }

    pub(crate) async fn force_release(
        &self,
        place: Where,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        tracing::warn!(name = %place.name, token = %expect, why, "lease released by force");
        let (to, answer) = oneshot::channel();
        self.send(Command::ForceRelease(place, expect, to));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.send(Command::Close);
    }
}

impl OwnerInfo {
    fn of(holder: &Holder) -> Self {
        let lines = holder.meta.split(';').filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            Some((key.to_owned(), value.to_owned()))
        });
        Self {
            token: holder.token,
            held: holder.held,
            remaining: holder.remaining,
            cap: holder.cap,
            meta: lines.collect(),
        }
    }
}

impl Where {
    pub(super) fn alone(name: &Name) -> Self {
        Self {
            group: None,
            name: name.clone(),
        }
    }
}

fn closed() -> BackendError {
    BackendError::NotSent("these locks are shut down".to_owned())
}
