//! How often callers may ask: who is counted for what, in memory of a fixed size. Decides nothing
//! about units and writes no answers; those are in `http/rates.rs`.
//!
//! A key is counted as itself, a session's commands as the session's and as the address's, and all
//! else by address. A session's reads count by address too, so that sessions, which address alone
//! pays for, bring nothing but their own commands. What an address holds is counted in `held.rs`.

mod address;
mod counts;
mod held;
mod settings;
mod table;

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderValue;
use soldonce_clock::BootTime;
use soldonce_core::words;
use soldonce_engine::rate::{Quota, RateKey, SharedRates, Taken};

pub use self::address::{InvalidNetwork, Network};
pub use self::held::HeldLimits;
pub use self::settings::RateLimits;

pub(crate) use self::address::{FORWARDED_FOR, client, id_of, is_among, is_https, network};
pub(crate) use self::counts::{LEASES, RateCounts, STREAMS};
pub(crate) use self::held::{Held, HeldKind, Reserved, Wish, exceeded};

use self::table::Table;

words! {
    /// What is counted apart from the rest, by its name in headers, metrics and Redis.
    #[derive(Default)]
    pub(crate) RateKind:
    /// New sessions, by address.
    #[default]
    Sessions = "sessions",
    /// What a session does, by session.
    Commands = "commands",
    /// What all sessions at an address do, by address.
    AddressCommands = "address",
    /// Holds of sessions that ended unpaid by their time, by address.
    Lapses = "lapses",
    /// Reads, and requests that were refused for their credentials, by address.
    Reads = "reads",
    /// Everything an API key does, by key.
    Keys = "keys",
    /// Acquires of leases, by key.
    Acquires = "acquires",
}

impl RateKind {
    /// Tells whether it is the address that is counted.
    pub(crate) const fn is_by_address(self) -> bool {
        match self {
            Self::Sessions | Self::AddressCommands | Self::Lapses | Self::Reads => true,
            Self::Commands | Self::Keys | Self::Acquires => false,
        }
    }
}

/// A caller as it is counted: for what, and the bits of its id or address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Counting {
    pub(crate) kind: RateKind,
    pub(crate) id: u128,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) taken: Taken,
}

/// A limit in force.
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) kind: RateKind,
    quota: Quota,
    pub(crate) policy: HeaderValue,
}

impl Limit {
    fn new(kind: RateKind, quota: Quota) -> Option<Self> {
        let (requests, window_s) = (quota.requests(), quota.window_s());
        let policy = format!("\"{}\";q={requests};w={window_s}", kind.as_str());
        let policy = HeaderValue::try_from(policy).ok()?;
        Some(Self {
            kind,
            quota,
            policy,
        })
    }
}

/// The limits of a server and what it has counted.
#[derive(Debug)]
pub(crate) struct Rates {
    /// By place in [`RateKind::ALL`].
    limits: [Option<Limit>; RateKind::ALL.len()],
    table: Table,
    pub(crate) shared: Option<Arc<dyn SharedRates>>,
    pub(crate) held_limits: HeldLimits,
    pub(crate) held: Arc<Held>,
    pub(crate) trusted_proxies: Vec<Network>,
    pub(crate) counts: RateCounts,
}

impl Rates {
    pub(crate) fn new(settings: RateLimits) -> Self {
        let limits = RateKind::ALL.map(|kind| {
            let quota = match kind {
                RateKind::Sessions => settings.sessions,
                RateKind::Commands => settings.commands,
                RateKind::AddressCommands => settings.address_commands,
                RateKind::Lapses => settings.lapses,
                RateKind::Reads => settings.reads,
                RateKind::Keys => settings.keys,
                RateKind::Acquires => settings.acquires,
            };
            Limit::new(kind, quota?)
        });
        Self {
            limits,
            table: Table::default(),
            shared: settings.shared,
            held_limits: settings.held,
            held: Arc::default(),
            trusted_proxies: settings.trusted_proxies,
            counts: RateCounts::default(),
        }
    }

    fn limit(&self, kind: RateKind) -> Option<&Limit> {
        let mut limits = self.limits.iter().flatten();
        limits.find(|limit| limit.kind == kind)
    }

    /// Counts a request; None where its kind has no limit.
    ///
    /// # Cancel safety
    /// Dropped, the request is counted all the same.
    pub(crate) async fn count(&self, who: Counting, now: BootTime) -> Option<Counted<'_>> {
        let limit = self.limit(who.kind)?;
        let now_us = micros(now.since(BootTime::default()));
        let quota = limit.quota;
        let own = self
            .table
            .update(who, |paid_us| quota.take(paid_us, now_us));
        let taken = match (&self.shared, own) {
            (Some(shared), Taken::Passed { .. }) => {
                self.share(&**shared, (who, quota), now_us, own).await
            }
            _ => own,
        };
        if let Taken::Refused { .. } = taken {
            self.counts.refused(who.kind.as_str());
        }
        Some(Counted { limit, taken })
    }

    /// Tells whether it matters what an address holds.
    pub(crate) fn are_holds_limited(&self) -> bool {
        self.held_limits != HeldLimits::default() || self.limit(RateKind::Lapses).is_some()
    }

    /// Looks whether a request would be let in, and counts none.
    pub(crate) fn look(&self, who: Counting, now: BootTime) -> Option<Counted<'_>> {
        let limit = self.limit(who.kind)?;
        let now_us = micros(now.since(BootTime::default()));
        let look = |paid_us| (limit.quota.take(paid_us, now_us).0, paid_us);
        let taken = self.table.update(who, look);
        Some(Counted { limit, taken })
    }

    /// Asks what the other servers counted. Without an answer, what this one counted decides.
    async fn share(
        &self,
        shared: &dyn SharedRates,
        (who, quota): (Counting, Quota),
        now_us: u64,
        own: Taken,
    ) -> Taken {
        let key = RateKey {
            kind: who.kind.as_str(),
            id: who.id,
        };
        match shared.take(key, quota).await {
            Ok(Taken::Refused { retry_in }) => {
                // Until then Redis need not be asked about this caller.
                let until = quota.refused_until(retry_in, now_us);
                self.table.update(who, |paid_us| ((), paid_us.max(until)));
                Taken::Refused { retry_in }
            }
            Ok(passed) => passed,
            Err(_) => {
                self.counts.unshared();
                own
            }
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
