//! A backend that fails on request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use crate::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Names, Release, ReleaseReply,
    Renew, RenewReply, WakeStream,
};
use crate::locks::lock;
use crate::{BackendError, Clock, Name};

/// The commands that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// [`Backend::acquire`].
    Acquire,
    /// [`Backend::renew`].
    Renew,
    /// [`Backend::release`].
    Release,
}

/// What to do to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It never arrives, and its outcome is `Unknown`.
    LoseRequest,
    /// It runs, and its answer never comes, as when the connection breaks.
    LoseReply,
    /// It runs, and its answer comes this much later.
    DelayReply(Duration),
    /// It arrives twice, and the second answer is returned.
    Double,
    /// It never arrives, and is reported as not sent.
    NotSent,
    /// Its outcome is `Unknown`; it waits in a buffer until [`FaultyBackend::deliver`].
    Buffer,
}

/// A backend around another one, which applies faults to its commands on request.
pub struct FaultyBackend {
    inner: Mutex<Arc<dyn Backend>>,
    clock: Arc<dyn Clock>,
    plan: Mutex<Plan>,
    paused: watch::Sender<bool>,
}

#[derive(Default)]
struct Plan {
    faults: VecDeque<(Op, Fault)>,
    buffer: Vec<Buffered>,
    calls: Vec<Op>,
}

enum Buffered {
    Acquire(Acquire),
    Renew(Vec<Renew>),
    Release(Vec<Release>),
}

impl std::fmt::Debug for FaultyBackend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyBackend").finish_non_exhaustive()
    }
}

impl FaultyBackend {
    /// Wraps `inner`, which gets all commands unless a fault is planned. Delays count by `clock`.
    pub fn around(inner: Arc<dyn Backend>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::new(inner),
            clock,
            plan: Mutex::default(),
            paused: watch::Sender::new(false),
        })
    }

    /// Applies `fault` to the next `op` that has no fault yet.
    pub fn next(&self, op: Op, fault: Fault) {
        lock(&self.plan).faults.push_back((op, fault));
    }

    /// Lets every command hang before it arrives, until [`FaultyBackend::resume`].
    pub fn pause(&self) {
        self.paused.send_replace(true);
    }

    /// Ends a pause: commands that hang continue.
    pub fn resume(&self) {
        self.paused.send_replace(false);
    }

    /// Replaces the wrapped backend, as a restart or a failover does.
    pub fn replace(&self, inner: Arc<dyn Backend>) {
        *lock(&self.inner) = inner;
    }

    /// Delivers the commands in the buffer, oldest first.
    pub async fn deliver(&self) {
        let buffer = std::mem::take(&mut lock(&self.plan).buffer);
        let inner = self.inner();
        for command in buffer {
            match command {
                Buffered::Acquire(command) => drop(inner.acquire(&command).await),
                Buffered::Renew(batch) => drop(inner.renew(&batch).await),
                Buffered::Release(batch) => drop(inner.release(&batch).await),
            }
        }
    }

    /// Counts the calls of `op` so far, failed ones included.
    pub fn calls(&self, op: Op) -> usize {
        let plan = lock(&self.plan);
        plan.calls.iter().filter(|call| **call == op).count()
    }

    fn inner(&self) -> Arc<dyn Backend> {
        lock(&self.inner).clone()
    }

    /// Counts the call, waits out a pause, and takes the fault planned for it, if any.
    async fn begin(&self, op: Op) -> Option<Fault> {
        lock(&self.plan).calls.push(op);
        let mut paused = self.paused.subscribe();
        // Fails only when the sender is gone, and that is in `self`.
        paused.wait_for(|paused| !paused).await.ok();
        let mut plan = lock(&self.plan);
        let at = plan.faults.iter().position(|(of, _)| *of == op)?;
        plan.faults.remove(at).map(|(_, fault)| fault)
    }

    /// Applies `fault` to a command; `run` runs it once.
    async fn suffer<T, F>(
        &self,
        fault: Option<Fault>,
        buffered: impl FnOnce() -> Buffered,
        run: impl Fn() -> F,
    ) -> Result<T, BackendError>
    where
        F: Future<Output = T>,
    {
        match fault {
            None => Ok(run().await),
            Some(Fault::LoseRequest) => Err(unknown()),
            Some(Fault::LoseReply) => {
                drop(run().await);
                Err(unknown())
            }
            Some(Fault::DelayReply(span)) => {
                let reply = run().await;
                self.clock.sleep_until(self.clock.boot().plus(span)).await;
                Ok(reply)
            }
            Some(Fault::Double) => {
                drop(run().await);
                Ok(run().await)
            }
            Some(Fault::NotSent) => Err(BackendError::NotSent("no connection".to_owned())),
            Some(Fault::Buffer) => {
                lock(&self.plan).buffer.push(buffered());
                Err(unknown())
            }
        }
    }
}

fn unknown() -> BackendError {
    BackendError::Unknown("the connection broke".to_owned())
}

impl Backend for FaultyBackend {
    fn facts(&self) -> Facts {
        self.inner().facts()
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async {
            let fault = self.begin(Op::Acquire).await;
            let inner = self.inner();
            let buffered = || Buffered::Acquire(command.clone());
            let reply = self.suffer(fault, buffered, || inner.acquire(command));
            reply.await.unwrap_or_else(AcquireReply::Failed)
        })
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let fault = self.begin(Op::Renew).await;
            let inner = self.inner();
            let buffered = || Buffered::Renew(batch.to_vec());
            let replies = self.suffer(fault, buffered, || inner.renew(batch)).await;
            replies.unwrap_or_else(|error| vec![RenewReply::Failed(error); batch.len()])
        })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(async move {
            let fault = self.begin(Op::Release).await;
            let inner = self.inner();
            let buffered = || Buffered::Release(batch.to_vec());
            let replies = self.suffer(fault, buffered, || inner.release(batch)).await;
            replies.unwrap_or_else(|error| vec![ReleaseReply::Failed(error); batch.len()])
        })
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(async move { self.inner().inspect(group, name).await })
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(async move { self.inner().wake(names).await })
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(async move { self.inner().doctor().await })
    }
}
