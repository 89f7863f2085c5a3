//! Sends the feed of one event to all its readers. A task of its own takes what was committed, at the first
//! change at once and then at most once a tick; what it sends is written once and shared. Commits do not
//! wait for it, and under load it lets more time pass between two ticks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use soldonce_clock::{BootTime, Clock};
use soldonce_core::{Event, EventNo, Seq};
use soldonce_engine::limits::FEED_COMMITS_MAX;
use soldonce_engine::live::{Digest, LiveEvent};
use soldonce_engine::{Engine, EventSummary};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::event_message;
use super::written::{Cut, messages};
use crate::limits::{
    FEED_REST_FACTOR, FEED_TICK_MS, FEED_TICK_MS_MAX, FRAMES_SHARED_BYTES_MAX,
    FRAMES_SHARED_ENTRY_BYTES, STREAM_KEEP_ALIVE_MS,
};

/// What is sent to the readers of an event at one moment.
#[derive(Clone)]
pub(in crate::http) struct Tick {
    at: BootTime,
    /// A reader that has all commits up to here gets `frame`.
    pub(in crate::http) after: Seq,
    pub(in crate::http) until: Seq,
    /// None where readers need a new snapshot.
    pub(in crate::http) frame: Option<Bytes>,
    /// How often the event itself changed.
    pub(in crate::http) event_no: u64,
    pub(in crate::http) event: Bytes,
}

/// The feed of one event while it has readers.
pub(in crate::http) struct Hub {
    live: Arc<LiveEvent>,
    /// Its sender is the task's own, so that streams end with it.
    ticks: Receiver<Tick>,
    /// Longest time that a reader waited for its turn since the last tick, microseconds.
    slowest_us: AtomicU64,
    shared: Mutex<FrameCache>,
}

/// Frames for readers that were behind the last tick, or want another cut.
#[derive(Default)]
struct FrameCache {
    until: Seq,
    frames: BTreeMap<(Cut, Seq), Option<EncodedFrames>>,
    bytes: usize,
}

/// Frames as they are sent, and up to which commit.
type EncodedFrames = (Bytes, Seq);

impl Hub {
    /// Returns the event as it is now.
    pub(in crate::http) fn summary(&self) -> EventSummary {
        EventSummary::of(&self.live)
    }

    /// Tells whether this commit is the one that a reader knows; yes if the reader names no digest.
    pub(in crate::http) fn has(&self, seq: Seq, digest: Option<Digest>) -> bool {
        digest.is_none_or(|digest| self.live.feed.has(seq, digest))
    }

    /// Returns what a reader that knows all up to `after` lacks of what was sent, or the first part
    /// of it; None if it needs a new snapshot. Written once for all that lack the same.
    pub(in crate::http) fn lacking(&self, cut: Cut, after: Seq) -> Option<EncodedFrames> {
        let mut shared = crate::lock(&self.shared);
        let until = self.ticks.borrow().until;
        if until <= after {
            return Some((Bytes::new(), after));
        }
        if shared.until != until {
            *shared = FrameCache {
                until,
                ..FrameCache::default()
            };
        }
        if let Some(known) = shared.frames.get(&(cut, after)) {
            return known.clone();
        }
        let written = write(&self.live, (after, until), cut);
        let bytes = written.as_ref().map_or(0, |(text, _)| text.len());
        let bytes = bytes.saturating_add(FRAMES_SHARED_ENTRY_BYTES);
        if shared.bytes.saturating_add(bytes) > FRAMES_SHARED_BYTES_MAX {
            shared.frames.clear();
            shared.bytes = 0;
        }
        shared.bytes = shared.bytes.saturating_add(bytes);
        shared.frames.insert((cut, after), written.clone());
        written
    }

    /// Notes how long a reader that waited for a tick waited for its turn on a processor.
    pub(in crate::http) fn note_taken(&self, tick: &Tick, now: BootTime) {
        let waited = u64::try_from(now.since(tick.at).as_micros()).unwrap_or(u64::MAX);
        self.slowest_us.fetch_max(waited, Ordering::Relaxed);
    }
}

fn write(live: &LiveEvent, (after, until): (Seq, Seq), cut: Cut) -> Option<EncodedFrames> {
    let frames = live.feed.between(after, until)?;
    let (text, count) = messages(&frames, cut, &live.event().chart)?;
    let reached = count.checked_sub(1).and_then(|last| frames.get(last));
    Some((text.into(), reached.map_or(until, |frame| frame.seq)))
}

/// The events that have readers.
#[derive(Default)]
pub(in crate::http) struct Hubs {
    open: Arc<Mutex<Open>>,
    tasks: Mutex<JoinSet<()>>,
}

type Open = BTreeMap<EventNo, Arc<Hub>>;

/// What the tasks need of the server.
#[derive(Clone)]
pub(in crate::http) struct Surroundings {
    pub(in crate::http) engine: Engine,
    pub(in crate::http) shutdown: CancellationToken,
    pub(in crate::http) tick: Duration,
}

impl Hubs {
    /// Adds a reader to an event.
    pub(in crate::http) fn join(
        &self,
        live: Arc<LiveEvent>,
        around: &Surroundings,
    ) -> (Arc<Hub>, Receiver<Tick>) {
        let no = live.event().no;
        let mut open = crate::lock(&self.open);
        let hub = open.get(&no).filter(|hub| hub.ticks.has_changed().is_ok());
        let hub = hub.map_or_else(|| self.start(live, around), Arc::clone);
        open.insert(no, Arc::clone(&hub));
        let ticks = hub.ticks.clone();
        (hub, ticks)
    }

    fn start(&self, live: Arc<LiveEvent>, around: &Surroundings) -> Arc<Hub> {
        let (mut commits, mut event) = (live.feed.watch(), live.watch_event());
        event.mark_unchanged();
        let until = *commits.borrow_and_update();
        let tick = Tick {
            at: around.engine.world().clock.boot(),
            after: until,
            until,
            frame: Some(Bytes::new()),
            event_no: 0,
            event: Bytes::new(),
        };
        let (sender, ticks) = tokio::sync::watch::channel(tick);
        let hub = Arc::new(Hub {
            live,
            ticks,
            slowest_us: AtomicU64::new(0),
            shared: Mutex::default(),
        });
        let task = Task {
            hub: Arc::clone(&hub),
            ticks: sender,
            commits,
            event,
            around: around.clone(),
            open: Arc::clone(&self.open),
        };
        let mut tasks = crate::lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task.run());
        hub
    }
}

/// The task that sends the ticks of an event to its readers.
struct Task {
    hub: Arc<Hub>,
    ticks: Sender<Tick>,
    commits: Receiver<Seq>,
    event: Receiver<Arc<Event>>,
    around: Surroundings,
    open: Arc<Mutex<Open>>,
}

impl Task {
    /// Sends until there are no readers, until the event is dropped, or until shutdown.
    async fn run(mut self) {
        let (shutdown, over) = (self.around.shutdown.clone(), self.hub.live.feed.over());
        let until_left = async {
            while !self.is_left() {
                self.turn().await;
            }
        };
        let until_over = over.run_until_cancelled(until_left);
        shutdown.run_until_cancelled(until_over).await;
        if over.is_cancelled() {
            crate::lock(&self.open).remove(&self.hub.live.event().no);
        }
    }

    async fn turn(&mut self) {
        self.wait().await;
        if self.send() {
            self.rest().await;
        }
    }

    fn clock(&self) -> &dyn Clock {
        &*self.around.engine.world().clock
    }

    /// Tells whether all readers have left, and then removes the event's hub.
    fn is_left(&self) -> bool {
        let mut open = crate::lock(&self.open);
        // One receiver is the hub's own.
        let is_left = self.ticks.receiver_count() <= 1;
        if is_left {
            open.remove(&self.hub.live.event().no);
        }
        is_left
    }

    /// Waits for a change, at most until readers must see that the stream lives.
    async fn wait(&mut self) {
        let quiet_until = self.ticks.borrow().at.plus_ms(STREAM_KEEP_ALIVE_MS);
        let clock = Arc::clone(&self.around.engine.world().clock);
        let mut event = self.event.clone();
        // Their senders live as long as the feed.
        tokio::select! {
            Ok(()) = self.commits.changed() => {}
            Ok(()) = event.changed() => {}
            () = clock.sleep_until(quiet_until) => {}
        }
    }

    /// Sends what changed and tells whether anything did. Without a change it is a keep-alive.
    fn send(&mut self) -> bool {
        let mut tick = self.ticks.borrow().clone();
        tick.at = self.clock().boot();
        self.hub.slowest_us.store(0, Ordering::Relaxed);
        tick.after = tick.until;
        tick.until = *self.commits.borrow_and_update();
        let is_changed = self.event.has_changed().unwrap_or(false);
        let frame = write(&self.hub.live, (tick.after, tick.until), Cut::Merged);
        tick.frame = frame.map(|(text, _)| text);
        if is_changed {
            // Not else: a change since the look would be lost.
            self.event.mark_unchanged();
            tick.event = event_message(&self.hub.summary(), self.around.engine.now());
            tick.event_no = tick.event_no.saturating_add(1);
        }
        let is_news = is_changed || tick.until != tick.after;
        self.ticks.send_replace(tick);
        is_news
    }

    /// Lets time pass before the next tick: the longer, the longer readers waited for their turn. It ends
    /// early before commits are forgotten that were not sent.
    async fn rest(&mut self) {
        let tick = self.around.tick;
        let (sent_at, sent) = {
            let last = self.ticks.borrow();
            (last.at, last.until)
        };
        loop {
            let now = self.clock().boot();
            let slowest = Duration::from_micros(self.hub.slowest_us.load(Ordering::Relaxed));
            let longest = Duration::from_millis(FEED_TICK_MS_MAX).max(tick);
            let pause = slowest
                .saturating_mul(FEED_REST_FACTOR)
                .clamp(tick, longest);
            let unsent = self.commits.borrow().0.saturating_sub(sent.0);
            let is_full = usize::try_from(unsent).is_ok_and(|unsent| unsent > FEED_COMMITS_MAX / 2);
            if now >= sent_at.plus(pause) || is_full {
                return;
            }
            let until = sent_at.plus(pause).min(now.plus_ms(FEED_TICK_MS));
            self.clock().sleep_until(until).await;
        }
    }
}
