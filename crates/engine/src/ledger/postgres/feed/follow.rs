//! Publishes the feed on this server: what was numbered, for each event in order, from all servers.
//! Events are published concurrently: one whose cache is locked or cannot be read delays no other.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use soldonce_core::{Commit, EventNo, Seq};
use tokio::sync::{MutexGuard, Semaphore, SemaphorePermit};

use crate::catch_panic::catch_panic;
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::context::Context;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::event_slot::EventSlot;
use crate::ledger::postgres::event_tasks::{EventTasks, TaskError};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::horizon::{Horizon, horizon, since};
use crate::ledger::postgres::limits::{FEED_BATCHES_MAX, FOLLOW_CONNECTIONS_MAX};
use crate::ledger::postgres::replica::{Replica, ToLoad};
use crate::ledger::postgres::tables::{Columns, Id, int};
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{Damaged, to_i64};

/// The last number of the feed, and where to look for changes of events from.
const END: &str = concat!(
    "-- end
SELECT (SELECT coalesce(max(n), 0) FROM feed), ",
    horizon!(),
    "\nFROM sequencer WHERE one = 1"
);

const NUMBERED: &str = "-- numbered
SELECT f.n, f.event_no, f.first_seq, f.batch, b.server, f.hash
FROM feed f JOIN batches b ON b.id = f.batch
WHERE f.n > $1 ORDER BY f.n LIMIT $2";

/// Events that another server changed since, and where to look on from.
const RENEWED: &str = concat!(
    "-- renewed
SELECT (SELECT array_agg(DISTINCT b.event_no) FROM ",
    since!("renews AND server <> $3"),
    "),
       ",
    horizon!(),
    "\nFROM sequencer WHERE one = 1"
);

const NOT_SHOWN: &str = "-- not_shown
SELECT first_seq, batch, hash FROM feed WHERE event_no = $1 AND first_seq > $2 ORDER BY first_seq LIMIT $3";

/// A batch, its first number, and the hash of the event's audit after it. None is a damaged hash, which keeps no other
/// event waiting.
type NumberedBatch = (Id, Seq, Option<[u8; 32]>);

/// What of an event is to be published.
enum Tail {
    /// These batches, of this server alone or of others as well.
    These(Vec<NumberedBatch>, Writers),
    /// All that the feed has after what is published.
    Stored,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    Own,
    Others,
}

/// How far a server knows what others wrote.
pub(in super::super) struct FeedPosition {
    /// The last number of the feed.
    last: i64,
    /// Of the last snapshot that was searched for changes of events.
    renewed: Horizon,
}

impl FeedPosition {
    /// Returns where the ledger ends now.
    ///
    /// # Errors
    /// [`Failure`].
    pub(in super::super) async fn end(connection: &mut Connection) -> Result<Self, Failure> {
        let rows = connection.rows(END, &[]).await?;
        let missing = || Damaged::new("sequencer", "its row is missing");
        let row = rows.first().ok_or_else(missing)?;
        Ok(Self {
            last: Columns::new(row, "feed").get(0)?,
            renewed: Horizon::read(row, 1)?,
        })
    }
}

/// Publishes the commits of the feed.
pub(super) struct Follower {
    known: FeedPosition,
    /// What was numbered and is neither published nor being published. An event that this server
    /// does not know yet waits until it does.
    behind: BTreeMap<EventNo, Tail>,
    each: EventTasks<()>,
    connections: Arc<Semaphore>,
}

impl Follower {
    /// Creates a follower. `known` is where the ledger ended before the first event was read.
    pub(super) fn new(known: FeedPosition) -> Self {
        Self {
            known,
            behind: BTreeMap::new(),
            each: EventTasks::new("shown"),
            connections: Arc::new(Semaphore::new(FOLLOW_CONNECTIONS_MAX)),
        }
    }

    /// Starts to publish what was numbered since the last step.
    ///
    /// # Errors
    /// [`Failure`]; then the feed was not read.
    pub(super) async fn step(&mut self, context: &Arc<Context>) -> Result<(), Failure> {
        while let Some((event, done)) = self.each.ended(context) {
            if done.is_none() {
                self.behind.insert(event, Tail::Stored);
            }
        }
        for event in context.take_cold() {
            self.read_again(event);
        }
        self.read(context).await?;
        let now = context.clock.boot();
        let is_ready = |event: &EventNo| self.each.may_begin(*event, now);
        let ready: Vec<EventNo> = self.behind.keys().copied().filter(is_ready).collect();
        for event in ready {
            self.begin(context, event);
        }
        Ok(())
    }

    /// Reads again the events that another server changed: no number of the feed tells of it.
    ///
    /// # Errors
    /// [`Failure`]; then the next call finds the same.
    pub(super) async fn find_renewed(&mut self, context: &Context) -> Result<(), Failure> {
        let [first, last] = self.known.renewed.parts();
        let values = [first, last, bind(&context.server)];
        let rows = context.database.rows(RENEWED, &values).await?;
        let Some(row) = rows.first() else {
            return Ok(());
        };
        let events: Option<Vec<i32>> = Columns::new(row, "batches").get(0)?;
        for event in events.into_iter().flatten() {
            self.read_again(EventNo(u32::try_from(event).unwrap_or(u32::MAX)));
        }
        self.known.renewed = Horizon::read(row, 1)?;
        Ok(())
    }

    /// Lets the event's cache be read again when the event is published next.
    fn read_again(&mut self, event: EventNo) {
        let tail = self.behind.entry(event);
        let tail = tail.or_insert_with(|| Tail::These(Vec::new(), Writers::Others));
        if let Tail::These(_, writers) = tail {
            *writers = Writers::Others;
        }
    }

    fn begin(&mut self, context: &Arc<Context>, event: EventNo) {
        let Some(slot) = context.catalogue.slot(event) else {
            return;
        };
        let Some(tail) = self.behind.remove(&event) else {
            return;
        };
        let (context, connections) = (Arc::clone(context), Arc::clone(&self.connections));
        let showing = EventPublisher {
            context,
            slot,
            connections,
        };
        self.each
            .begin(event, async move { showing.show(tail).await });
    }

    /// Reads the next numbers of the feed into `behind`.
    async fn read(&mut self, context: &Context) -> Result<(), Failure> {
        let values = [bind(&self.known.last), bind(&FEED_BATCHES_MAX)];
        let rows = context.database.rows(NUMBERED, &values).await?;
        let (mut last, mut news) = (self.known.last, BTreeMap::new());
        for row in &rows {
            let mut row = Reader::postgres(row, "feed");
            last = row.get()?;
            let (batches, writers) = news.entry(row.get()?).or_insert((Vec::new(), Writers::Own));
            let (first, batch, server): (_, _, Id) = (row.get()?, row.get()?, row.get()?);
            batches.push((batch, first, row.get::<&[u8]>()?.try_into().ok()));
            if server != context.server {
                *writers = Writers::Others;
            }
        }
        self.known.last = last;
        for (event, (batches, writers)) in news {
            match self.behind.entry(event) {
                Entry::Vacant(entry) => {
                    entry.insert(Tail::These(batches, writers));
                }
                // It is read again when its turn comes: nothing piles up here.
                Entry::Occupied(mut entry) => {
                    entry.insert(Tail::Stored);
                }
            }
        }
        Ok(())
    }
}

/// An event whose commits are being published.
struct EventPublisher {
    context: Arc<Context>,
    slot: Arc<EventSlot>,
    /// Limits the connections that are used for this at a time.
    connections: Arc<Semaphore>,
}

impl EventPublisher {
    async fn show(&self, mut tail: Tail) -> Result<(), TaskError> {
        let most = usize::try_from(FEED_BATCHES_MAX).unwrap_or(usize::MAX);
        loop {
            let (batches, writers, is_all) = match tail {
                Tail::These(batches, writers) => (batches, writers, true),
                Tail::Stored => {
                    let batches = self.not_shown().await?;
                    let is_all = batches.len() < most;
                    (batches, Writers::Others, is_all)
                }
            };
            if writers == Writers::Others {
                self.refresh().await?;
            }
            self.number(batches).await?;
            if is_all {
                return Ok(());
            }
            tail = Tail::Stored;
        }
    }

    /// Locks the cache and takes a permit for a connection, when both are free at once. While it
    /// waits for one it does not have the other, so commands of an event whose turn has not come
    /// pass.
    async fn cache(&self) -> (MutexGuard<'_, Replica>, Option<SemaphorePermit<'_>>) {
        loop {
            let place = self.connections.acquire().await.ok();
            if let Ok(replica) = self.slot.replica.try_lock() {
                return (replica, place);
            }
            drop(place);
            let replica = self.slot.replica.lock().await;
            if let Ok(place) = self.connections.try_acquire() {
                return (replica, Some(place));
            }
        }
    }

    async fn not_shown(&self) -> Result<Vec<NumberedBatch>, Failure> {
        let (no, shown) = (int(self.slot.no.0)?, to_i64(self.slot.shown().0)?);
        let values = [bind(&no), bind(&shown), bind(&FEED_BATCHES_MAX)];
        let _one = self.connections.acquire().await;
        let mut connection = self.context.database.connection().await?;
        let read = |row: &mut Reader<'_>| {
            let first = row.get()?;
            Ok((row.get()?, first, row.get::<&[u8]>()?.try_into().ok()))
        };
        connection.read((NOT_SHOWN, "feed"), &values, read).await
    }

    async fn refresh(&self) -> Result<(), TaskError> {
        let (mut replica, _one) = self.cache().await;
        let context = &self.context;
        let read = catch_panic(async {
            let mut connection = context.database.connection().await?;
            let named = ToLoad::default();
            let refresh = context.refresh(&mut connection, &self.slot, &mut replica, &named);
            refresh.await
        });
        let Some(read) = read.await else {
            replica.forget();
            return Err(TaskError::Failed("reading it panicked".to_owned()));
        };
        Ok(read?)
    }

    /// Publishes those of these batches that are not published yet.
    async fn number(&self, mut batches: Vec<NumberedBatch>) -> Result<(), Failure> {
        let shown = self.slot.shown();
        batches.retain(|(_, first, _)| *first > shown);
        if batches.is_empty() {
            return Ok(());
        }
        // What is behind a damaged row waits for it: it would be read in vain each time.
        let whole = batches.iter().take_while(|(.., hash)| hash.is_some());
        let events = whole.map(|(id, ..)| (*id, self.slot.no));
        let mut found = {
            let _one = self.connections.acquire().await;
            let mut connection = self.context.database.connection().await?;
            self.context
                .own_batches
                .commits_of(&mut connection, &events.collect())
                .await?
        };
        // What has no other owner need not be copied. If they are shown in vain, they are read back.
        self.context.own_batches.forget(found.keys().copied());
        for (id, first, hash) in &batches {
            let illegal = || Damaged::new("feed", "the hash of a row is illegal");
            let hash = hash.as_ref().ok_or_else(illegal)?;
            let batch = found.remove(id).unwrap_or_default();
            let numbered = (first.0..).map(Seq).zip(Arc::unwrap_or_clone(batch));
            let numbered = numbered.map(|(seq, commit)| Commit { seq, ..commit });
            let commits: Vec<Commit> = numbered.collect();
            if let Some(last) = commits.last() {
                self.context.observer.chained(self.slot.no, hash);
                self.context.observer.numbered(&commits);
                self.slot.show(last.seq);
            }
        }
        Ok(())
    }
}
