//! What the shield between servers is told of a seat in addition to its word: the version, and all
//! bits of its holder. It takes sixteen bytes a seat, and none without that shield.

use std::sync::atomic::{AtomicU64, Ordering};

use soldonce_core::{Inventory, Unit, UnitNo, Version};

use super::who_has;
use crate::shield::Who;

/// Seats by their numbers; empty without a shield between servers.
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

    /// Stores version and holder of a seat. The caller has made the shield's stamp odd.
    pub(super) fn keep(&self, seat: UnitNo, version: Version, who: Who) {
        if let Some(kept) = self.0.get(seat.index()) {
            kept.version.store(version.0, Ordering::Relaxed);
            kept.who.store(who.0, Ordering::Relaxed);
        }
    }

    /// Reads version and holder of a seat; valid only if the shield's stamp is even and unchanged.
    pub(super) fn of_seat(&self, seat: UnitNo) -> Option<(Version, Who)> {
        let kept = self.0.get(seat.index())?;
        let version = Version(kept.version.load(Ordering::Relaxed));
        Some((version, Who(kept.who.load(Ordering::Relaxed))))
    }
}
