//! What the HTTP/2 requests of one address, and of all, may cost at once: how many are under way,
//! and the bytes of answers that wait to be taken. HTTP/1 has one request a connection, so the
//! bound of connections is its bound too. The only request of an HTTP/2 connection is never
//! refused for want of room, either.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{
    ANSWER_BYTES_MAX, ANSWER_BYTES_PER_ADDRESS_MAX, HTTP2_REQUESTS_MAX,
    HTTP2_REQUESTS_PER_ADDRESS_MAX,
};

/// What is under way now, and how much may be.
#[derive(Debug)]
pub(crate) struct Load {
    requests: AtomicU64,
    requests_max: u64,
    bytes: AtomicU64,
    bytes_max: u64,
}

impl Load {
    pub(crate) const fn of_address() -> Self {
        Self::new(HTTP2_REQUESTS_PER_ADDRESS_MAX, ANSWER_BYTES_PER_ADDRESS_MAX)
    }

    pub(crate) const fn of_all() -> Self {
        Self::new(HTTP2_REQUESTS_MAX, ANSWER_BYTES_MAX)
    }

    const fn new(requests_max: u64, bytes_max: u64) -> Self {
        Self {
            requests: AtomicU64::new(0),
            requests_max,
            bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    fn has_room(&self) -> bool {
        self.requests.load(Ordering::Relaxed) < self.requests_max
            && self.bytes.load(Ordering::Relaxed) < self.bytes_max
    }
}

/// The loads that a connection counts for.
#[derive(Debug)]
pub(crate) struct Shares {
    pub(crate) all: Arc<Load>,
    /// None for a trusted proxy.
    pub(crate) address: Option<Arc<Load>>,
}

impl Shares {
    fn loads(&self) -> impl Iterator<Item = &Load> {
        std::iter::once(&*self.all).chain(self.address.as_deref())
    }

    /// Tells whether there is room for one more request.
    pub(crate) fn has_room(&self) -> bool {
        self.loads().all(Load::has_room)
    }

    /// Counts one more request.
    pub(crate) fn enter(self: &Arc<Self>) -> Share {
        for load in self.loads() {
            load.requests.fetch_add(1, Ordering::Relaxed);
        }
        Share {
            of: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// One request, until its answer was taken.
#[derive(Debug)]
pub(crate) struct Share {
    of: Arc<Shares>,
    bytes: u64,
}

impl Share {
    /// Counts an answer of so many bytes.
    pub(crate) fn answers(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        for load in self.of.loads() {
            load.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        for load in self.of.loads() {
            load.requests.fetch_sub(1, Ordering::Relaxed);
            load.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_counted_back() {
        let shares = Arc::new(Shares {
            all: Arc::new(Load::of_all()),
            address: Some(Arc::new(Load::new(2, 100))),
        });
        let mut first = shares.enter();
        assert!(shares.has_room());
        let second = shares.enter();
        assert!(!shares.has_room(), "two requests");
        drop(second);
        first.answers(100);
        assert!(!shares.has_room(), "a hundred bytes");
        drop(first);
        assert!(shares.has_room());
        for load in shares.loads() {
            assert_eq!(load.requests.load(Ordering::Relaxed), 0);
            assert_eq!(load.bytes.load(Ordering::Relaxed), 0);
        }
    }
}
