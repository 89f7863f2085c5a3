//! The shield between servers: turns losers away before they reach the ledger, by what all servers
//! told it. It never decides. It may be flushed, split, late or wrong at any time: what it lets
//! through is decided by the ledger, and what it wrongly refuses is refused for a bounded time
//! (lease.md 6.5). It stands behind the shield in process (`live/shield`), which knows what its own
//! server knows.
//!
//! Reading order: the seam below, where a unit belongs (`zones`), the scripts and [`RedisShield`]
//! (`redis`), what is told after commits (`messages`). The engine asks in `engine/shields.rs`.

mod messages;
mod redis;
mod zones;

use std::fmt::Debug;

use soldonce_core::{EventNo, Holder, Span, Timestamp};
use soldonce_lease::backend::Fut;

pub(crate) use messages::{Message, Round, SharedShield, full};
pub use redis::RedisShield;
pub(crate) use zones::parts;
pub use zones::{Contents, Part};

/// What several servers know of the units that are wanted, cheap to ask and never trusted.
pub trait Shield: Debug + Send + Sync + 'static {
    /// Claims everything that is wanted for a moment, unless another holder is known to have some of
    /// it: all or nothing. `parts` are in zone order.
    ///
    /// # Cancel safety
    /// Dropped, units may be claimed for [`SHIELD_CLAIM_MS`](crate::limits::SHIELD_CLAIM_MS).
    fn try_units<'a>(&'a self, who: Who, parts: &'a [Part]) -> Fut<'a, Tried>;

    /// Tells what the ledger has committed in one zone; whether it was heard.
    ///
    /// # Cancel safety
    /// Dropped, it may be taken over.
    fn note<'a>(&'a self, zone: Zone, notes: &'a [Note]) -> Fut<'a, bool>;

    /// Gives a holder's own claims up; whether it was heard.
    ///
    /// # Cancel safety
    /// Dropped, they may be given up.
    fn drop_claims<'a>(&'a self, who: Who, part: &'a Part) -> Fut<'a, bool>;
}

/// What a server knows of a seat or an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) thing: Thing,
    pub(crate) version: u64,
    pub(crate) state: KnownState,
}

/// What it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownState {
    /// In a hold until then.
    Held { until: Timestamp, who: Who },
    /// Sold; of an area: full.
    Sold,
    /// Neither. Blocked seats are for the ledger to refuse.
    Free,
}

/// 64 bits of a holder. Equal ones mean "perhaps himself": the ledger knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Who(pub u64);

impl Who {
    /// The bits of a holder, the same on every server.
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

/// Units of an event that are asked about together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Zone {
    /// Which ledger: servers of different ones may share a Redis.
    pub ledger: u64,
    pub event: EventNo,
    /// Which part of it.
    pub no: u32,
}

/// What became of a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// Nothing is known against it: ask the ledger.
    Passed,
    /// Another holder is known to have some of it: every such unit, in the order of the parts.
    Refused(Vec<Belief>),
    /// Nothing was heard: ask the ledger.
    Missed,
}

/// What the shield holds to be true of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Which seat or area.
    pub thing: Thing,
    pub kind: Kind,
    /// How much longer this is believed.
    pub left: Span,
    /// The unit's version at which it was so.
    pub version: u64,
}

/// A seat or an area, by its number in the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A seat.
    Seat(soldonce_core::UnitNo),
    /// An area.
    Area(soldonce_core::AreaNo),
}

/// What a shield believes a unit to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A request asks the ledger for it just now.
    Claimed,
    /// In a hold.
    Held,
    /// Sold; of an area: full.
    Sold,
    /// Nothing against it.
    Free,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Claimed, Self::Held, Self::Sold, Self::Free];

    /// Its letter in the zone's entries.
    const fn letter(self) -> u8 {
        match self {
            Self::Claimed => b'c',
            Self::Held => b'h',
            Self::Sold => b's',
            Self::Free => b'f',
        }
    }

    fn of_letter(letter: i64) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| i64::from(kind.letter()) == letter)
    }
}

/// What the ledger has committed of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// Which seat or area, by its number.
    pub number: u32,
    /// The unit's version; what is known at a higher one stays.
    pub version: u64,
    pub kind: Kind,
    /// For so long.
    pub left: Span,
    /// Whose, if it is held.
    pub who: Who,
}
