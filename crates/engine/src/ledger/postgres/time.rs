//! The ledger's clock is the database's (T1). A server decides by its estimate of it, and the
//! statement that writes compares that with the clock itself: if it is too far off, or a hold ended
//! meanwhile, nothing is written.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_clock::Clock;
use soldonce_core::Timestamp;

use super::TimeSource;
use crate::ledger::clock::boot_ms;
use crate::locks::lock;

/// Where a ledger's time comes from.
pub(super) struct Time {
    clock: Arc<dyn Clock>,
    source: TimeSource,
    /// Wall time of the database minus boot time of this machine, milliseconds, as it was learned
    /// last. Too small by the transit time of one answer, at least.
    ahead: Mutex<Option<i64>>,
    /// The latest time that was returned or reached: time never goes back.
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

    /// Returns the time to decide by. It never goes back.
    pub(super) fn now(&self) -> Timestamp {
        let ahead = *lock(&self.ahead);
        let now = match ahead {
            Some(ahead) if self.source == TimeSource::Database => {
                boot_ms(&*self.clock).saturating_add(ahead)
            }
            Some(_) | None => self.clock.wall_ms(),
        };
        let last = self.last.fetch_max(now, Ordering::AcqRel);
        Timestamp::from_ms(now.max(last))
    }

    /// Returns the time, ms since the epoch, that a statement takes for the database's clock. None
    /// is the clock itself.
    pub(super) fn given(&self) -> Option<i64> {
        (self.source == TimeSource::Given).then(|| self.now().ms())
    }

    /// Learns a reading of the database's clock, ms since the epoch: a moment old, by the transit
    /// time of its answer. That clock may be stepped, and boot clocks drift, so the newest reading
    /// counts.
    pub(super) fn learn(&self, database_ms: i64) {
        let ahead = database_ms.saturating_sub(boot_ms(&*self.clock));
        *lock(&self.ahead) = Some(ahead);
    }

    /// Keeps later times of this server from being before `at`, of a commit or the clock row.
    pub(super) fn reached(&self, at: Timestamp) {
        self.last.fetch_max(at.ms(), Ordering::AcqRel);
    }
}
