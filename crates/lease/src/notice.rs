//! Events of leases, sent to subscribers. `lease.md` 2.4.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::backend::Kind;
use crate::limits::NOTICES_MAX;
use crate::stats::Counters;
use crate::{FencingToken, Name};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// What happened.
    pub what: NoticeKind,
    /// The backend it happened on.
    pub backend: Kind,
    /// The lease; its group if it has one; none for an event that concerns no lease.
    pub name: Option<Name>,
    /// Its token.
    pub token: Option<FencingToken>,
    /// How long it took, or had lasted; zero if that has no meaning.
    pub elapsed: Duration,
    /// The reason, in words for people.
    pub reason: String,
}

/// The kinds of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoticeKind {
    /// A lease was granted.
    Acquired,
    /// A request was refused for good, or its wait ended.
    Refused,
    /// A command may have run.
    Unknown,
    /// A renewal is overdue.
    Suspect,
    /// A suspect lease was renewed.
    Recovered,
    /// A lease without a `max_lifetime` has been held for 15 minutes. Told once.
    LongHeld,
    /// A lease is lost.
    Lost,
    /// A lease was released.
    Released,
    /// A renewal had no answer from the backend itself.
    RenewFailed,
    /// The backend began a new epoch.
    EpochInstalled,
    /// A grant had a token at or below one that was seen before.
    Regressed,
    /// The target has seen a higher token.
    Overtaken,
    /// A connection was replaced.
    LinkRebuilt,
    /// A grant whose caller was gone was released.
    OrphanReaped,
    /// The doctor found something.
    DoctorFinding,
}

impl Notice {
    /// Creates a notice without lease, time or reason.
    pub fn of(what: NoticeKind, backend: Kind) -> Self {
        Self {
            what,
            backend,
            name: None,
            token: None,
            elapsed: Duration::ZERO,
            reason: String::new(),
        }
    }

    /// Adds a reason.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// Publishes notices. Publishing never blocks, and costs next to nothing without subscribers.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    sender: Arc<OnceLock<broadcast::Sender<Arc<Notice>>>>,
    counters: Arc<Counters>,
}

impl Notices {
    /// Sends the notice that `notice` makes; does not call it before the first subscription.
    pub fn tell(&self, notice: impl FnOnce() -> Notice) {
        if let Some(sender) = self.sender.get() {
            // Fails only without subscribers.
            drop(sender.send(Arc::new(notice())));
        }
    }

    /// Counts and reports a replaced connection of a backend. `which` says which connection it was,
    /// and where it leads to or why it was replaced.
    pub fn link_rebuilt(&self, backend: Kind, which: &str) {
        self.counters.link_rebuilds.add(1);
        self.tell(|| Notice::of(NoticeKind::LinkRebuilt, backend).because(which));
    }

    /// Returns the counters of the leases to which these notices belong.
    pub(crate) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// Subscribes to the notices from now on.
    pub fn listen(&self) -> NoticeStream {
        let open = || broadcast::Sender::new(NOTICES_MAX);
        let sender = self.sender.get_or_init(open);
        NoticeStream {
            from: sender.subscribe(),
            dropped: 0,
        }
    }
}

/// Notices in order. A reader that falls more than 1,024 behind loses the oldest, and the loss is
/// counted.
#[derive(Debug)]
pub struct NoticeStream {
    from: broadcast::Receiver<Arc<Notice>>,
    dropped: u64,
}

impl NoticeStream {
    /// Waits for the next notice; `None` after the end of the leases.
    ///
    /// # Cancel safety
    /// A dropped call loses no notice.
    pub async fn next(&mut self) -> Option<Arc<Notice>> {
        loop {
            match self.from.recv().await {
                Ok(notice) => return Some(notice),
                Err(broadcast::error::RecvError::Lagged(missed)) => self.dropped += missed,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// Returns the next notice if there is one already; never waits.
    pub fn try_next(&mut self) -> Option<Arc<Notice>> {
        loop {
            match self.from.try_recv() {
                Ok(notice) => return Some(notice),
                Err(broadcast::error::TryRecvError::Lagged(missed)) => self.dropped += missed,
                Err(
                    broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed,
                ) => return None,
            }
        }
    }

    /// Returns how many notices this reader has lost because it lagged.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
