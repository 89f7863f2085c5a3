//! The ledger's clock is the database's (T1). A server decides by its idea of it, and the statement
//! that writes holds that idea against the clock itself: too far off, or a hold over meanwhile, and
//! nothing is written.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_clock::Clock;
use soldonce_core::Timestamp;

use super::TimeSource;

use crate::locks::lock;

/// Where a ledger's time comes from.
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    source: TimeSource,
    /// Wall time of the database minus boot time of this machine, milliseconds: as it was learned
    /// last. At least the way of one answer behind.
    ahead: Mutex<Option<i64>>,
    /// The latest time that was told: it never goes back.
    last: AtomicI64,
}

impl Time {
    pub(super) fn new(clock: Arc<dyn Clock>, source: TimeSource) -> Self {
        Self {
            clock,
            source,
            ahead: Mutex::default(),
            last: AtomicI64::new(i64::MIN),
        }
    }

    /// The time to decide by.
    pub(super) fn now(&self) -> Timestamp {
        let ahead = *lock(&self.ahead);
        let now = match ahead {
            Some(ahead) if self.source == TimeSource::Database => {
                self.boot_ms().saturating_add(ahead)
            }
            Some(_) | None => self.clock.wall_ms(),
        };
        let last = self.last.fetch_max(now, Ordering::AcqRel);
        Timestamp::from_ms(now.max(last))
    }

    /// What the statement is to take for the database's clock; none is the clock itself.
    pub(super) fn given(&self) -> Option<i64> {
        (self.source == TimeSource::Given).then(|| self.now().ms())
    }

    /// The database's clock read so a moment ago: while an answer with it was on its way.
    ///
    /// The clock may be stepped, and boot clocks run apart, so the newest word counts.
    pub(super) fn learn(&self, database_ms: i64) {
        let ahead = database_ms.saturating_sub(self.boot_ms());
        *lock(&self.ahead) = Some(ahead);
    }

    /// A commit of this server was made at this time.
    pub(super) fn reached(&self, at: Timestamp) {
        self.last.fetch_max(at.ms(), Ordering::AcqRel);
    }

    fn boot_ms(&self) -> i64 {
        let since = self.clock.boot().since(soldonce_clock::BootTime::default());
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
