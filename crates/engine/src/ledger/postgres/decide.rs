//! One command on what a server remembers: the rules decide, and nothing is stored yet.

use std::collections::BTreeSet;

use soldonce_core::{Answer, Rejection, Seq, Timestamp};

use super::replica::{Named, Replica};
use crate::ledger::batch::{Batch, Decided, Writers};
use crate::ledger::{Done, Transaction, named};

/// What came of a command.
pub(super) enum Decision {
    /// It has an effect: this one of the batch's applied commands.
    Applied(usize),
    /// It has none. Right only if the memory was fresh when it was asked.
    NoEffect(Result<Done, Rejection>),
    /// Its idempotency key is that of a command before it in this batch.
    SameKey,
}

/// Decides a command at `now` and adds what it did to the batch.
pub(super) fn decide(
    replica: &mut Replica,
    now: Timestamp,
    asked: &Transaction,
    batch: &mut Batch,
    shown: Seq,
) -> Decision {
    if asked.key.is_some_and(|key| batch.replay(key).is_some()) {
        return Decision::SameKey;
    }
    match batch.decide(&mut replica.inventory, now, asked, Writers::Many) {
        Ok(Decided::Applied(at)) => Decision::Applied(at),
        Ok(Decided::NoEffect(answer)) => Decision::NoEffect(Ok(fresh(answer))),
        Err(rejection) => Decision::NoEffect(Err(with_shown_seq(rejection, shown))),
    }
}

/// An answer that was decided now. Numbers of commits are given later.
pub(super) fn fresh(answer: Answer) -> Done {
    Done::Fresh { answer, seq: None }
}

/// A rejection with the number that the feed shows, not that of this server's memory.
fn with_shown_seq(mut rejection: Rejection, shown: Seq) -> Rejection {
    if let Rejection::UnitUnavailable(unavailable) = &mut rejection {
        unavailable.seq = shown;
    }
    rejection
}

/// What commands name that may have to be read back.
pub(super) fn all_named<'a>(asked: impl Iterator<Item = &'a Transaction>) -> Named {
    let (mut holds, mut bookings) = (BTreeSet::new(), BTreeSet::new());
    for transaction in asked {
        let named = named(&transaction.command);
        holds.extend(named.hold);
        bookings.extend(named.booking);
    }
    Named {
        holds: holds.into_iter().collect(),
        bookings: bookings.into_iter().collect(),
    }
}
