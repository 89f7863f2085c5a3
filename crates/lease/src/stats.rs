//! Counters. Never by name: names are without bound.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// For the one that counts what is there now.
    pub(crate) fn set(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.0.store(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters themselves.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// What happened since the leases were connected. `lease.md` 2.4.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats {
                    $($name: self.$name.get(),)*
                }
            }
        }
    };
}

counters! {
    /// Leases held now.
    live,
    /// Leases granted.
    acquired,
    /// Requests that ended refused, or timed out refused.
    refused,
    /// Requests that ended without the backend's answer, or with an error.
    failed,
    /// Milliseconds that all ended requests took together.
    wait_ms,
    /// Leases released by their holders.
    released,
    /// Milliseconds that all released leases were held together.
    held_ms,
    /// Renewals confirmed.
    renewed,
    /// Renewals without the backend's answer.
    renew_failures,
    /// Leases lost because the deadline passed.
    lost_deadline,
    /// Leases lost because the backend did not know them.
    lost_gone,
    /// Leases lost to another owner.
    lost_taken,
    /// Leases lost at their cap.
    lost_cap,
    /// Leases lost because the target had seen a higher token: stale writes.
    lost_overtaken,
    /// Acquire commands that may have run.
    unknown_acquire,
    /// Renewals that may have run.
    unknown_renew,
    /// Releases that may have run.
    unknown_release,
    /// Grants whose callers had gone away, released.
    orphans,
    /// Releases that the backend never answered, left to the ttl.
    left_to_ttl,
    /// Connections to the backend that were replaced.
    link_rebuilds,
}

/// What a shutdown came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Releases that the backend has answered, a group counting as one.
    pub released: u64,
    /// Leases, and what acquires may have left, that only their ttl ends. A group counts as one.
    pub left_to_ttl: u64,
}
