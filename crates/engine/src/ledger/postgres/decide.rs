//! Decides one command on a server's cache of the event. Stores nothing.

use std::collections::BTreeSet;

use soldonce_core::{Answer, Rejection, Seq, Timestamp};

use super::replica::{Replica, ToLoad};
use crate::ledger::batch::{Batch, Decided, Writers};
use crate::ledger::{Done, Transaction, named};

/// The outcome of a decision.
pub(super) enum Decision {
    /// It has an effect: this one of the batch's applied commands.
    Applied(usize),
    /// It has none. Final only if the cache was read after the command arrived.
    NoEffect(Result<Done, Rejection>),
    /// Its idempotency key is that of a command before it in this batch.
    SameKey,
}

/// Decides a command at `now` and adds what it did to the batch.
pub(super) fn decide(
    replica: &mut Replica,
    now: Timestamp,
    transaction: &Transaction,
    batch: &mut Batch,
    shown: Seq,
) -> Decision {
    if transaction
        .key
        .is_some_and(|key| batch.replay(key).is_some())
    {
        return Decision::SameKey;
    }
    match batch.decide(&mut replica.inventory, now, transaction, Writers::Many) {
        Ok(Decided::Applied(at)) => Decision::Applied(at),
        Ok(Decided::NoEffect(answer)) => Decision::NoEffect(Ok(fresh(answer))),
        Err(rejection) => Decision::NoEffect(Err(with_shown_seq(rejection, shown))),
    }
}

/// Returns an answer without a feed number: numbers are given after the commit.
pub(super) fn fresh(answer: Answer) -> Done {
    Done::Fresh { answer, seq: None }
}

/// Gives a rejection the number that the feed shows, in place of that of this server's cache.
fn with_shown_seq(mut rejection: Rejection, shown: Seq) -> Rejection {
    if let Rejection::UnitUnavailable(unavailable) = &mut rejection {
        unavailable.seq = shown;
    }
    rejection
}

/// Returns the holds and bookings that commands name.
pub(super) fn to_load<'a>(transactions: impl Iterator<Item = &'a Transaction>) -> ToLoad {
    let (mut holds, mut bookings) = (BTreeSet::new(), BTreeSet::new());
    for transaction in transactions {
        let named = named(&transaction.command);
        holds.extend(named.hold);
        bookings.extend(named.booking);
    }
    ToLoad {
        holds: holds.into_iter().collect(),
        bookings: bookings.into_iter().collect(),
    }
}
