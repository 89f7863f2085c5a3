//! The shield between servers: a cache that refuses requests for taken units before they reach the
//! ledger, by what all servers told it. It never decides. It may be flushed, split, late or wrong
//! at any time: what it lets through is decided by the ledger, and what it wrongly refuses is
//! refused for a bounded time (lease.md 6.5). It is asked after the shield in process
//! (`live/shield`), which knows what its own server knows.
//!
//! Reading order: the trait below, the zone of a unit (`zones`), the scripts and [`RedisShield`]
//! (`redis`), the messages after commits (`messages`). The engine asks in `engine/shields.rs`.

mod messages;
mod redis;
mod zones;

use std::fmt::Debug;

use soldonce_core::{EventNo, Holder, Span, Timestamp, words};
use soldonce_lease::backend::Fut;

pub(crate) use messages::{Message, Round, SharedShield, full};
pub use redis::RedisShield;
pub(crate) use zones::parts;
pub use zones::{Contents, Part};

/// The shared knowledge of several servers about taken units, cheap to ask and never trusted.
pub trait Shield: Debug + Send + Sync + 'static {
    /// Claims all wanted units for a moment, or none if another holder is known to have one of
    /// them. `parts` are in zone order.
    ///
    /// # Cancel safety
    /// If the future is dropped, units may be claimed for
    /// [`SHIELD_CLAIM_MS`](crate::limits::SHIELD_CLAIM_MS).
    fn try_units<'a>(&'a self, who: Who, parts: &'a [Part]) -> Fut<'a, Tried>;

    /// Sends what the ledger has committed in one zone; returns whether the shield answered.
    ///
    /// # Cancel safety
    /// If the future is dropped, the notes may still be applied.
    fn note<'a>(&'a self, zone: Zone, notes: &'a [Note]) -> Fut<'a, bool>;

    /// Releases a holder's own claims; returns whether the shield answered.
    ///
    /// # Cancel safety
    /// If the future is dropped, the claims may still be released.
    fn drop_claims<'a>(&'a self, who: Who, part: &'a Part) -> Fut<'a, bool>;
}

/// The state of a seat or an area that a server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) thing: Thing,
    pub(crate) version: u64,
    pub(crate) state: KnownState,
}

/// The state of a unit or an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownState {
    /// In a hold of `who` that ends at `until`.
    Held { until: Timestamp, who: Who },
    /// Sold; of an area: full.
    Sold,
    /// Neither held nor sold. Blocked seats are refused by the ledger.
    Free,
}

/// A 64-bit hash of a holder. Equal ones mean "perhaps the same holder": the ledger decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Who(pub u64);

impl Who {
    /// Hashes a holder; the result is the same on every server.
    pub fn of(holder: &Holder) -> Self {
        let bytes = holder
            .caller
            .bytes()
            .iter()
            .chain(holder.name.as_str().as_bytes());
        // FNV-1a: an attacker who finds two holders with equal bits gets both past the shield, no further.
        Self(bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }
}

/// Units of an event that are asked for in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// The ledger: servers of different ledgers may share a Redis.
    pub ledger: u64,
    pub event: EventNo,
    /// The number of the zone in the event.
    pub no: u32,
}

/// The result of [`Shield::try_units`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// No conflict is known: ask the ledger.
    Passed,
    /// Another holder is known to have these units, in the order of the parts.
    Refused(Vec<Belief>),
    /// The shield did not answer: ask the ledger.
    Missed,
}

/// What the shield believes of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Which seat or area.
    pub thing: Thing,
    pub kind: Kind,
    /// For how much longer this is believed.
    pub left: Span,
    /// The unit's version that this is about.
    pub version: u64,
}

/// A seat or an area, by its number in the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    Seat(soldonce_core::UnitNo),
    Area(soldonce_core::AreaNo),
}

words! {
    /// What a shield believes a unit to be, by its letter in the zone's entries.
    pub Kind:
    /// A request is asking the ledger for it now.
    Claimed = "c",
    /// In a hold.
    Held = "h",
    /// Sold; of an area: full.
    Sold = "s",
    /// None of these.
    Free = "f",
}

impl Kind {
    fn letter(self) -> u8 {
        self.as_str().bytes().next().unwrap_or_default()
    }

    fn of_letter(letter: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| i64::from(kind.letter()) == letter)
    }
}

/// The state of a unit that the ledger has committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The number of the seat or area.
    pub number: u32,
    /// The unit's version; an entry with a higher one is not overwritten.
    pub version: u64,
    pub kind: Kind,
    /// How long this is believed.
    pub left: Span,
    /// The holder, if it is held.
    pub who: Who,
}
