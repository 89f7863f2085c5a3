//! Batches acquires and releases: those that wait at the same moment are sent in one script. A
//! batch is made only of what waits already, never by a timer, so a lone request is sent at once;
//! while calls are under way, the next batch collects. `docs/decisions/0014`.
//!
//! A caller polls only what it sends alone, because nothing else waits. Tasks of the batcher poll
//! the batches, so that a caller that is cancelled takes no answer from others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::call::{Call, Calls};
use super::keys::Shard;
use super::link::Link;
use super::reply::{self, Answer};
use super::role::ConnectionRole;
use crate::BackendError;
use crate::backend::{Acquire, Names, Release, ReleaseReply};
use crate::locks::lock;

/// Most items of one script. It bounds the time for which the server serves no other client.
const ITEMS_MAX: usize = 32;

/// Lease keys after which no further item joins a script.
const KEYS_MAX: usize = 64;

/// Most scripts under way at once to one shard: one that the server runs, one on the network. One
/// more is possible where callers poll these, because a caller may stop polling.
const UNDER_WAY_MAX: usize = 2;

/// A command that is sent in batches.
pub(super) trait Batched: Clone + Send + Sync + 'static {
    type Reply: Send + 'static;

    fn names(&self) -> &Names;

    /// Tells whether it may share a script with `first`.
    fn joins(&self, first: &Self) -> bool;

    fn call(calls: &Calls, batch: &[Self]) -> Call;

    /// Reads one reply for each item. An unknown form fails all: where the next begins is unknown.
    fn replies(value: Value, batch: &[Self]) -> Result<Vec<Self::Reply>, BackendError>;
}

impl Batched for Acquire {
    type Reply = Answer;

    fn names(&self) -> &Names {
        &self.names
    }

    fn joins(&self, first: &Self) -> bool {
        (self.ttl, self.cap, self.floor) == (first.ttl, first.cap, first.floor)
    }

    fn call(calls: &Calls, batch: &[Self]) -> Call {
        calls.grant(batch)
    }

    fn replies(value: Value, batch: &[Self]) -> Result<Vec<Answer>, BackendError> {
        reply::grants(value, batch)
    }
}

impl Batched for Release {
    type Reply = ReleaseReply;

    fn names(&self) -> &Names {
        &self.names
    }

    fn joins(&self, _: &Self) -> bool {
        true
    }

    fn call(calls: &Calls, batch: &[Self]) -> Call {
        calls.release(batch)
    }

    fn replies(value: Value, batch: &[Self]) -> Result<Vec<ReleaseReply>, BackendError> {
        reply::releases(value, batch)
    }
}

type To<R> = oneshot::Sender<Result<R, BackendError>>;

/// A batch, and the channels for the answers to its items.
type Batch<F> = (Vec<F>, Vec<To<<F as Batched>::Reply>>);

pub(super) struct Batcher<F: Batched> {
    dispatch: Arc<Dispatch<F>>,
    tasks: Mutex<JoinSet<()>>,
}

struct Dispatch<F: Batched> {
    link: Arc<Link>,
    calls: Arc<Calls>,
    within: Duration,
    /// The runtime of the tasks: that of the first call. A call may be dropped elsewhere.
    runtime: OnceLock<Handle>,
    /// The releases to send first, if any wait when a batch of these is sent.
    first: Option<Arc<Batcher<Release>>>,
    /// By shard.
    queues: Box<[Mutex<BatchQueue<F>>]>,
}

/// Items for one server, or one slot of a cluster. Its length is bounded by the callers, each of
/// which waits for one item.
struct BatchQueue<F: Batched> {
    waiting: VecDeque<(F, To<F::Reply>)>,
    /// Calls that their callers poll. One that is not polled stays counted.
    alone: usize,
    /// Runs under way. While items wait there is one that takes them, unless its runtime has ended.
    runs: usize,
    /// The last batch had several items, so more are likely to come with the next one.
    is_busy: bool,
}

impl<F: Batched> Default for BatchQueue<F> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            alone: 0,
            runs: 0,
            is_busy: false,
        }
    }
}

impl<F: Batched> BatchQueue<F> {
    fn is_free(&self) -> bool {
        self.alone + self.runs < UNDER_WAY_MAX
    }

    fn takes_alone(&self) -> bool {
        self.waiting.is_empty() && self.is_free() && !self.is_busy
    }

    /// Takes the next batch. Items whose callers are gone are left out: they were never sent.
    fn next(&mut self) -> Batch<F> {
        // Callers wait for this lock, so no vector is moved under it.
        let most = self.waiting.len().min(ITEMS_MAX);
        let mut batch = Vec::<F>::with_capacity(most);
        let (mut recipients, mut keys) = (Vec::with_capacity(most), 0);
        while let Some((item, to)) = self.waiting.pop_front() {
            if to.is_closed() {
                continue;
            }
            keys += item.names().as_slice().len();
            if let Some(first) = batch.first()
                && (keys > KEYS_MAX || !item.joins(first))
            {
                self.waiting.push_front((item, to));
                break;
            }
            batch.push(item);
            recipients.push(to);
            if batch.len() >= ITEMS_MAX {
                break;
            }
        }
        (batch, recipients)
    }
}

impl<F: Batched> Batcher<F> {
    /// Creates a batcher, which sends what waits in `first` before each batch.
    pub(super) fn new(
        link: &Arc<Link>,
        calls: &Arc<Calls>,
        within: Duration,
        first: Option<Arc<Batcher<Release>>>,
    ) -> Self {
        // On one server all shards share their calls; in a cluster a script stays in its slot.
        let shards = if link.is_one_server() {
            1
        } else {
            calls.keys.shards()
        };
        let dispatch = Arc::new(Dispatch {
            link: Arc::clone(link),
            calls: Arc::clone(calls),
            within,
            runtime: OnceLock::new(),
            first,
            queues: (0..shards).map(|_| Mutex::default()).collect(),
        });
        Self {
            dispatch,
            tasks: Mutex::default(),
        }
    }

    /// Sends `item` with the next batch, at once if none is under way. Not an `async fn`, so that the
    /// caller's future does not keep room for an item that has been handed over. Where the future is
    /// dropped before the item is sent, it is never sent; afterwards it may have run.
    pub(super) fn post(
        &self,
        item: F,
    ) -> impl Future<Output = Result<F::Reply, BackendError>> + Send + use<F> {
        let (to, answer) = oneshot::channel();
        let shard = self.dispatch.shard_of(item.names());
        if let Some(run) = self.dispatch.enqueue(shard, (item, to)) {
            self.start(run);
        }
        let broken_off = |_| Err(BackendError::Unknown("the call was broken off".to_owned()));
        async move { answer.await.unwrap_or_else(broken_off) }
    }

    /// Sends `item` from the caller's own future if it is likely to be alone, else with the next batch.
    pub(super) async fn send(&self, item: F) -> Result<F::Reply, BackendError> {
        let shard = self.dispatch.shard_of(item.names());
        if !self.dispatch.begin_alone(shard) {
            return self.post(item).await;
        }
        let alone = Alone {
            batcher: self,
            shard,
        };
        let reply = self.dispatch.send_one(&item).await;
        drop(alone);
        reply
    }

    /// Sends what waits with these names, before this returns.
    pub(super) fn flush(&self, names: &Names) {
        let shard = self.dispatch.shard_of(names);
        let Some(run) = self.dispatch.begin_waiting(shard) else {
            return;
        };
        let mut call = Box::pin(tokio::task::unconstrained(run.run()));
        let mut context = Context::from_waker(Waker::noop());
        if call.as_mut().poll(&mut context).is_pending() {
            self.spawn(call);
        }
    }

    /// Starts a run behind the tasks that are ready now, so that it finds their items queued: a worker
    /// of a runtime polls first what was spawned last.
    fn start(&self, run: BatchRun<F>) {
        self.spawn(async move {
            tokio::task::yield_now().await;
            run.run().await;
        });
    }

    fn spawn(&self, run: impl Future<Output = ()> + Send + 'static) {
        let runtime = self.dispatch.runtime.get_or_init(Handle::current);
        let mut tasks = lock(&self.tasks);
        // Removes the tasks that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(run, runtime);
    }
}

/// A call that its caller polls. When it ends, a run takes its place if anything waits.
struct Alone<'a, F: Batched> {
    batcher: &'a Batcher<F>,
    shard: Shard,
}

impl<F: Batched> Drop for Alone<'_, F> {
    fn drop(&mut self) {
        let dispatch = &self.batcher.dispatch;
        if let Some(run) = dispatch.end_alone(self.shard) {
            self.batcher.start(run);
        }
    }
}

impl<F: Batched> Dispatch<F> {
    /// Locks the queue of `shard`. Each shard has one.
    fn queue(&self, shard: Shard) -> Option<MutexGuard<'_, BatchQueue<F>>> {
        let queue = self.queues.get(usize::from(shard.index()))?;
        Some(lock(queue))
    }

    fn shard_of(&self, names: &Names) -> Shard {
        if self.link.is_one_server() {
            return Shard::default();
        }
        self.calls.keys.shard_of_names(names)
    }

    fn run(self: &Arc<Self>, shard: Shard, queue: &mut BatchQueue<F>) -> BatchRun<F> {
        queue.runs += 1;
        BatchRun {
            dispatch: Arc::clone(self),
            shard,
            has_ended: false,
        }
    }

    /// Begins a call for one item, if no other item waits or is likely to come, and not too many calls are under way.
    fn begin_alone(&self, shard: Shard) -> bool {
        // Known before the call begins: it may end where there is no runtime.
        self.runtime.get_or_init(Handle::current);
        let queue = self.queue(shard);
        let mut queue = queue.filter(|queue| queue.takes_alone());
        queue.as_mut().map(|queue| queue.alone += 1).is_some()
    }

    /// Ends a call of one item. Returns a run for what waits, if one may begin.
    fn end_alone(self: &Arc<Self>, shard: Shard) -> Option<BatchRun<F>> {
        let mut queue = self.queue(shard)?;
        queue.alone = queue.alone.saturating_sub(1);
        let begins = !queue.waiting.is_empty() && queue.is_free();
        begins.then(|| self.run(shard, &mut queue))
    }

    /// Begins a run for what waits, however many are under way; `None` if nothing waits.
    fn begin_waiting(self: &Arc<Self>, shard: Shard) -> Option<BatchRun<F>> {
        let mut queue = self.queue(shard)?;
        let waits = !queue.waiting.is_empty();
        waits.then(|| self.run(shard, &mut queue))
    }

    /// Puts an item into its queue. Returns a new run if one may begin.
    fn enqueue(self: &Arc<Self>, shard: Shard, item: (F, To<F::Reply>)) -> Option<BatchRun<F>> {
        let mut queue = self.queue(shard)?;
        queue.waiting.push_back(item);
        // A run that takes the items before it takes this one along.
        let is_first = queue.waiting.len() == 1;
        let begins = queue.runs == 0 || is_first && queue.is_free();
        begins.then(|| self.run(shard, &mut queue))
    }

    async fn send_batch(&self, batch: &[F]) -> Vec<Result<F::Reply, BackendError>> {
        match self.ask(batch).await {
            Ok(replies) => replies.into_iter().map(Ok).collect(),
            Err(error) if batch.len() > 1 && is_of_neighbours(&error) => {
                let mut replies = Vec::with_capacity(batch.len());
                for item in batch {
                    replies.push(self.send_one(item).await);
                }
                replies
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn send_one(&self, item: &F) -> Result<F::Reply, BackendError> {
        let replies = self.ask(std::slice::from_ref(item)).await?;
        replies.into_iter().next().ok_or_else(reply::odd)
    }

    async fn ask(&self, batch: &[F]) -> Result<Vec<F::Reply>, BackendError> {
        if let (Some(first), Some(item)) = (&self.first, batch.first()) {
            first.flush(item.names());
        }
        let call = F::call(&self.calls, batch);
        let answer = self.link.run(&call, ConnectionRole::Main, self.within);
        F::replies(answer.await?, batch)
    }
}

/// Tells whether other items of the batch caused the refusal. In a slot that is being moved, a
/// server refuses a call of which it lacks some keys; an item alone may have all keys in one shard.
fn is_of_neighbours(error: &BackendError) -> bool {
    matches!(error, BackendError::Rejected { code, .. } if code == "TRYAGAIN")
}

/// Sends batches of one shard as long as items are waiting.
struct BatchRun<F: Batched> {
    dispatch: Arc<Dispatch<F>>,
    shard: Shard,
    has_ended: bool,
}

impl<F: Batched> BatchRun<F> {
    async fn run(mut self) {
        while let Some((batch, recipients)) = self.next() {
            let replies = self.dispatch.send_batch(&batch).await;
            for (to, reply) in recipients.into_iter().zip(replies) {
                // Fails when the caller is gone, which then releases by owner.
                drop(to.send(reply));
            }
        }
    }

    /// Takes the next batch. If there is none the run has ended, under the same lock: the next item
    /// begins another.
    fn next(&mut self) -> Option<Batch<F>> {
        let mut queue = self.dispatch.queue(self.shard)?;
        let (batch, recipients) = queue.next();
        if batch.is_empty() {
            queue.runs = queue.runs.saturating_sub(1);
            self.has_ended = true;
            return None;
        }
        queue.is_busy = batch.len() > 1;
        Some((batch, recipients))
    }
}

impl<F: Batched> Drop for BatchRun<F> {
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(mut queue) = self.dispatch.queue(self.shard)
        {
            queue.runs = queue.runs.saturating_sub(1);
        }
    }
}
