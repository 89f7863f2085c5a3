//! The numbered changes of one event: a frame for each commit, kept for readers that reconnect, and
//! merged for those that want fewer. Publishing wakes the one task that sends frames to readers, so
//! its cost does not depend on the number of readers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Display, Formatter, Result as Written};
use std::sync::{Arc, Mutex};

use soldonce_core::{AreaNo, Seq, StateKind, Tally, Timestamp, UnitNo};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::limits::FEED_COMMITS_MAX;
use crate::locks::lock;

/// The first bytes of the hash of an event's audit after the batch that stored a commit. It tells commits apart that
/// got the same number because a copy of the ledger was put back between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u32);

impl Digest {
    pub(super) fn of(hash: &[u8; 32]) -> Self {
        let first = hash.first_chunk::<4>();
        Self(first.map_or(0, |first| u32::from_be_bytes(*first)))
    }

    /// Parses a digest; `None` unless the text is what one is displayed as.
    pub fn parse(text: &str) -> Option<Self> {
        let digest = Self(u32::from_str_radix(text, 16).ok()?);
        (digest.to_string() == text).then_some(digest)
    }
}

impl Display for Digest {
    fn fmt(&self, to: &mut Formatter<'_>) -> Written {
        write!(to, "{:08x}", self.0)
    }
}

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
    /// The digest of its last commit.
    pub digest: Digest,
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
            digest: last.digest,
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
    /// The digest of that commit.
    digest: Digest,
    frames: VecDeque<Arc<Frame>>,
}

impl FeedSource {
    /// Creates a feed whose next commit is the one after `last`, which has this digest.
    pub(super) fn starting_after(last: Seq, digest: Digest) -> Self {
        let kept = Newest {
            before: last,
            digest,
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
            (kept.before, kept.digest) = (oldest.seq, oldest.digest);
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

    /// Tells whether the commit of this number has this digest; false if it is no longer kept.
    pub fn has(&self, seq: Seq, digest: Digest) -> bool {
        let kept = lock(&self.kept);
        if seq == kept.before {
            return digest == kept.digest;
        }
        let place = kept.frames.partition_point(|frame| frame.seq < seq);
        let frame = kept.frames.get(place);
        frame.is_some_and(|frame| (frame.seq, frame.digest) == (seq, digest))
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
