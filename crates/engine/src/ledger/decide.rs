//! What every ledger does before anything becomes durable: looks the idempotency key up, lets `core`
//! decide, and writes the answer down for the next time. One thread at a time.

use std::collections::BTreeMap;

use soldonce_core::{
    Applied, BookingId, Command, HoldId, Inventory, LineChoice, Rejection, Timestamp, Transition,
    UnitState,
};

use super::stored_keys::StoredKeys;
use super::{Fingerprint, RequestKey, ScopedKey, Transaction};
use crate::reply::{self, ReplyKind, StoredReply};

/// Decides commands one after the other, in memory.
#[derive(Debug, Default)]
pub(crate) struct Decider {
    /// The rules and their state.
    pub(crate) inventory: Inventory,
    /// Records of the batch under way, with their replies.
    fresh: BTreeMap<ScopedKey, (Fingerprint, StoredReply)>,
    /// Places of the records in the store.
    stored: StoredKeys,
    /// The number of the next record of the batch under way.
    next_record: u64,
}

/// A new idempotency record, to be stored with its effect.
#[derive(Clone, Debug)]
pub(crate) struct NewRecord {
    /// Its place in the store: rises with every record.
    pub(crate) number: u64,
    /// Whose key and which request.
    pub(crate) key: RequestKey,
    /// What was answered.
    pub(crate) reply: StoredReply,
}

/// What is to be done with a command.
#[derive(Debug)]
pub(crate) enum Decision {
    /// It was taken; what it did must become durable, and the record with it.
    Applied(Box<Applied>, Option<NewRecord>),
    /// It was taken before, with this answer.
    Replay(StoredReply),
    /// It was refused and changed nothing.
    Refused(Rejection),
}

impl Decider {
    /// Goes on from a rebuilt inventory and the records that are in the store.
    pub(crate) fn new(inventory: Inventory, stored: StoredKeys) -> Self {
        Self {
            inventory,
            next_record: stored.next(),
            stored,
            ..Self::default()
        }
    }

    /// Decides one command at `now`.
    pub(crate) fn decide(&mut self, now: Timestamp, transaction: Transaction) -> Decision {
        let Transaction {
            origin,
            command,
            key,
            ..
        } = transaction;
        if let Some(known) = key.and_then(|key| self.recall(key)) {
            return known;
        }
        let kept = ReplyKind::kept_for(&command);
        match self.inventory.apply(now, &origin, command) {
            Err(rejection) => Decision::Refused(rejection),
            Ok(applied) => {
                // An answer without effect is not pinned: the next try may find another state.
                let record = key.filter(|_| applied.has_effect()).and_then(|key| {
                    let mut reply = reply::stored(&self.inventory, &applied)?;
                    reply.kind = kept.unwrap_or(reply.kind);
                    Some(self.keep_record(key, reply))
                });
                Decision::Applied(Box::new(applied), record)
            }
        }
    }

    /// What came of the request with this key, if its record is not in the store alone.
    pub(crate) fn recall(&self, key: RequestKey) -> Option<Decision> {
        let (fingerprint, reply) = self.fresh.get(&key.scoped)?;
        Some(if *fingerprint == key.fingerprint {
            Decision::Replay(reply.clone())
        } else {
            Decision::Refused(Rejection::IdempotencyKeyReused)
        })
    }

    /// Remembers what is answered to a key from now on.
    pub(crate) fn keep_record(&mut self, key: RequestKey, reply: StoredReply) -> NewRecord {
        let number = self.next_record;
        self.next_record += 1;
        let fresh = (key.fingerprint, reply.clone());
        self.fresh.insert(key.scoped, fresh);
        NewRecord { number, key, reply }
    }

    /// Drops requests and replies of records that are in the store by now.
    pub(crate) fn unload_replies(&mut self, stored: &[NewRecord]) {
        for NewRecord { number, key, .. } in stored {
            self.fresh.remove(&key.scoped);
            self.stored.add(key.scoped, *number);
        }
    }

    /// The places of the records in the store.
    pub(crate) const fn stored(&self) -> &StoredKeys {
        &self.stored
    }

    /// Forgets records that are no longer in the store: those up to this number.
    pub(crate) fn forget_records(&mut self, last: u64) {
        self.stored.forget(last);
    }
}

/// How many units a command freed from SOLD. A batch ends before such a unit moves again
/// ([`may_move_free_units`]): it writes each unit once, and the database lets a sold one only become free.
pub(super) fn freed_from_sold(applied: &Applied) -> usize {
    let frees =
        |step: &Transition| matches!((step.from, step.to), (UnitState::Sold(_), UnitState::Free));
    let commits = applied.commits.iter();
    let steps = commits.flat_map(|commit| &commit.transitions);
    steps.filter(|step| frees(step)).count()
}

/// Whether a command may move units that are free.
pub(super) const fn may_move_free_units(command: &Command) -> bool {
    match command {
        Command::Hold(_)
        | Command::Change(_)
        | Command::Sell { .. }
        | Command::Block { .. }
        | Command::Payment(_) => true,
        Command::CreateEvent(_)
        | Command::UpdatePolicy { .. }
        | Command::CancelEvent { .. }
        | Command::Extend { .. }
        | Command::Abandon { .. }
        | Command::Release { .. }
        | Command::Revoke { .. }
        | Command::Confirm { .. }
        | Command::ConfirmFree { .. }
        | Command::Checkout { .. }
        | Command::Exchange { .. }
        | Command::Cancel { .. }
        | Command::Refund { .. }
        | Command::Sweep { .. }
        | Command::Unblock { .. } => false,
    }
}

/// What a command names that a ledger may have let go of. With a booking come those whose lines were
/// given back for it ([`Inventory::exchanges`]): their money is its money too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Named {
    /// The hold it acts on.
    pub(crate) hold: Option<HoldId>,
    /// The booking it acts on.
    pub(crate) booking: Option<BookingId>,
}

/// The hold and the booking that must be in memory before `command` is decided.
pub(crate) fn named(command: &Command) -> Named {
    let hold = |hold: HoldId| Named {
        hold: Some(hold),
        booking: None,
    };
    let booking = |booking: BookingId| Named {
        hold: None,
        booking: Some(booking),
    };
    match command {
        Command::Change(change) => hold(change.on.hold),
        Command::Checkout { on, exchange, .. } => Named {
            hold: Some(on.hold),
            booking: exchange.as_ref().map(|given| given.booking),
        },
        Command::Extend { on, .. }
        | Command::Abandon { on }
        | Command::Release { on }
        | Command::Confirm { on, .. }
        | Command::ConfirmFree { on, .. } => hold(on.hold),
        Command::Revoke { hold: id, .. } => hold(*id),
        Command::Payment(report) => booking(report.booking),
        Command::Cancel {
            booking: id,
            lines: LineChoice::All | LineChoice::Some { .. },
            ..
        }
        | Command::Refund { booking: id, .. } => booking(*id),
        Command::Exchange { given, on, .. } => Named {
            hold: Some(on.hold),
            booking: Some(given.booking),
        },
        Command::CreateEvent(_)
        | Command::UpdatePolicy { .. }
        | Command::CancelEvent { .. }
        | Command::Hold(_)
        | Command::Sweep { .. }
        | Command::Sell { .. }
        | Command::Block { .. }
        | Command::Unblock { .. } => Named::default(),
    }
}
