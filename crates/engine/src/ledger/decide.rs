//! What every ledger does before anything becomes durable: looks the idempotency key up, lets `core`
//! decide, and writes the answer down for the next time. One thread at a time.

use std::collections::BTreeMap;

use soldonce_core::{
    Applied, BookingId, Command, HoldId, Inventory, LineChoice, Rejection, Timestamp,
};

use super::{Fingerprint, RequestKey, ScopedKey, Transaction};
use crate::reply::{self, ReplyKind, StoredReply};

/// Decides commands one after the other, in memory.
#[derive(Debug, Default)]
pub struct Decider {
    /// The rules and their state.
    pub inventory: Inventory,
    records: BTreeMap<ScopedKey, Record>,
    /// Records by age: their numbers rise with time.
    ages: BTreeMap<u64, ScopedKey>,
    next_record: u64,
}

/// An idempotency record in memory. The reply of an old one may live in the store alone.
#[derive(Clone, Debug)]
struct Record {
    number: u64,
    fingerprint: Fingerprint,
    at: Timestamp,
    reply: Option<StoredReply>,
}

/// A new idempotency record, to be stored with its effect.
#[derive(Clone, Debug)]
pub struct NewRecord {
    /// Its place in the store: rises with every record.
    pub number: u64,
    /// Whose key and which request.
    pub key: RequestKey,
    /// What was answered.
    pub reply: StoredReply,
}

/// What is to be done with a command.
#[derive(Debug)]
pub enum Decision {
    /// It was taken; what it did must become durable, and the record with it.
    Applied(Box<Applied>, Option<NewRecord>),
    /// It was taken before, with this answer.
    Replay(StoredReply),
    /// It was taken before; the answer is in the store under this number.
    ReplayStored(u64),
    /// It was refused and changed nothing.
    Refused(Rejection),
}

impl Decider {
    /// Goes on from a rebuilt inventory.
    pub fn new(inventory: Inventory) -> Self {
        Self {
            inventory,
            ..Self::default()
        }
    }

    /// Puts an idempotency record back whose reply stays in the store.
    pub fn restore_record(&mut self, number: u64, key: RequestKey, at: Timestamp) {
        let record = Record {
            number,
            fingerprint: key.fingerprint,
            at,
            reply: None,
        };
        self.ages.insert(number, key.scoped);
        self.records.insert(key.scoped, record);
        self.next_record = self.next_record.max(number.saturating_add(1));
    }

    /// Decides one command at `now`.
    pub fn decide(&mut self, now: Timestamp, transaction: Transaction) -> Decision {
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
                    Some(self.keep_record(now, key, reply))
                });
                Decision::Applied(Box::new(applied), record)
            }
        }
    }

    /// What came of the request with this key, if there was one.
    pub fn recall(&self, key: RequestKey) -> Option<Decision> {
        let record = self.records.get(&key.scoped)?;
        if record.fingerprint != key.fingerprint {
            return Some(Decision::Refused(Rejection::IdempotencyKeyReused));
        }
        Some(match &record.reply {
            Some(reply) => Decision::Replay(reply.clone()),
            None => Decision::ReplayStored(record.number),
        })
    }

    /// Remembers what is answered to a key from now on.
    pub fn keep_record(&mut self, at: Timestamp, key: RequestKey, reply: StoredReply) -> NewRecord {
        let number = self.next_record;
        self.next_record += 1;
        let (fingerprint, kept) = (key.fingerprint, Some(reply.clone()));
        self.ages.insert(number, key.scoped);
        self.records.insert(
            key.scoped,
            Record {
                number,
                fingerprint,
                at,
                reply: kept,
            },
        );
        NewRecord { number, key, reply }
    }

    /// Lets go of the replies of records that are in the store: their keys stay.
    pub fn unload_replies(&mut self, stored: &[NewRecord]) {
        for new in stored {
            if let Some(record) = self.records.get_mut(&new.key.scoped) {
                record.reply = None;
            }
        }
    }

    /// Forgets records made before `oldest`, at most `limit`; gives the first number that stays.
    pub fn forget_records(&mut self, oldest: Timestamp, limit: usize) -> Option<u64> {
        let mut forgotten = None;
        for _ in 0..limit {
            let Some((number, key)) = self.ages.first_key_value().map(|(n, k)| (*n, *k)) else {
                break;
            };
            if self
                .records
                .get(&key)
                .is_some_and(|record| record.at >= oldest)
            {
                break;
            }
            self.ages.remove(&number);
            self.records.remove(&key);
            forgotten = Some(number.saturating_add(1));
        }
        forgotten
    }
}

/// What a command names that a ledger may have let go of. With a booking come those whose lines were
/// given back for it ([`Inventory::exchanges`]): their money is its money too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Named {
    /// The hold it acts on.
    pub hold: Option<HoldId>,
    /// The booking it acts on.
    pub booking: Option<BookingId>,
}

/// The hold and the booking that must be in memory before `command` is decided.
pub fn named(command: &Command) -> Named {
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
