//! How many streams (feeds, watched leases, gRPC) may be open, in all and per address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use super::kinds;
use super::problem::Problem;
use crate::rate::network;
use crate::settings::StreamLimits;

#[derive(Debug)]
pub(super) struct Streams {
    limits: StreamLimits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// An open stream, counted until this is dropped.
#[derive(Debug)]
pub(super) struct StreamPermit {
    streams: Arc<Streams>,
    address: IpAddr,
}

impl Streams {
    pub(super) fn new(limits: StreamLimits) -> Self {
        Self {
            limits,
            open: Mutex::default(),
        }
    }

    /// Counts one more stream of an address, if its limit and that of all allow it.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Result<StreamPermit, Problem> {
        let address = network(address);
        let mut open = self.open();
        if open.total >= self.limits.total {
            return Err(Problem::new(&kinds::OVERLOADED));
        }
        let own = open.by_address.get(&address).copied().unwrap_or_default();
        if own >= self.limits.per_address {
            let text = "this address has as many streams open as it may";
            return Err(Problem::detailed(&kinds::RATE_LIMITED, text));
        }
        open.by_address.insert(address, own.saturating_add(1));
        open.total = open.total.saturating_add(1);
        Ok(StreamPermit {
            streams: Arc::clone(self),
            address,
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        crate::lock(&self.open)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open();
        open.total = open.total.saturating_sub(1);
        if let Some(own) = open.by_address.get_mut(&self.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                open.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_bounded_and_come_back() {
        let limits = StreamLimits {
            total: 3,
            per_address: 2,
        };
        let streams = Arc::new(Streams::new(limits));
        let enter = |address: &str| streams.enter(address.parse().unwrap());
        let first = enter("2001:db8::1").unwrap();
        let second = enter("2001:db8::2").unwrap();
        assert_eq!(enter("2001:db8::3").unwrap_err().code(), "rate_limited");
        let other = enter("192.0.2.1").unwrap();
        assert_eq!(enter("192.0.2.2").unwrap_err().code(), "overloaded");
        drop((first, other));
        drop(enter("::ffff:192.0.2.1").unwrap());
        drop(second);
        assert!(streams.open().by_address.is_empty());
        assert_eq!(streams.open().total, 0);
    }
}
