//! Looks at all connections now and then, and ends those that wait too long. One timer for all of
//! them, so that a request costs no timer of its own; the price is that a wait may end up to two
//! periods late, never early.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::BootTime;
use tokio::task::Id;

use super::activity::{Activity, Phase, Verdict};
use super::settings::AcceptLimits;

/// The connections of one accept loop, never more than its cap.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: AcceptLimits,
    next_at: BootTime,
    connections: HashMap<Id, Watched>,
}

#[derive(Debug)]
struct Watched {
    activity: Arc<Activity>,
    phase: Phase,
    since: BootTime,
    told_to_close: bool,
}

impl Watch {
    pub(crate) fn new(limits: AcceptLimits) -> Self {
        Self {
            limits,
            next_at: BootTime::default(),
            connections: HashMap::new(),
        }
    }

    /// Whether there is anything to look at.
    pub(crate) fn is_needed(&self) -> bool {
        !self.connections.is_empty()
    }

    /// When to look next.
    pub(crate) fn next_at(&self) -> BootTime {
        self.next_at
    }

    pub(crate) fn add(&mut self, id: Id, activity: Arc<Activity>, now: BootTime) {
        if self.connections.is_empty() {
            self.next_at = now.plus(self.limits.watch_period());
        }
        let phase = activity.phase();
        let watched = Watched {
            activity,
            phase,
            since: now,
            told_to_close: false,
        };
        self.connections.insert(id, watched);
    }

    pub(crate) fn remove(&mut self, id: Id) {
        self.connections.remove(&id);
    }

    /// Tells every connection to finish what is in flight and end.
    pub(crate) fn close_all(&mut self) {
        for watched in self.connections.values_mut() {
            watched.close();
        }
    }

    /// Ends every connection.
    pub(crate) fn cut_all(&mut self) {
        for watched in self.connections.values() {
            watched.activity.give(Verdict::Cut);
        }
    }

    /// Compares what each connection does now with what it did at the last look.
    pub(crate) fn look(&mut self, now: BootTime) {
        self.next_at = now.plus(self.limits.watch_period());
        for watched in self.connections.values_mut() {
            watched.look(now, &self.limits);
        }
    }
}

impl Watched {
    fn look(&mut self, now: BootTime, limits: &AcceptLimits) {
        let phase = self.activity.phase();
        if phase != self.phase {
            self.phase = phase;
            self.since = now;
            return;
        }
        let waited = now.since(self.since);
        match phase {
            Phase::Head(_) if waited >= Duration::from_millis(limits.header_read_ms) => self.cut(),
            Phase::WriteBlocked(_) if waited >= Duration::from_millis(limits.write_stall_ms) => {
                self.cut();
            }
            // Told to close and still here: an HTTP/2 peer that ignores GOAWAY.
            Phase::Idle(_) if self.told_to_close => {
                if waited >= Duration::from_millis(limits.header_read_ms) {
                    self.cut();
                }
            }
            Phase::Idle(_) if waited >= Duration::from_millis(limits.idle_ms) => {
                self.close();
                self.since = now;
            }
            Phase::Busy | Phase::Head(_) | Phase::WriteBlocked(_) | Phase::Idle(_) => {}
        }
    }

    fn close(&mut self) {
        self.told_to_close = true;
        self.activity.give(Verdict::Close);
    }

    fn cut(&self) {
        self.activity.give(Verdict::Cut);
    }
}
