//! All limits of this crate. `lease.md` 3 (LT4), 6.2, 7.

use std::time::Duration;

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Longest namespace, in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 32;

/// Most names in one grant.
pub const NAMES_MAX: usize = 64;

/// How many nodes a Redlock may have: an even number survives no more failures than one less.
pub const REDLOCK_NODES: [usize; 3] = [3, 5, 7];

/// Most renewals or releases in one batch.
pub const BATCH_MAX: usize = 100;

/// Longest meta text, in bytes, as stored.
pub const META_BYTES_MAX: usize = 256;

/// Longest ttl.
pub const TTL_MAX: Duration = Duration::from_hours(24);

/// Longest [`crate::Request::max_lifetime`].
pub const CAP_MAX: Duration = Duration::from_hours(30 * 24);

/// Longest wait for replicas, below the ten seconds after which the driver of a cluster gives up.
pub const REPLICAS_WAIT_MAX: Duration = Duration::from_secs(9);

/// Most waiters of this process on one name.
pub const WAITERS_MAX: usize = 10_000;

/// Most waiters in a backend's fair queue for one name.
pub const QUEUE_MAX: usize = 128;

/// A queued waiter that has not asked for this long counts as dead.
pub const WAITER_ALIVE: Duration = Duration::from_secs(3);

/// Most notices kept for a reader that lags.
pub const NOTICES_MAX: usize = 1_024;

/// Most floors remembered from targets.
pub const FLOORS_MAX: usize = 10_000;
