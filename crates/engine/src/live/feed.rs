//! The numbered changes of one event. An entry is written down once and shared by every reader; a
//! reader that reconnects goes on where it stopped, or is told that it cannot.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use serde::Serialize;
use soldonce_core::{AreaNo, Chart, Seq, StateKind, Tally, Timestamp, UnitNo};
use tokio::sync::broadcast;

use crate::limits::{FEED_ENTRIES_MAX, FEED_LAG_MAX};
use crate::reply::Rfc3339;

/// What changed for the public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChange {
    /// A seat is now in this state.
    Seat(UnitNo, StateKind),
    /// An area has now these counts.
    Area(AreaNo, Tally),
}

/// One commit as the public sees it.
#[derive(Debug)]
pub struct FeedEntry {
    /// Its number, dense per event.
    pub seq: Seq,
    /// When it was decided.
    pub at: Timestamp,
    /// What changed; empty when nothing did for the public.
    pub changes: Vec<FeedChange>,
    chart: Arc<Chart>,
    sse: OnceLock<Bytes>,
}

impl FeedEntry {
    pub(super) fn new(
        seq: Seq,
        at: Timestamp,
        changes: Vec<FeedChange>,
        chart: &Arc<Chart>,
    ) -> Self {
        Self {
            seq,
            at,
            changes,
            chart: Arc::clone(chart),
            sse: OnceLock::new(),
        }
    }

    /// The entry as a server-sent event, written at the first call and shared by all.
    pub fn sse(&self) -> Bytes {
        self.sse.get_or_init(|| self.write_sse()).clone()
    }

    fn write_sse(&self) -> Bytes {
        let body = EntryBody {
            seq: self.seq.0,
            at: Rfc3339(self.at),
            changes: self
                .changes
                .iter()
                .map(|change| change.body(&self.chart))
                .collect(),
        };
        let data = serde_json::to_string(&body).unwrap_or_default();
        Bytes::from(format!("id: {}\ndata: {data}\n\n", self.seq.0))
    }
}

#[derive(Serialize)]
struct EntryBody {
    seq: u64,
    at: Rfc3339,
    changes: Vec<ChangeBody>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChangeBody {
    Seat {
        seat: String,
        state: &'static str,
    },
    Area {
        area: String,
        free: u32,
        held: u32,
        sold: u32,
        blocked: u32,
    },
}

impl FeedChange {
    fn body(self, chart: &Chart) -> ChangeBody {
        match self {
            Self::Seat(unit, kind) => ChangeBody::Seat {
                seat: chart.unit_name(unit).to_string(),
                state: kind.as_str(),
            },
            Self::Area(
                no,
                Tally {
                    free,
                    held,
                    sold,
                    blocked,
                },
            ) => ChangeBody::Area {
                area: chart
                    .area(no)
                    .map(|area| area.id.to_string())
                    .unwrap_or_default(),
                free,
                held,
                sold,
                blocked,
            },
        }
    }
}

/// The newest entries of an event, and who waits for more.
pub struct FeedSource {
    state: Mutex<FeedState>,
}

struct FeedState {
    /// The number before the oldest entry that is kept.
    before: Seq,
    last: Seq,
    entries: VecDeque<Arc<FeedEntry>>,
    /// Made for the first reader: most events of a ledger have none.
    readers: Option<broadcast::Sender<Arc<FeedEntry>>>,
}

/// What a reader of a feed gets.
pub enum Subscription {
    /// The entries after the one it knows, and then those to come.
    Resumed {
        /// Entries that it missed, oldest first.
        missed: Vec<Arc<FeedEntry>>,
        /// Entries to come. A reader that lags too far behind gets an error and must come again.
        next: broadcast::Receiver<Arc<FeedEntry>>,
    },
    /// The entry it knows is too old, or was never given: it needs a new snapshot.
    Reset,
}

impl FeedSource {
    /// A feed whose next entry is the one after `last`.
    pub(super) fn starting_after(last: Seq) -> Self {
        let entries = VecDeque::new();
        let state = FeedState {
            before: last,
            last,
            entries,
            readers: None,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(super) fn publish(&self, entry: FeedEntry) {
        let entry = Arc::new(entry);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = entry.seq;
        if state.entries.len() == FEED_ENTRIES_MAX
            && let Some(oldest) = state.entries.pop_front()
        {
            state.before = oldest.seq;
        }
        state.entries.push_back(Arc::clone(&entry));
        let gone = match &state.readers {
            Some(readers) => readers.send(entry).is_err(),
            None => false,
        };
        if gone {
            state.readers = None;
        }
    }

    /// Goes on after the entry `after`, without a gap and without a double.
    pub fn subscribe(&self, after: Seq) -> Subscription {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if after < state.before || after > state.last {
            return Subscription::Reset;
        }
        let missed = state
            .entries
            .iter()
            .filter(|entry| entry.seq > after)
            .map(Arc::clone);
        let missed = missed.collect();
        let readers = state
            .readers
            .get_or_insert_with(|| broadcast::Sender::new(FEED_LAG_MAX));
        Subscription::Resumed {
            missed,
            next: readers.subscribe(),
        }
    }

    /// How many readers wait for entries.
    pub fn readers(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .readers
            .as_ref()
            .map_or(0, broadcast::Sender::receiver_count)
    }
}
