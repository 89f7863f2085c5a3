//! Batches acquires and releases: those that wait at the same moment go in one
//! script. A batch forms only from what waits already, never by a timer, so a lone request goes at
//! once; while calls are under way, the next batch gathers. `docs/decisions/0014`.
//!
//! A caller drives only what it sends alone, because nothing else waits. Tasks of the batcher drive the
//! batches, so that a caller that goes away takes no answer from others.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
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

/// Most items of one script. It bounds the time for which the server serves no other client.
const ITEMS_MAX: usize = 32;

/// Lease keys after which no further item joins a script.
const KEYS_MAX: usize = 64;

/// Scripts under way at once to one shard: one that the server runs, one on the network.
const UNDER_WAY_MAX: usize = 2;

/// A command that is sent in batches.
pub(super) trait Batched: Clone + Send + Sync + 'static {
    /// What the server answers to one item.
    type Reply: Send + 'static;

    fn names(&self) -> &Names;

    /// Whether it may share a script with `first`.
    fn joins(&self, first: &Self) -> bool;

    fn call(calls: &Calls, batch: &[Self]) -> Call;

    /// One reply for each item of `batch`.
    fn replies(value: Value, batch: &[Self]) -> Vec<Result<Self::Reply, BackendError>>;
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

    fn replies(value: Value, batch: &[Self]) -> Vec<Result<Answer, BackendError>> {
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

    fn replies(value: Value, batch: &[Self]) -> Vec<Result<ReleaseReply, BackendError>> {
        reply::releases(value, batch)
    }
}

/// Who gets the answer to an item.
type To<R> = oneshot::Sender<Result<R, BackendError>>;

/// The answer to an item. Dropped before the item is sent, it is never sent; afterwards it may
/// have run.
pub(super) struct Pending<R>(oneshot::Receiver<Result<R, BackendError>>);

impl<R> Future for Pending<R> {
    type Output = Result<R, BackendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let broken_off = || BackendError::Unknown("the call was broken off".to_owned());
        let answer = Pin::new(&mut self.0).poll(cx);
        answer.map(|answer| answer.unwrap_or_else(|_| Err(broken_off())))
    }
}

/// A batch, and who gets the answers to its items.
type Batch<F> = (Vec<F>, Vec<To<<F as Batched>::Reply>>);

pub(super) struct Batcher<F: Batched> {
    dispatch: Arc<Dispatch<F>>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the tasks share.
struct Dispatch<F: Batched> {
    link: Arc<Link>,
    calls: Arc<Calls>,
    within: Duration,
    /// Where the tasks run: the runtime of the first call. A call may be dropped elsewhere.
    runtime: OnceLock<Handle>,
    /// Whose items are sent first, if any wait when a batch of these is sent.
    first: Option<Arc<Batcher<Release>>>,
    queues: Mutex<HashMap<Shard, BatchQueue<F>>>,
}

/// Items for one server, or one slot of a cluster. Its length is bounded by the callers, each of
/// which waits for one item.
struct BatchQueue<F: Batched> {
    waiting: VecDeque<(F, To<F::Reply>)>,
    under_way: usize,
}

impl<F: Batched> Default for BatchQueue<F> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            under_way: 0,
        }
    }
}

impl<F: Batched> BatchQueue<F> {
    /// The next batch. Items whose callers have gone away are left out: they were never sent.
    fn next(&mut self) -> Batch<F> {
        let (mut batch, mut recipients, mut keys) = (Vec::<F>::new(), Vec::new(), 0);
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
    /// Sends what waits in `first` before each batch.
    pub(super) fn new(
        link: &Arc<Link>,
        calls: &Arc<Calls>,
        within: Duration,
        first: Option<Arc<Batcher<Release>>>,
    ) -> Self {
        let dispatch = Arc::new(Dispatch {
            link: Arc::clone(link),
            calls: Arc::clone(calls),
            within,
            runtime: OnceLock::new(),
            first,
            queues: Mutex::default(),
        });
        Self {
            dispatch,
            tasks: Mutex::default(),
        }
    }

    /// Sends `item` with the next batch, at once if none is under way. Not an `async fn`, so that the
    /// caller's future does not keep room for an item that has been handed over.
    pub(super) fn post(&self, item: F) -> Pending<F::Reply> {
        let (to, answer) = oneshot::channel();
        let shard = self.dispatch.shard_of(item.names());
        if let Some(run) = self.dispatch.enqueue(shard, (item, to)) {
            self.start(run);
        }
        Pending(answer)
    }

    /// Sends `item` from the caller's own future if nothing waits, else with the next batch.
    pub(super) async fn send(&self, item: F) -> Result<F::Reply, BackendError> {
        let shard = self.dispatch.shard_of(item.names());
        let Some(run) = self.dispatch.begin_alone(shard) else {
            return self.post(item).await;
        };
        let alone = Alone {
            batcher: self,
            run: Some(run),
        };
        let reply = self.dispatch.send_one(&item, ConnectionRole::Main).await;
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

    fn start(&self, run: BatchRun<F>) {
        self.spawn(run.run());
    }

    fn spawn(&self, run: impl Future<Output = ()> + Send + 'static) {
        let runtime = self.dispatch.runtime.get_or_init(Handle::current);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that have ended.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(run, runtime);
    }
}

/// A call that its caller drives. When it ends, what has gathered meanwhile goes on in a run.
struct Alone<'a, F: Batched> {
    batcher: &'a Batcher<F>,
    run: Option<BatchRun<F>>,
}

impl<F: Batched> Drop for Alone<'_, F> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take()
            && run.has_work()
        {
            self.batcher.start(run);
        }
    }
}

impl<F: Batched> Dispatch<F> {
    fn queues(&self) -> MutexGuard<'_, HashMap<Shard, BatchQueue<F>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On one server all shards share their calls; in a cluster a script stays in its slot.
    fn shard_of(&self, names: &Names) -> Shard {
        if self.link.is_one_server() {
            return Shard::default();
        }
        self.calls.keys.shard_of_names(names)
    }

    fn run(self: &Arc<Self>, shard: Shard) -> BatchRun<F> {
        BatchRun {
            dispatch: Arc::clone(self),
            shard,
            has_ended: false,
        }
    }

    /// A run for one call of its own, if nothing waits for it to end.
    fn begin_alone(self: &Arc<Self>, shard: Shard) -> Option<BatchRun<F>> {
        // Known before the call begins: it may end where there is no runtime.
        self.runtime.get_or_init(Handle::current);
        let mut queues = self.queues();
        let queue = queues.entry(shard).or_default();
        if !queue.waiting.is_empty() || queue.under_way >= UNDER_WAY_MAX {
            return None;
        }
        queue.under_way += 1;
        Some(self.run(shard))
    }

    /// A run for what waits, however many are under way.
    fn begin_waiting(self: &Arc<Self>, shard: Shard) -> Option<BatchRun<F>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(&shard)?;
        if queue.waiting.is_empty() {
            return None;
        }
        queue.under_way += 1;
        Some(self.run(shard))
    }

    /// Puts an item into its queue. Returns a new run if one may begin.
    fn enqueue(self: &Arc<Self>, shard: Shard, item: (F, To<F::Reply>)) -> Option<BatchRun<F>> {
        let mut queues = self.queues();
        let queue = queues.entry(shard).or_default();
        queue.waiting.push_back(item);
        // A run that takes the items before it takes this one along.
        let may_begin = queue.waiting.len() == 1 && queue.under_way < UNDER_WAY_MAX;
        if !may_begin && queue.under_way > 0 {
            return None;
        }
        queue.under_way += 1;
        Some(self.run(shard))
    }

    fn send_first(&self, batch: &[F]) {
        if let (Some(first), Some(item)) = (&self.first, batch.first()) {
            first.flush(item.names());
        }
    }

    async fn send_batch(
        &self,
        batch: &[F],
        role: ConnectionRole,
    ) -> Vec<Result<F::Reply, BackendError>> {
        self.send_first(batch);
        let call = F::call(&self.calls, batch);
        match self.link.run(&call, role, self.within).await {
            Ok(value) => F::replies(value, batch),
            Err(error) if batch.len() > 1 && is_of_neighbours(&error) => {
                let mut replies = Vec::with_capacity(batch.len());
                for item in batch {
                    replies.push(self.send_one(item, role).await);
                }
                replies
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn send_one(&self, item: &F, role: ConnectionRole) -> Result<F::Reply, BackendError> {
        let batch = std::slice::from_ref(item);
        self.send_first(batch);
        let call = F::call(&self.calls, batch);
        let value = self.link.run(&call, role, self.within).await?;
        let odd = || BackendError::Unknown("the answer has an unknown form".to_owned());
        let replies = F::replies(value, batch);
        replies.into_iter().next().unwrap_or_else(|| Err(odd()))
    }
}

/// In a slot that is being moved, a server refuses a call of which it has some keys and lacks
/// others. An item alone may have all of its keys in one shard.
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
    /// It begins after all tasks that were ready before it, so their items are in the queue.
    async fn run(mut self) {
        while let Some((batch, recipients)) = self.next() {
            let replies = self.dispatch.send_batch(&batch, ConnectionRole::Main).await;
            for (to, reply) in recipients.into_iter().zip(replies) {
                // Fails when the caller has gone away, who then releases by owner.
                drop(to.send(reply));
            }
        }
    }

    fn has_work(&self) -> bool {
        let queues = self.dispatch.queues();
        let queue = queues.get(&self.shard);
        queue.is_some_and(|queue| !queue.waiting.is_empty())
    }

    /// Takes the next batch. With none the run has ended, under the same lock: the next item
    /// begins another.
    fn next(&mut self) -> Option<Batch<F>> {
        let mut queues = self.dispatch.queues();
        let queue = queues.get_mut(&self.shard)?;
        let (batch, recipients) = queue.next();
        if batch.is_empty() {
            queue.under_way = queue.under_way.saturating_sub(1);
            self.has_ended = true;
            return None;
        }
        Some((batch, recipients))
    }
}

impl<F: Batched> Drop for BatchRun<F> {
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(queue) = self.dispatch.queues().get_mut(&self.shard)
        {
            queue.under_way = queue.under_way.saturating_sub(1);
        }
    }
}
