//! Loads from the file what a command needs and memory has evicted: the reply to its key, its hold,
//! its booking.

use soldonce_core::{BookingId, Command, HoldId, Rejection};

use super::Writer;
use crate::ledger::batch::replay;
use crate::ledger::sqlite::fault::Fault;
use crate::ledger::sqlite::tables::{bookings, holds, idempotency};
use crate::ledger::{RequestKey, named};
use crate::reply::{ReplyKind, StoredReply};

impl Writer {
    /// Finds the reply to an earlier request with this key, if its record is in the file.
    pub(super) fn replay_stored(
        &self,
        key: RequestKey,
        command: &Command,
    ) -> Result<Option<Result<StoredReply, Rejection>>, Fault> {
        if let Some(known) = self.replay_newest(key)? {
            return Ok(Some(known));
        }
        if ReplyKind::kept_for(command).is_none() {
            return Ok(None);
        }
        let kept = idempotency::kept(&self.connection, key.scoped)?;
        Ok(kept.map(|(known, reply)| replay(known, &reply, key)))
    }

    /// Finds the reply to an earlier request with this key among the records that have not ended.
    pub(super) fn replay_newest(
        &self,
        key: RequestKey,
    ) -> Result<Option<Result<StoredReply, Rejection>>, Fault> {
        for number in self.keys.find(key.scoped) {
            let known = idempotency::replay(&self.connection, number, key)?;
            if known.is_some() {
                return Ok(known);
            }
        }
        Ok(None)
    }

    /// Loads what a command names and memory has evicted.
    pub(super) fn load(&mut self, command: &Command) -> Result<(), Fault> {
        let named = named(command);
        if let Some(id) = named.hold
            && self.inventory.hold(id).is_none()
        {
            self.load_hold(id)?;
        }
        let Some(booking) = named.booking else {
            return Ok(());
        };
        loop {
            let inventory = &self.inventory;
            let last = inventory.exchanges(booking).last();
            match last.filter(|id| inventory.booking(*id).is_none()) {
                Some(id) if self.load_booking(id)? => {}
                Some(_) | None => return Ok(()),
            }
        }
    }

    /// Loads a booking and its hold into memory; returns whether there is such a booking.
    fn load_booking(&mut self, id: BookingId) -> Result<bool, Fault> {
        let Some(booking) = bookings::find(&self.connection, id)? else {
            return Ok(false);
        };
        self.loaded.bookings.push(id);
        let hold = booking.hold;
        self.inventory.restore_booking(booking);
        if let Some(hold) = hold
            && self.inventory.hold(hold).is_none()
        {
            self.load_hold(hold)?;
        }
        Ok(true)
    }

    fn load_hold(&mut self, id: HoldId) -> Result<(), Fault> {
        let Some(hold) = holds::find(&self.connection, id)? else {
            return Ok(());
        };
        if !hold.state.is_terminal() {
            let what = format!("{id} is live in the file alone");
            return Err(Fault::damaged("holds", what));
        }
        self.loaded.holds.push(id);
        self.inventory.restore_hold(hold);
        Ok(())
    }
}
