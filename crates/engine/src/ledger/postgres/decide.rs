//! One command on what a server remembers: the rules decide, and nothing is stored yet.

use std::collections::BTreeSet;

use soldonce_core::{Answer, Rejection, Seq, Timestamp};

use super::batch::Batch;
use super::replica::{Named, Replica};
use crate::ledger::{Done, ScopedKey, Transaction, named};
use crate::reply::{self, ReplyKind};
use crate::webhook::Before;

/// What came of a command.
pub(super) enum Decision {
    /// It has an effect: this one of the batch's applied commands.
    Applied(usize),
    /// It has none. Right only if the memory was fresh when it was asked.
    Quiet(Result<Done, Rejection>),
    /// Its idempotency key is that of a command before it in this batch.
    Twin,
}

/// Decides a command at `now` and adds what it did to the batch.
pub(super) fn decide(
    replica: &mut Replica,
    now: Timestamp,
    asked: &Transaction,
    batch: &mut Batch,
    shown: Seq,
) -> Decision {
    let is_twin = |key: ScopedKey| batch.records.iter().any(|(known, _)| known.scoped == key);
    if asked.key.is_some_and(|key| is_twin(key.scoped)) {
        return Decision::Twin;
    }
    let before = Before::of(&replica.inventory, &asked.command);
    let command = asked.command.clone();
    match replica.inventory.apply(now, &asked.origin, command) {
        Err(rejection) => Decision::Quiet(Err(with_shown_seq(rejection, shown))),
        Ok(applied) if applied.has_effect() => {
            let event = replica.inventory.event(replica.no);
            let record = asked.key.and_then(|key| {
                let event = event.map(|event| &**event);
                let mut reply = reply::render(event, &applied.answer, None)?;
                reply.kind = ReplyKind::kept_for(&asked.command).unwrap_or(reply.kind);
                Some((key, reply))
            });
            // Only the database knows whether there are endpoints: other servers may have changed them.
            let messages = before.messages(&replica.inventory, &applied, now);
            batch.messages.extend(messages);
            batch.add(applied, record);
            Decision::Applied(batch.applied.len() - 1)
        }
        Ok(applied) => Decision::Quiet(Ok(fresh(applied.answer))),
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
