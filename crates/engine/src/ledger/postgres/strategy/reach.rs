//! Which units a command reaches. Whoever locks or leases units before it is decided takes all of them
//! at once and in unit order: who took them one after the other would wait in a circle with somebody
//! else who does.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use soldonce_core::{BookingId, Command, UnitNo, Wish};

use super::errand::{Decided, Errand};
use crate::ledger::named;
use crate::ledger::postgres::desk::Desk;

impl Desk {
    /// From which open place of an area on whoever lost a race is to take places. At first everybody
    /// takes the first ones, as on every ledger; those who lost would meet there again.
    pub(super) fn place(&self) -> u32 {
        let server = u64::try_from(u128::from_be_bytes(self.server.0) & 0xffff_ffff).unwrap_or(0);
        // Never the same for two of one server.
        let count = self.next_batch.fetch_add(1, Ordering::Relaxed);
        u32::try_from(server.wrapping_add(count) & 0xffff_ffff).unwrap_or(0)
    }
}

impl Errand<'_> {
    /// The units to lock before the command is decided, in unit order: those that it names, and
    /// those that were found to belong to them. None where the engine chooses.
    pub(super) async fn units(&self) -> Vec<UnitNo> {
        let mut units: Vec<UnitNo> = match &self.asked.command {
            Command::Hold(new) => match &new.wish {
                Wish::Named(selection) => selection.seats().to_vec(),
                Wish::Best { .. } => Vec::new(),
            },
            Command::Change(change) => change.add.seats().to_vec(),
            Command::Sell { selection, .. }
            | Command::Block { selection, .. }
            | Command::Unblock { selection, .. } => selection.seats().to_vec(),
            Command::CreateEvent(_)
            | Command::UpdatePolicy { .. }
            | Command::CancelEvent { .. }
            | Command::Extend { .. }
            | Command::Checkout { .. }
            | Command::Abandon { .. }
            | Command::Payment(_)
            | Command::Release { .. }
            | Command::Revoke { .. }
            | Command::Sweep { .. }
            | Command::Confirm { .. }
            | Command::ConfirmFree { .. }
            | Command::Cancel { .. }
            | Command::Refund { .. }
            | Command::Exchange { .. } => Vec::new(),
        };
        let named = named(&self.asked.command);
        if named.hold.is_some() || named.booking.is_some() {
            let replica = self.booth.replica.lock().await;
            let hold = named.hold.and_then(|id| replica.inventory.hold(id));
            let of_hold = hold.into_iter().flat_map(|hold| &hold.units);
            units.extend(of_hold.map(|one| one.unit));
            let booking = |id: BookingId| replica.inventory.booking(id);
            let booking = named.booking.and_then(booking);
            let lines = booking.into_iter().flat_map(|booking| &booking.lines);
            units.extend(lines.map(|line| line.unit));
        }
        if !units.is_empty() {
            units.extend_from_slice(&self.more());
        }
        units.sort_unstable();
        units.dedup();
        units
    }

    /// Whether what was decided stays within `units`, which are locked. If not, it takes another
    /// attempt with more of them: locks are taken in unit order, never one after the other.
    pub(super) fn is_within(&self, decided: &Decided, units: &[UnitNo]) -> bool {
        let is_more = |unit: &UnitNo| units.binary_search(unit).is_err();
        let more: Vec<UnitNo> = decided.touched.iter().copied().filter(is_more).collect();
        let is_within = units.is_empty() || more.is_empty();
        self.more().extend(more);
        is_within
    }

    fn more(&self) -> std::sync::MutexGuard<'_, Vec<UnitNo>> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
