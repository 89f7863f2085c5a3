//! Looks at all connections now and then, and ends those that wait too long. One timer for all of
//! them, so that a request costs no timer of its own; the price is that a wait may end up to two
//! periods late, never early.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::BootTime;
use tokio::task::Id;

use super::activity::{Activity, Phase, Verdict};
use super::settings::AcceptLimits;
use super::shares::Load;
use super::streams::StreamTasks;

/// The connections of one accept loop, never more than its cap.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: AcceptLimits,
    /// When to look next.
    pub(crate) next_at: BootTime,
    connections: HashMap<Id, Watched>,
    by_address: HashMap<IpAddr, Address>,
}

/// The connections of one address, and what they share.
#[derive(Debug)]
struct Address {
    connections: usize,
    load: Arc<Load>,
}

impl Default for Address {
    fn default() -> Self {
        Self {
            connections: 0,
            load: Arc::new(Load::of_address()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Watched {
    activity: Arc<Activity>,
    streams: StreamTasks,
    /// The address that it counts for, if any.
    address: Option<IpAddr>,
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
            by_address: HashMap::new(),
        }
    }

    /// Tells whether there are connections to look at.
    pub(crate) fn is_needed(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Returns how many connections an address has.
    pub(crate) fn of_address(&self, address: IpAddr) -> usize {
        let own = self.by_address.get(&address);
        own.map_or(0, |own| own.connections)
    }

    /// Returns the load that counts an address's requests. Its next connection is about to be
    /// added.
    pub(crate) fn load_of(&mut self, address: IpAddr) -> Arc<Load> {
        Arc::clone(&self.by_address.entry(address).or_default().load)
    }

    pub(crate) fn add(&mut self, id: Id, watched: Watched) {
        if self.connections.is_empty() {
            self.next_at = watched.since.plus(self.limits.watch_period());
        }
        if let Some(address) = watched.address {
            let own = self.by_address.entry(address).or_default();
            own.connections = own.connections.saturating_add(1);
        }
        self.connections.insert(id, watched);
    }

    pub(crate) fn remove(&mut self, id: Id) {
        let Some(watched) = self.connections.remove(&id) else {
            return;
        };
        if let Some(address) = watched.address
            && let Entry::Occupied(mut own) = self.by_address.entry(address)
        {
            let left = own.get().connections.saturating_sub(1);
            own.get_mut().connections = left;
            if left == 0 {
                own.remove();
            }
        }
    }

    /// Ends the connection that is without a request for the longest time; if there is none, the
    /// one that withholds its request's body for longest. One that was told before and is still
    /// open is cut. One that just came has a period to ask. Returns whether a connection was told
    /// for the first time.
    pub(crate) fn end_longest_idle(&mut self, now: BootTime) -> bool {
        let period = self.limits.watch_period();
        let idle = self.connections.values_mut();
        let idle = idle.filter(|watched| watched.is_idle_for(period, now));
        let longest = idle.min_by_key(|watched| {
            let has_begun = matches!(watched.phase, Phase::Body(..));
            (has_begun, !watched.told_to_close, watched.since)
        });
        let Some(longest) = longest else {
            return false;
        };
        let is_first = !longest.told_to_close;
        longest.end();
        is_first
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
    pub(crate) fn new(
        activity: Arc<Activity>,
        streams: StreamTasks,
        address: Option<IpAddr>,
        since: BootTime,
    ) -> Self {
        Self {
            phase: activity.phase(),
            activity,
            streams,
            address,
            since,
            told_to_close: false,
        }
    }

    /// Tells whether it waited for a request, or for the body of one, all that time. What it did
    /// since the last look counts.
    fn is_idle_for(&self, period: Duration, now: BootTime) -> bool {
        let phase = self.activity.phase();
        match phase {
            Phase::Head(_) | Phase::Idle(_) | Phase::Body(..) => {
                phase == self.phase && now.since(self.since) >= period
            }
            Phase::Busy | Phase::WriteBlocked(_) => false,
        }
    }

    fn look(&mut self, now: BootTime, limits: &AcceptLimits) {
        let stall = Duration::from_millis(limits.write_stall_ms);
        self.streams.look(now, stall);
        let phase = self.activity.phase();
        if phase != self.phase {
            self.phase = phase;
            self.since = now;
            return;
        }
        let waited = now.since(self.since);
        match phase {
            Phase::Head(_) if waited >= Duration::from_millis(limits.header_read_ms) => self.cut(),
            Phase::WriteBlocked(_) if waited >= stall => self.cut(),
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
            // How long a body may take is known to what reads it.
            Phase::Busy
            | Phase::Body(..)
            | Phase::Head(_)
            | Phase::WriteBlocked(_)
            | Phase::Idle(_) => {}
        }
    }

    /// Ends without waiting for more of a head.
    fn end(&mut self) {
        let is_idle = matches!(self.activity.phase(), Phase::Idle(_));
        if is_idle && !self.told_to_close {
            self.close();
        } else {
            self.cut();
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
