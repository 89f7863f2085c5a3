//! What others are told of a seat besides its word: the version, and all bits of its holder. Sixteen
//! bytes a seat, and none without a shield between servers.

use std::sync::atomic::{AtomicU64, Ordering};

use soldonce_core::{Inventory, Unit, UnitNo, Version};

use super::who_has;
use crate::shield::Who;

/// Seats by their numbers; none if none is asked for.
#[derive(Default)]
pub(super) struct Memory(Box<[Seat]>);

struct Seat {
    version: AtomicU64,
    who: AtomicU64,
}

impl Memory {
    pub(super) fn of(inventory: &Inventory, seats: &[Unit]) -> Self {
        let seat = |unit: &Unit| Seat {
            version: AtomicU64::new(unit.version.0),
            who: AtomicU64::new(who_has(inventory, unit.state).0),
        };
        Self(seats.iter().map(seat).collect())
    }

    /// Under the stamp of the shield, as its words.
    pub(super) fn keep(&self, seat: UnitNo, version: Version, who: Who) {
        if let Some(kept) = self.0.get(seat.index()) {
            kept.version.store(version.0, Ordering::Relaxed);
            kept.who.store(who.0, Ordering::Relaxed);
        }
    }

    /// Version and holder; to be believed if the stamp of the shield says so.
    pub(super) fn of_seat(&self, seat: UnitNo) -> Option<(Version, Who)> {
        let kept = self.0.get(seat.index())?;
        let version = Version(kept.version.load(Ordering::Relaxed));
        Some((version, Who(kept.who.load(Ordering::Relaxed))))
    }
}
