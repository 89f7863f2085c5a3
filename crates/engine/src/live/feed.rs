//! The numbered changes of one event: a frame for each commit, kept for readers that reconnect, and
//! merged for those that want fewer. Publishing wakes the one task that sends frames to readers, so
//! its cost does not depend on the number of readers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use soldonce_core::{AreaNo, Seq, StateKind, Tally, Timestamp, UnitNo};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits::FEED_COMMITS_MAX;
use crate::locks::lock;

/// A change of the public state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChange {
    /// A seat is now in this state.
    Seat(UnitNo, StateKind),
    /// An area now has these counts.
    Area(AreaNo, Tally),
}

/// Consecutive commits as the public sees them. Each change is the state after the last of them, so
/// a reader that already knows some of the commits may apply the frame all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number of its first commit, dense per event.
    pub from: Seq,
    /// The number of its last commit.
    pub seq: Seq,
    /// When the last commit was decided.
    pub at: Timestamp,
    /// Each seat and each area at most once; empty when no public state changed.
    pub changes: Vec<FeedChange>,
}

impl Frame {
    /// Merges consecutive frames, oldest first; `None` if there are none. Seats are in chart order,
    /// then areas.
    pub fn merge(frames: &[Arc<Self>]) -> Option<Self> {
        let (first, last) = (frames.first()?, frames.last()?);
        let (mut seats, mut areas) = (BTreeMap::new(), BTreeMap::new());
        for change in frames.iter().flat_map(|frame| &frame.changes) {
            match *change {
                FeedChange::Seat(unit, kind) => {
                    seats.insert(unit, kind);
                }
                FeedChange::Area(area, tally) => {
                    areas.insert(area, tally);
                }
            }
        }
        let seat = |(unit, kind)| FeedChange::Seat(unit, kind);
        let area = |(area, tally)| FeedChange::Area(area, tally);
        let (seats, areas) = (seats.into_iter().map(seat), areas.into_iter().map(area));
        Some(Self {
            from: first.from,
            seq: last.seq,
            at: last.at,
            changes: seats.chain(areas).collect(),
        })
    }
}

/// The feed of an event: its newest commits, a frame each.
pub struct FeedSource {
    kept: Mutex<Newest>,
    /// The number of the last commit.
    last: watch::Sender<Seq>,
    /// Cancelled when there will be no more commits.
    over: CancellationToken,
}

struct Newest {
    /// The number of the commit before the oldest one that is kept.
    before: Seq,
    frames: VecDeque<Arc<Frame>>,
}

impl FeedSource {
    /// Creates a feed whose next commit is the one after `last`.
    pub(super) fn starting_after(last: Seq) -> Self {
        let kept = Newest {
            before: last,
            frames: VecDeque::new(),
        };
        Self {
            kept: Mutex::new(kept),
            last: watch::Sender::new(last),
            over: CancellationToken::new(),
        }
    }

    /// Adds the frame of one commit.
    pub(super) fn publish(&self, frame: Frame) {
        let seq = frame.seq;
        let mut kept = lock(&self.kept);
        if kept.frames.len() == FEED_COMMITS_MAX
            && let Some(oldest) = kept.frames.pop_front()
        {
            kept.before = oldest.seq;
        }
        kept.frames.push_back(Arc::new(frame));
        drop(kept);
        self.last.send_replace(seq);
    }

    /// Returns the frames of the commits after `after` up to and with `until`; none if one of them
    /// is no longer kept.
    pub fn between(&self, after: Seq, until: Seq) -> Option<Vec<Arc<Frame>>> {
        let kept = lock(&self.kept);
        let first = kept.frames.partition_point(|frame| frame.seq <= after);
        let end = kept.frames.partition_point(|frame| frame.seq <= until);
        let wanted = kept.frames.range(first..end.max(first));
        (after >= kept.before).then(|| wanted.map(Arc::clone).collect())
    }

    /// Ends the feed: the event was dropped.
    pub(super) fn end(&self) {
        self.over.cancel();
    }

    /// Returns a token that is cancelled when the event is dropped.
    pub fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// Subscribes to the number of the last commit.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.last.subscribe()
    }
}
