//! Evicts holds and bookings that are over, and loads those of them that commands name.

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

    /// Forgets holds that are over and bookings that wait for no payment, with the holds that they
    /// came from: a command that names one reads both back first.
    pub(in super::super) fn evict(
        &mut self,
        holds: impl IntoIterator<Item = HoldId>,
        bookings: impl IntoIterator<Item = BookingId>,
    ) {
        for hold in holds {
            self.inventory.forget_hold(hold);
        }
        let bookings = bookings.into_iter();
        let all = bookings.flat_map(|id| self.inventory.exchanges(id).collect::<Vec<_>>());
        for booking in all.collect::<Vec<_>>() {
            self.forget_booking(booking);
        }
    }

    fn forget_booking(&mut self, id: BookingId) {
        if let Some(hold) = self.inventory.booking(id).and_then(|known| known.hold) {
            self.inventory.forget_hold(hold);
        }
        self.inventory.forget_booking(id);
        if self.inventory.booking(id).is_none() {
            self.bookings.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use soldonce_core::{
        Booking, BookingState, CallerId, EventNo, Fence, Hold, HoldState, Holder, HolderName,
        Timestamp,
    };

    use super::*;
    use crate::ledger::postgres::tables::bookings::BookingRow;

    /// Returns a replica with a cancelled booking and its hold, which no request names.
    fn with_booking() -> (Replica, HoldId, BookingId) {
        let (hold, booking) = (HoldId::from_bits(1), BookingId::from_bits(2));
        let holder = Holder {
            caller: CallerId::from_bits(3),
            name: HolderName::parse("ann").unwrap(),
        };
        let mut replica = Replica::new(EventNo(0));
        replica.inventory.restore_hold(Hold {
            id: hold,
            event: EventNo(0),
            holder: holder.clone(),
            state: HoldState::Consumed(booking),
            fence: Fence(1),
            units: Vec::new(),
            created_at: Timestamp::MIN,
            expires_at: Timestamp::MIN,
            max_expires_at: Timestamp::MIN,
            together: None,
        });
        let row = BookingRow {
            version: 1,
            booking: Booking {
                id: booking,
                event: EventNo(0),
                holder,
                hold: Some(hold),
                state: BookingState::Cancelled,
                fence: Fence(1),
                lines: Vec::new(),
                reference: None,
                payment: None,
                created_at: Timestamp::MIN,
                confirmed_at: None,
            },
        };
        replica.take_booking(row);
        (replica, hold, booking)
    }

    #[test]
    fn nothing_stays_of_a_booking_that_is_evicted() {
        let (mut replica, _, booking) = with_booking();
        replica.evict([], [booking]);
        assert_eq!(replica.inventory.bookings().count(), 0);
        assert_eq!(replica.inventory.holds().count(), 0);
        assert!(replica.bookings.is_empty());
    }

    #[test]
    fn a_booking_is_known_with_its_hold() {
        let (mut replica, hold, booking) = with_booking();
        let named = ToLoad {
            bookings: [booking].into(),
            ..ToLoad::default()
        };
        assert!(replica.knows(&named));
        replica.inventory.forget_hold(hold);
        assert!(!replica.knows(&named));
    }
}
