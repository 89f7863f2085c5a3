//! Rate limits: the arithmetic, and what servers count together on Redis. Who is
//! counted, and what a refusal looks like, is the server's to say; nothing here knows of HTTP.
//!
//! Every server counts for itself first ([`Quota::take`]) and asks [`SharedRates`] only about what
//! it would let in. So a refused caller costs no call until its time has come, and while the
//! others' count cannot be had, each server still keeps its own.

mod quota;
mod redis;

use std::fmt::Debug;

use soldonce_core::{EventNo, Span};

pub use quota::{InvalidQuota, Quota, Taken};
pub use redis::RedisRates;

pub use crate::redis::Unheard as Unshared;
pub use soldonce_lease::backend::Fut;

/// Who is counted, for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey {
    /// For what: a word of `[a-z]`, the same on every server.
    pub kind: &'static str,
    /// Who: the bits of an id or an address.
    pub id: u128,
}

/// What several servers count together.
pub trait SharedRates: Debug + Send + Sync {
    /// Takes one request from the quota of `key`, if there is one left.
    ///
    /// # Errors
    /// [`Unshared`] when it cannot be known what the others counted; the request then goes on.
    ///
    /// # Cancel safety
    /// Dropped, the request may be counted.
    fn take(&self, key: RateKey, quota: Quota) -> Fut<'_, Result<Taken, Unshared>>;

    /// Tells what this server counts of what an address holds of one event, in place of what it told
    /// before; returns what all servers count.
    ///
    /// # Errors
    /// [`Unshared`] when that cannot be known; the request then goes on.
    ///
    /// # Cancel safety
    /// Dropped, it may be told.
    fn tell_held(&self, own: OwnHeld) -> Fut<'_, Result<HeldSums, Unshared>>;
}

/// What one server counts of what an address holds of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnHeld {
    /// The bits of the address.
    pub address: u128,
    pub event: EventNo,
    /// Units in live holds.
    pub units: u32,
    /// Payments under way.
    pub checkouts: u32,
    /// After so long none of it is held any more.
    pub ends_in: Span,
}

/// What an address holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldSums {
    /// Units in live holds.
    pub units: u32,
    /// Those of one event.
    pub of_event: u32,
    /// Payments under way.
    pub checkouts: u32,
}
