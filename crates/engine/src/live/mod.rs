//! The public state of each event: a snapshot of the seats, the feed of its changes, and the
//! shield. It is updated after a commit is durable: on SQLite before the answer, so that a caller
//! sees its own effect; on PostgreSQL the shield before it, snapshot and feed after it. Readers
//! never make the ledger wait.

mod feed;
mod shield;
mod snapshot;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

pub use feed::{Digest, FeedChange, FeedSource, Frame};
use shield::Company;
pub use shield::LocalShield;
pub(crate) use shield::who_has;
pub use snapshot::SeatSnapshot;

use soldonce_core::{Applied, Commit, Event, EventId, EventNo, Inventory, Rejection, Seq, UnitNo};

use tokio::sync::watch;

use crate::ledger::Observer;
use crate::locks::{lock, read, write};
use crate::metrics::Metrics;
use crate::shield::{SharedShield, Shield};

/// Which events [`Live::page`] lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    All,
    /// Only events whose policy has `listed`.
    Listed,
}

/// The public state of one event.
pub struct LiveEvent {
    /// The event itself; the tasks that send feeds wait for its changes.
    event: watch::Sender<Arc<Event>>,
    snapshot: RwLock<Arc<SeatSnapshot>>,
    /// Its numbered changes.
    pub feed: FeedSource,
    /// The cache in process that refuses requests for taken seats before the ledger is asked.
    pub shield: LocalShield,
    /// How many holds were not over at the last count.
    holds: AtomicI64,
}

impl LiveEvent {
    fn new(inventory: &Inventory, event: &Arc<Event>, company: Company, digest: Digest) -> Self {
        let snapshot = SeatSnapshot::of(inventory, event, digest);
        Self {
            event: watch::Sender::new(Arc::clone(event)),
            feed: FeedSource::starting_after(snapshot.seq, digest),
            snapshot: RwLock::new(Arc::new(snapshot)),
            shield: LocalShield::of(inventory, event, company),
            holds: AtomicI64::new(0),
        }
    }

    /// Returns the event as it is now.
    pub fn event(&self) -> Arc<Event> {
        Arc::clone(&self.event.borrow())
    }

    /// Subscribes to changes of the event itself.
    pub fn watch_event(&self) -> watch::Receiver<Arc<Event>> {
        self.event.subscribe()
    }

    /// Returns the published snapshot of the seats, all at one commit number.
    pub fn snapshot(&self) -> Arc<SeatSnapshot> {
        Arc::clone(&read(&self.snapshot))
    }

    /// Returns the commit number of the snapshot.
    pub fn seq(&self) -> Seq {
        self.snapshot().seq
    }

    fn replace_event(&self, event: &Arc<Event>) {
        self.event.send_if_modified(|shown| {
            let is_renamed = shown.name != event.name || shown.starts_at != event.starts_at;
            let is_new = is_renamed || shown.policy != event.policy || shown.state != event.state;
            if is_new {
                *shown = Arc::clone(event);
            }
            is_new
        });
    }

    /// Publishes one commit: its frame under the snapshot's lock, since a reader of the snapshot
    /// continues with the next frame.
    fn show(&self, commit: &Commit, digest: Digest) {
        let mut snapshot = write(&self.snapshot);
        let frame = Arc::make_mut(&mut snapshot).advance(commit, digest);
        self.feed.publish(frame);
    }
}

/// An event, or why it is refused: it was dropped, or cannot be read.
type Entry = Result<Arc<LiveEvent>, Rejection>;

#[derive(Default)]
struct Registry {
    by_id: BTreeMap<EventId, Entry>,
    by_no: BTreeMap<EventNo, Entry>,
}

impl Registry {
    fn add(&mut self, live: LiveEvent) {
        let (event, live) = (live.event(), Arc::new(live));
        self.by_id.insert(event.id.clone(), Ok(Arc::clone(&live)));
        self.by_no.insert(event.no, Ok(live));
    }

    /// Marks an event as dropped; returns its public state, if it was shown.
    fn drop_event(&mut self, event: EventNo, id: &EventId) -> Option<Arc<LiveEvent>> {
        let dropped = || Err(Rejection::EventDropped);
        self.by_id.insert(id.clone(), dropped());
        self.by_no.insert(event, dropped()).and_then(Result::ok)
    }
}

/// The public state of every event.
pub struct Live {
    registry: RwLock<Registry>,
    /// The digest of each event's newest commit, which may not be shown yet.
    digests: Mutex<BTreeMap<EventNo, Digest>>,
    metrics: Arc<Metrics>,
    shared_shield: Option<SharedShield>,
}

impl Live {
    /// Creates an empty one; the ledger fills it when it opens.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            registry: RwLock::default(),
            digests: Mutex::default(),
            metrics,
            shared_shield: None,
        }
    }

    /// Adds a shield that several servers share. Every commit is sent to it.
    #[must_use]
    pub fn behind(self, shield: Arc<dyn Shield>) -> Self {
        let shared_shield = SharedShield::new(shield, &self.metrics);
        Self {
            shared_shield: Some(shared_shield),
            ..self
        }
    }

    /// Returns the shield that several servers share, if there is one.
    pub(crate) fn shared_shield(&self) -> Option<&SharedShield> {
        self.shared_shield.as_ref()
    }

    fn company(&self) -> Company {
        match self.shared_shield {
            Some(_) => Company::Servers,
            None => Company::None,
        }
    }

    /// Returns the digest of the event's newest commit; that of an event without one is zero.
    fn digest(&self, event: EventNo) -> Digest {
        let known = lock(&self.digests).get(&event).copied();
        known.unwrap_or_default()
    }

    fn live_event(&self, inventory: &Inventory, event: &Arc<Event>) -> LiveEvent {
        LiveEvent::new(inventory, event, self.company(), self.digest(event.no))
    }

    /// Finds the event with this id.
    ///
    /// # Errors
    /// `EventNotFound` if it is not known here, `EventDropped`, `ReadOnly` if it cannot be read.
    pub fn find(&self, id: &EventId) -> Result<Arc<LiveEvent>, Rejection> {
        let known = read(&self.registry).by_id.get(id).cloned();
        known.unwrap_or(Err(Rejection::EventNotFound))
    }

    /// Finds the event with this number.
    ///
    /// # Errors
    /// As [`Live::find`].
    pub fn event(&self, no: EventNo) -> Result<Arc<LiveEvent>, Rejection> {
        let known = read(&self.registry).by_no.get(&no).cloned();
        known.unwrap_or(Err(Rejection::EventNotFound))
    }

    /// Lists events in the order of their ids, those after `after`, at most `limit`.
    pub fn page(
        &self,
        which: Listing,
        after: Option<&EventId>,
        limit: usize,
    ) -> Vec<Arc<LiveEvent>> {
        let registry = read(&self.registry);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = registry.by_id.range::<EventId, _>((from, Bound::Unbounded));
        let is_meant = |live: &&Arc<LiveEvent>| match which {
            Listing::All => true,
            Listing::Listed => live.event().policy.listed,
        };
        let page = page.filter_map(|(_, live)| live.as_ref().ok());
        page.filter(is_meant).take(limit).map(Arc::clone).collect()
    }

    /// Notes commands that were made durable; `show` publishes one of their commits.
    fn note(&self, inventory: &Inventory, applied: &[Applied], show: impl Fn(&Commit)) {
        for done in applied {
            if let Some(event) = done.event.and_then(|no| inventory.event(no)) {
                self.note_event(inventory, event);
            }
            for commit in &done.commits {
                show(commit);
                self.note_shared_shield(inventory, commit);
            }
            self.metrics.applied(done);
        }
    }

    fn note_event(&self, inventory: &Inventory, event: &Arc<Event>) {
        if let Ok(live) = self.event(event.no) {
            return live.replace_event(event);
        }
        let mut registry = write(&self.registry);
        // Another task may have added it meanwhile.
        if !registry.by_no.contains_key(&event.no) {
            registry.add(self.live_event(inventory, event));
        }
    }

    /// Counts the live holds of an event again, for the metric.
    fn count_holds(&self, inventory: &Inventory, event: EventNo) {
        if let Ok(live) = self.event(event) {
            let now = i64::try_from(inventory.live_holds(event)).unwrap_or(i64::MAX);
            let before = live.holds.swap(now, Ordering::Relaxed);
            self.metrics.holds_live.inc_by(now.saturating_sub(before));
        }
    }

    /// Queues a commit for the shield that servers share.
    fn note_shared_shield(&self, inventory: &Inventory, commit: &Commit) {
        if let (Some(shared_shield), Some(event)) =
            (&self.shared_shield, inventory.event(commit.event))
        {
            shared_shield
                .messages
                .note_commit(inventory, (&event.chart, commit));
        }
    }

    fn note_commit(&self, inventory: &Inventory, commit: &Commit) {
        // An event that was added just now already has the later commits of its batch.
        if let Ok(live) = self.event(commit.event)
            && live.seq() < commit.seq
        {
            // The shield first, so that a buyer who sees a freed seat is not refused.
            live.shield.note(inventory, commit);
            live.show(commit, self.digest(commit.event));
        }
    }
}

impl Observer for Live {
    fn opened(&self, inventory: &Inventory) {
        let mut registry = write(&self.registry);
        *registry = Registry::default();
        for event in inventory.events() {
            registry.add(self.live_event(inventory, event));
        }
        for (id, no) in inventory.dropped() {
            registry.drop_event(no, id);
        }
        drop(registry);
        self.metrics.holds_live.set(0);
        for event in inventory.events() {
            self.count_holds(inventory, event.no);
        }
    }

    fn chained(&self, event: EventNo, hash: &[u8; 32]) {
        lock(&self.digests).insert(event, Digest::of(hash));
    }

    fn committed(&self, inventory: &Inventory, applied: &[Applied]) {
        self.note(inventory, applied, |commit| {
            self.note_commit(inventory, commit);
            self.count_holds(inventory, commit.event);
        });
    }

    fn stored_unnumbered(&self, inventory: &Inventory, applied: &[Applied]) {
        self.note(inventory, applied, |commit| {
            let units: Vec<UnitNo> = commit.transitions.iter().map(|step| step.unit).collect();
            self.refreshed(inventory, commit.event, &units);
        });
    }

    fn event_changed(&self, inventory: &Inventory, event: EventNo) {
        if let (Ok(live), Some(event)) = (self.event(event), inventory.event(event)) {
            live.replace_event(event);
        }
    }

    fn event_dropped(&self, event: EventNo, id: &EventId) {
        let mut registry = write(&self.registry);
        if let Some(live) = registry.drop_event(event, id) {
            live.feed.end();
        }
        lock(&self.digests).remove(&event);
    }

    fn event_unreadable(&self, event: EventNo, id: &EventId) {
        let mut registry = write(&self.registry);
        let unreadable = || Err(Rejection::ReadOnly);
        // Another task may know by now that it was dropped.
        registry.by_id.entry(id.clone()).or_insert_with(unreadable);
        registry.by_no.entry(event).or_insert_with(unreadable);
    }

    fn refreshed(&self, inventory: &Inventory, event: EventNo, units: &[UnitNo]) {
        if let Ok(live) = self.event(event) {
            live.shield.refresh(inventory, event, units.iter().copied());
            self.count_holds(inventory, event);
        }
    }

    fn numbered(&self, commits: &[Commit]) {
        for commit in commits {
            if let Ok(live) = self.event(commit.event)
                && live.seq() < commit.seq
            {
                live.shield.show(commit.seq);
                live.show(commit, self.digest(commit.event));
            }
        }
    }

    fn batch(&self, commands: usize, commit: Duration) {
        self.metrics.batch(commands, commit);
    }

    fn feed_lag(&self, behind: Duration, _process: Option<i32>) {
        self.metrics.feed_lag.set(behind.as_secs_f64());
    }

    fn distrusted(&self) {
        self.metrics.ledger_disbelieved.inc();
    }

    fn failed(&self, why: &str) {
        tracing::error!(
            reason = why,
            "the ledger failed to store and takes no more commands; reads are answered"
        );
    }
}
