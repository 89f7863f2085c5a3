//! What an operator may set of the limits.

use std::sync::Arc;

use soldonce_engine::rate::{Quota, SharedRates};

use super::{HeldLimits, Network};
use crate::limits::{
    CHECKOUTS_PER_ADDRESS_MAX, HELD_SHARE_PERCENT_MAX, HELD_UNITS_PER_ADDRESS_MAX,
    RATE_ACQUIRES_PER_MINUTE, RATE_ADDRESS_COMMANDS_PER_MINUTE, RATE_COMMANDS_PER_MINUTE,
    RATE_LAPSES_PER_HOUR, RATE_READS_PER_MINUTE, RATE_SESSIONS_PER_MINUTE,
};

/// How often callers may ask, and how much shoppers at one address may hold. No quota is no limit.
#[derive(Clone, Debug)]
pub struct RateLimits {
    /// New sessions of one address (IPv6: of one /64 network); default
    /// [`RATE_SESSIONS_PER_MINUTE`].
    pub sessions: Option<Quota>,
    /// Holds and all other commands of one session; default [`RATE_COMMANDS_PER_MINUTE`].
    pub commands: Option<Quota>,
    /// Commands of all sessions at one address; default [`RATE_ADDRESS_COMMANDS_PER_MINUTE`].
    pub address_commands: Option<Quota>,
    /// Holds of sessions at one address that end unpaid by their time; with none left further holds
    /// wait; default [`RATE_LAPSES_PER_HOUR`].
    pub lapses: Option<Quota>,
    /// What sessions at one address may hold at once; default [`HELD_UNITS_PER_ADDRESS_MAX`],
    /// [`HELD_SHARE_PERCENT_MAX`] and [`CHECKOUTS_PER_ADDRESS_MAX`].
    pub held: HeldLimits,
    /// Reads and openings of feeds of one address, and its requests with wrong credentials; default
    /// [`RATE_READS_PER_MINUTE`].
    pub reads: Option<Quota>,
    /// Requests of one API key; default none.
    pub keys: Option<Quota>,
    /// Acquires of leases by one API key; default [`RATE_ACQUIRES_PER_MINUTE`].
    pub acquires: Option<Quota>,
    /// Peers whose `X-Forwarded-For` is believed; default none.
    pub trusted_proxies: Vec<Network>,
    /// Where servers count together; default each for itself.
    pub shared: Option<Arc<dyn SharedRates>>,
}

impl RateLimits {
    /// Returns settings without limits.
    pub fn off() -> Self {
        Self {
            sessions: None,
            commands: None,
            address_commands: None,
            lapses: None,
            held: HeldLimits::default(),
            reads: None,
            keys: None,
            acquires: None,
            trusted_proxies: Vec::new(),
            shared: None,
        }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        let per_minute = |requests| Quota::new(requests, 60).ok();
        Self {
            sessions: per_minute(RATE_SESSIONS_PER_MINUTE),
            commands: per_minute(RATE_COMMANDS_PER_MINUTE),
            address_commands: per_minute(RATE_ADDRESS_COMMANDS_PER_MINUTE),
            lapses: Quota::new(RATE_LAPSES_PER_HOUR, 3_600).ok(),
            held: HeldLimits {
                units: Some(HELD_UNITS_PER_ADDRESS_MAX),
                share_percent: Some(HELD_SHARE_PERCENT_MAX),
                checkouts: Some(CHECKOUTS_PER_ADDRESS_MAX),
            },
            reads: per_minute(RATE_READS_PER_MINUTE),
            acquires: per_minute(RATE_ACQUIRES_PER_MINUTE),
            ..Self::off()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_without_a_key_is_limited_by_default() {
        let limits = RateLimits::default();
        for quota in [limits.sessions, limits.commands, limits.reads] {
            assert_eq!(quota.unwrap().window_s(), 60);
        }
        assert_eq!(limits.keys, None);
        assert!(limits.trusted_proxies.is_empty());
    }
}
