//! Carries acquires and releases to the server: those that wait at the same moment go in one
//! script. A batch forms only from what waits already, never by a timer, so a lone request goes at
//! once; while calls are under way, the next batch gathers. `docs/decisions/0014`.
//!
//! The callers do not drive a batch, tasks of its own do: a caller who goes away takes no answer
//! from his neighbours.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::Value;
use tokio::task::JoinSet;

use super::call::{Call, Calls};
use super::desk::{Desk, Posted, To};
use super::keys::{Keyspace, Shard};
use super::link::{Lane, Link};
use super::reply::{self, Answer};
use super::script::Scripts;
use crate::BackendError;
use crate::backend::{Acquire, Names, Release, ReleaseReply};

/// Most items of one script. It bounds the time in which the server serves nobody else.
const ITEMS_MAX: usize = 32;

/// Lease keys after which no further item joins a script.
const KEYS_MAX: usize = 64;

/// Scripts under way at once to one place: one that the server runs, one that travels.
const UNDER_WAY_MAX: usize = 2;

/// What travels in batches.
pub(super) trait Freight: Clone + Send + Sync + 'static {
    /// What the server answers to one item.
    type Reply: Send + 'static;

    fn names(&self) -> &Names;

    fn call(calls: Calls<'_>, batch: &[Self]) -> Call;

    /// One reply for each item of `batch`.
    fn replies(value: Value, batch: &[Self]) -> Vec<Result<Self::Reply, BackendError>>;
}

impl Freight for Acquire {
    type Reply = Answer;

    fn names(&self) -> &Names {
        &self.names
    }

    fn call(calls: Calls<'_>, batch: &[Self]) -> Call {
        calls.acquire(batch)
    }

    fn replies(value: Value, batch: &[Self]) -> Vec<Result<Answer, BackendError>> {
        reply::acquires(value, batch)
    }
}

impl Freight for Release {
    type Reply = ReleaseReply;

    fn names(&self) -> &Names {
        &self.names
    }

    fn call(calls: Calls<'_>, batch: &[Self]) -> Call {
        calls.release(batch)
    }

    fn replies(value: Value, batch: &[Self]) -> Vec<Result<ReleaseReply, BackendError>> {
        reply::releases(value, batch)
    }
}

/// A batch, and who gets the answers to its items.
type Batch<F> = (Vec<F>, Vec<To<<F as Freight>::Reply>>);

pub(super) struct Courier<F: Freight> {
    route: Arc<Route<F>>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the tasks share.
struct Route<F: Freight> {
    link: Arc<Link>,
    keys: Arc<Keyspace>,
    scripts: &'static Scripts,
    within: Duration,
    lines: Mutex<HashMap<Shard, Line<F>>>,
}

/// What goes to one place: a server, or a slot of a cluster. Its length is bounded by the callers,
/// each of whom waits for one item.
struct Line<F: Freight> {
    waiting: VecDeque<(F, To<F::Reply>)>,
    under_way: usize,
}

impl<F: Freight> Line<F> {
    /// The next batch. Items whose callers have gone away are left out: they were never sent.
    fn next(&mut self) -> Batch<F> {
        let (mut batch, mut recipients, mut keys) = (Vec::new(), Vec::new(), 0);
        while let Some((item, to)) = self.waiting.pop_front() {
            if to.is_closed() {
                continue;
            }
            keys += item.names().as_slice().len();
            if !batch.is_empty() && keys > KEYS_MAX {
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

impl<F: Freight> Courier<F> {
    pub(super) fn new(
        link: &Arc<Link>,
        keys: &Arc<Keyspace>,
        scripts: &'static Scripts,
        within: Duration,
    ) -> Self {
        let route = Arc::new(Route {
            link: Arc::clone(link),
            keys: Arc::clone(keys),
            scripts,
            within,
            lines: Mutex::default(),
        });
        Self {
            route,
            tasks: Mutex::default(),
        }
    }

    /// Sends `item` with the next batch, at once if none is under way. No future, so that nobody
    /// carries the room for an item that has been handed over.
    pub(super) fn post(&self, item: F) -> Posted<F::Reply> {
        let (to, answer) = Posted::channel();
        self.enqueue(item, to);
        answer
    }

    /// Sends items with the next batches. Each answer goes to the item's place at the desk.
    pub(super) fn post_all(
        &self,
        items: impl Iterator<Item = (usize, F)>,
        desk: &Arc<dyn Desk<F::Reply>>,
    ) {
        for (index, item) in items {
            self.enqueue(item, To::seat(desk, index));
        }
    }

    fn enqueue(&self, item: F, to: To<F::Reply>) {
        let place = self.route.place_of(item.names());
        if let Some(trip) = self.route.enqueue(place, (item, to)) {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that have ended.
            while tasks.try_join_next().is_some() {}
            tasks.spawn(trip.run());
        }
    }

    /// Sends `item` in a script of its own.
    pub(super) async fn alone(&self, item: &F, lane: Lane) -> Result<F::Reply, BackendError> {
        self.route.carry_one(item, lane).await
    }
}

impl<F: Freight> Route<F> {
    fn lines(&self) -> MutexGuard<'_, HashMap<Shard, Line<F>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// On one server all shards share their calls; in a cluster a script stays in its slot.
    fn place_of(&self, names: &Names) -> Shard {
        if self.link.is_one_server() {
            return Shard::default();
        }
        self.keys.shard_of_names(names)
    }

    /// Puts an item in line, and gives a new trip if one may begin.
    fn enqueue(self: &Arc<Self>, place: Shard, item: (F, To<F::Reply>)) -> Option<Trip<F>> {
        let mut lines = self.lines();
        let line = lines.entry(place).or_insert_with(|| Line {
            waiting: VecDeque::new(),
            under_way: 0,
        });
        line.waiting.push_back(item);
        // Whoever was in line before it takes it along.
        let may_begin = line.waiting.len() == 1 && line.under_way < UNDER_WAY_MAX;
        if !may_begin && line.under_way > 0 {
            return None;
        }
        line.under_way += 1;
        Some(Trip {
            route: Arc::clone(self),
            place,
            has_ended: false,
        })
    }

    async fn carry(&self, batch: &[F], lane: Lane) -> Vec<Result<F::Reply, BackendError>> {
        let call = F::call(Calls::new(&self.keys, self.scripts), batch);
        match self.link.run(&call, lane, self.within).await {
            Ok(value) => F::replies(value, batch),
            Err(error) if batch.len() > 1 && is_of_neighbours(&error) => {
                let mut replies = Vec::with_capacity(batch.len());
                for item in batch {
                    replies.push(self.carry_one(item, lane).await);
                }
                replies
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn carry_one(&self, item: &F, lane: Lane) -> Result<F::Reply, BackendError> {
        let batch = std::slice::from_ref(item);
        let call = F::call(Calls::new(&self.keys, self.scripts), batch);
        let value = self.link.run(&call, lane, self.within).await?;
        let odd = || BackendError::Unknown("the answer has an unknown form".to_owned());
        let replies = F::replies(value, batch);
        replies.into_iter().next().unwrap_or_else(|| Err(odd()))
    }
}

/// In a slot that is being moved, a server refuses a call of which it has some keys and lacks
/// others. An item alone may have all of its keys in one place.
fn is_of_neighbours(error: &BackendError) -> bool {
    matches!(error, BackendError::Rejected { code, .. } if code == "TRYAGAIN")
}

/// Takes batches to one place as long as some are waiting.
struct Trip<F: Freight> {
    route: Arc<Route<F>>,
    place: Shard,
    has_ended: bool,
}

impl<F: Freight> Trip<F> {
    /// It begins behind everybody who was ready before it, so these are in line.
    async fn run(mut self) {
        while let Some((batch, recipients)) = self.next() {
            let replies = self.route.carry(&batch, Lane::Main).await;
            for (to, reply) in recipients.into_iter().zip(replies) {
                to.send(reply);
            }
        }
    }

    /// The next batch. With none the trip has ended, under the same lock: whoever comes next
    /// begins another.
    fn next(&mut self) -> Option<Batch<F>> {
        let mut lines = self.route.lines();
        let line = lines.get_mut(&self.place)?;
        let (batch, recipients) = line.next();
        if batch.is_empty() {
            line.under_way = line.under_way.saturating_sub(1);
            self.has_ended = true;
            return None;
        }
        Some((batch, recipients))
    }
}

impl<F: Freight> Drop for Trip<F> {
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(line) = self.route.lines().get_mut(&self.place)
        {
            line.under_way = line.under_way.saturating_sub(1);
        }
    }
}
