//! The state that all handles of one [`crate::Leases`] share, and the calls to its lease thread.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::Holder;
use crate::error::NotGranted;
use crate::grant::{Grant, LeaseTicket};
use crate::inbox::{AcquireParams, Command, Unclaimed};
use crate::locks::lock;
use crate::worker::Ctx;
use crate::{AcquireError, BackendError, FencingToken, ReleaseOutcome, Unsettled};

/// The state shared by every `Leases`, request and lease. Its drop ends the lease thread.
pub(crate) struct Client {
    pub(crate) ctx: Arc<Ctx>,
    pub(crate) ttl_min: Option<Duration>,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("backend", &self.ctx.facts.kind)
            .finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn send(&self, command: Command) {
        self.ctx.inbox.push(command);
    }

    pub(crate) fn ttl_min(&self) -> Duration {
        self.ttl_min.unwrap_or(self.ctx.facts.ttl_min)
    }

    /// Acquires in the caller's task on the runtime that connected, else on the lease thread.
    pub(crate) async fn acquire(&self, params: AcquireParams) -> Result<Arc<Grant>, NotGranted> {
        if let Some(here) = self.ctx.here() {
            return self.ctx.acquire_here(here, params).await;
        }
        let (to, answer) = oneshot::channel();
        self.send(Command::Acquire(Box::new(params), to));
        claimed(answer).await
    }

    pub(crate) async fn resume(&self, ticket: LeaseTicket) -> Result<Arc<Grant>, NotGranted> {
        let (to, answer) = oneshot::channel();
        self.send(Command::Resume(ticket, to));
        claimed(answer).await
    }

    /// Releases in the caller's task on the runtime that connected, else on the lease thread.
    pub(crate) async fn release(&self, grant: &Arc<Grant>) -> Result<ReleaseOutcome, Unsettled> {
        grant.give_back();
        if self.ctx.is_here() {
            return self.ctx.release_here(grant).await;
        }
        if self.ctx.is_resumed_again(grant) {
            return Ok(ReleaseOutcome::AlreadyGone);
        }
        let (settle, answer) = oneshot::channel();
        self.send(Command::Release(grant.clone(), Some(settle)));
        answer.await.unwrap_or(Err(Unsettled))
    }

    /// Blocks until the end of the lease thread, which was told to end or has ended.
    pub(crate) fn join(&self) {
        let thread = lock(&self.thread).take();
        // A panic has been reported by the hook.
        drop(thread.map(JoinHandle::join));
    }

    /// Runs `call` on the lease thread, also when this future is dropped, and waits for its answer.
    pub(crate) async fn ask<F>(
        &self,
        call: impl FnOnce(Arc<Ctx>) -> F,
    ) -> Result<F::Output, BackendError>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (to, answer) = oneshot::channel();
        let call = call(Arc::clone(&self.ctx));
        let answering = async move { drop(to.send(call.await)) };
        self.send(Command::Call(Box::pin(answering)));
        let closed = |_| BackendError::NotSent("these leases are shut down".to_owned());
        answer.await.map_err(closed)
    }
}

/// Waits for the outcome of an acquire or a resume on the lease thread.
async fn claimed(
    outcome: oneshot::Receiver<Result<Unclaimed, NotGranted>>,
) -> Result<Arc<Grant>, NotGranted> {
    let closed = || NotGranted::Failed(AcquireError::Closed);
    let granted = outcome.await.unwrap_or_else(|_| Err(closed()))?;
    granted.claim().ok_or_else(closed)
}

impl Drop for Client {
    fn drop(&mut self) {
        self.send(Command::Close);
    }
}

/// Who holds a name, without the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerInfo {
    /// The token of the grant.
    pub token: FencingToken,
    /// How long it has been held, on the backend's clock.
    pub held: Duration,
    /// Life left without renewal.
    pub remaining: Duration,
    /// Life left with all renewals; `None` if no `max_lifetime` limits it.
    pub cap: Option<Duration>,
    /// What the holder wrote into its request.
    pub meta: Vec<(String, String)>,
}

impl OwnerInfo {
    pub(crate) fn of(holder: &Holder) -> Self {
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
