//! What commands name, and how it comes back into the memory that has let go of it.

use soldonce_core::{BookingId, HoldId};
use tokio_postgres::types::Type;

use super::{Replica, bookings_by_id};
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::tables::{Id, holds};

/// What commands name.
#[derive(Debug, Default)]
pub(in super::super) struct Named {
    pub(in super::super) holds: Vec<HoldId>,
    pub(in super::super) bookings: Vec<BookingId>,
}

impl Replica {
    /// Whether everything that is named is in here.
    pub(in super::super) fn knows(&self, named: &Named) -> bool {
        let has_hold = |id: &HoldId| self.inventory.hold(*id).is_some();
        named.holds.iter().all(has_hold) && self.missing(&named.bookings).is_empty()
    }

    /// The bookings that are not in here, of these and of those that they were exchanged from.
    fn missing(&self, bookings: &[BookingId]) -> Vec<BookingId> {
        let all = bookings.iter().flat_map(|id| self.inventory.exchanges(*id));
        all.filter(|id| self.inventory.booking(*id).is_none())
            .collect()
    }

    /// Reads back what commands name and memory has let go of.
    pub(super) async fn page_in(
        &mut self,
        connection: &mut Connection,
        named: &Named,
    ) -> Result<(), Failure> {
        let mut wanted: Vec<HoldId> = named.holds.clone();
        loop {
            let missing = self.missing(&named.bookings);
            let bookings: Vec<Id> = holds::booking_ids(missing);
            if bookings.is_empty() {
                break;
            }
            let found = bookings_by_id(connection, &bookings).await?;
            // The others do not exist.
            let is_end = found.is_empty();
            for row in found {
                wanted.extend(row.booking.hold);
                self.take_booking(row);
            }
            if is_end {
                break;
            }
        }
        wanted.retain(|id| self.inventory.hold(*id).is_none());
        if wanted.is_empty() {
            return Ok(());
        }
        let ids = holds::ids(wanted);
        for row in connection
            .rows(holds::HOLDS, &[(&ids, Type::BYTEA_ARRAY)])
            .await?
        {
            let hold = holds::read(&row)?;
            // A live one of this snapshot is in memory already.
            if hold.state.is_terminal() {
                self.inventory.restore_hold(hold);
            }
        }
        Ok(())
    }
}
