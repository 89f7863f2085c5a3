//! Loads the holds and bookings that commands name and that were evicted.

use std::collections::BTreeSet;

use soldonce_core::{BookingId, Command, HoldId};

use super::{Replica, bookings_by_id};
use crate::ledger::named;
use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::tables::{Id, holds};
use crate::ledger::rows::holds::get as get_hold;

/// The holds and bookings that must be in memory before commands are decided.
#[derive(Debug, Default)]
pub(in super::super) struct ToLoad {
    pub(in super::super) holds: BTreeSet<HoldId>,
    pub(in super::super) bookings: BTreeSet<BookingId>,
}

impl ToLoad {
    /// Returns what these commands name.
    pub(in super::super) fn of<'a>(commands: impl Iterator<Item = &'a Command>) -> Self {
        let mut all = Self::default();
        for named in commands.map(named) {
            all.holds.extend(named.hold);
            all.bookings.extend(named.booking);
        }
        all
    }
}

impl Replica {
    /// Tells whether all of `named` is in memory, bookings with their holds.
    pub(in super::super) fn knows(&self, named: &ToLoad) -> bool {
        let has_hold = |id: &HoldId| self.inventory.hold(*id).is_some();
        named.holds.iter().all(has_hold)
            && self.missing(&named.bookings).is_empty()
            && self.holds_of(&named.bookings).iter().all(has_hold)
    }

    /// Returns the holds of `bookings`, and of the bookings they were exchanged from.
    fn holds_of(&self, bookings: &BTreeSet<BookingId>) -> Vec<HoldId> {
        let all = bookings.iter().flat_map(|id| self.inventory.exchanges(*id));
        all.filter_map(|id| self.inventory.booking(id)?.hold)
            .collect()
    }

    /// Returns those of `bookings`, and of the bookings they were exchanged from, that are not in memory.
    fn missing(&self, bookings: &BTreeSet<BookingId>) -> Vec<BookingId> {
        let all = bookings.iter().flat_map(|id| self.inventory.exchanges(*id));
        all.filter(|id| self.inventory.booking(*id).is_none())
            .collect()
    }

    /// Loads what commands name and memory has evicted.
    pub(super) async fn load_named(
        &mut self,
        connection: &mut Connection,
        named: &ToLoad,
    ) -> Result<(), Failure> {
        loop {
            let missing = self.missing(&named.bookings).into_iter();
            let bookings: Vec<Id> = missing.map(|id| Id(*id.bytes())).collect();
            if bookings.is_empty() {
                break;
            }
            let found = bookings_by_id(connection, &bookings).await?;
            // The others do not exist.
            let is_end = found.is_empty();
            for row in found {
                self.take_booking(row);
            }
            if is_end {
                break;
            }
        }
        let mut wanted = self.holds_of(&named.bookings);
        wanted.extend(&named.holds);
        wanted.retain(|id| self.inventory.hold(*id).is_none());
        if wanted.is_empty() {
            return Ok(());
        }
        let ids = holds::ids(wanted);
        let by_id = [bind(&ids)];
        for hold in connection.read(holds::HOLDS, &by_id, get_hold).await? {
            // A live one of this snapshot is in memory already.
            if hold.state.is_terminal() {
                self.inventory.restore_hold(hold);
            }
        }
        Ok(())
    }
}
