//! Rate limits: the arithmetic, and the counts that servers share on Redis. The server decides
//! which callers are counted, and how a refusal looks; nothing here knows of HTTP.
//!
//! Every server counts for itself first ([`Quota::take`]) and asks [`SharedRates`] only about
//! requests that it would let in. So a refused caller costs no call until its time has come, and
//! while the others' count cannot be read, each server still keeps its own.

mod quota;
mod redis;

use std::fmt::Debug;

use soldonce_core::{EventNo, Span};

pub use quota::{InvalidQuota, Quota, Taken};
pub use redis::RedisRates;

pub use crate::redis::AskError as Unshared;
pub use soldonce_lease::backend::Fut;

/// A caller that is counted, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey {
    /// The limit: a word of `[a-z]`, the same on every server.
    pub kind: &'static str,
    /// The bits of an id or an address.
    pub id: u128,
}

/// Counts that several servers share.
pub trait SharedRates: Debug + Send + Sync {
    /// Takes one request from the quota of `key`, if there is one left.
    ///
    /// # Errors
    /// [`Unshared`] when it cannot be known what the others counted; the request then goes on.
    ///
    /// # Cancel safety
    /// Dropped, the request may be counted.
    fn take(&self, key: RateKey, quota: Quota) -> Fut<'_, Result<Taken, Unshared>>;

    /// Reports what this server counts of an address's holds of one event, in place of what it
    /// reported before; returns what all servers count.
    ///
    /// # Errors
    /// [`Unshared`] when that cannot be known; the request then goes on.
    ///
    /// # Cancel safety
    /// Dropped, it may be reported.
    fn tell_held(&self, own: OwnHeld) -> Fut<'_, Result<HeldSums, Unshared>>;
}

/// The count of one server of what an address holds of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnHeld {
    /// The bits of the address.
    pub address: u128,
    pub event: EventNo,
    /// Units in live holds.
    pub units: u32,
    /// Payments under way.
    pub checkouts: u32,
    /// After this time none of it is held any more.
    pub ends_in: Span,
}

/// The sums over all servers of what an address holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldSums {
    /// Units in live holds.
    pub units: u32,
    /// Units of one event.
    pub of_event: u32,
    /// Payments under way.
    pub checkouts: u32,
}
