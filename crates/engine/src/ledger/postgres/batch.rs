//! What one statement is made of: everything the commands of a batch changed, each row once, in the
//! state in which the batch leaves it, and what they were decided on.

use std::collections::BTreeSet;

use soldonce_core::{
    Answer, Applied, Booking, BookingId, Cause, Commit, HoldId, Holder, Timestamp, Transition,
    UnitNo, UnitState,
};

use super::replica::Replica;
use super::tables::{Id, holder_key};
use crate::ledger::RequestKey;
use crate::reply::StoredReply;
use crate::webhook::Message;

/// Commands decided in memory and not yet stored.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// What the accepted ones did, in order.
    pub(super) applied: Vec<Applied>,
    /// Their idempotency records.
    pub(super) records: Vec<(RequestKey, StoredReply)>,
    /// What webhook endpoints are told of them.
    pub(super) messages: Vec<Message>,
    /// How many transitions they made.
    pub(super) steps: usize,
}

/// A unit that the decisions of a batch rest on, as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touched {
    pub(super) unit: UnitNo,
    /// Whether the batch leaves it as it is.
    pub(super) stays: bool,
    pub(super) version: u64,
    pub(super) state: UnitState,
}

impl Batch {
    pub(super) fn add(&mut self, applied: Applied, record: Option<(RequestKey, StoredReply)>) {
        let steps = applied
            .commits
            .iter()
            .map(|commit| commit.transitions.len());
        self.steps += steps.sum::<usize>();
        self.records.extend(record);
        self.applied.push(applied);
    }

    /// Every transition, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Transition> {
        let commits = self.applied.iter().flat_map(|applied| &applied.commits);
        commits.flat_map(|commit| &commit.transitions)
    }

    /// Takes the commits out, for whoever shows them.
    pub(super) fn take_commits(&mut self) -> impl Iterator<Item = Commit> {
        let applied = self.applied.iter_mut();
        applied.flat_map(|applied| std::mem::take(&mut applied.commits))
    }

    /// Every hold that changed, once, in order.
    pub(super) fn holds(&self) -> Vec<HoldId> {
        let holds = self.applied.iter().flat_map(|done| &done.holds);
        each_once(holds.copied())
    }

    /// The holds that it makes, in order.
    pub(super) fn new_holds(&self) -> Vec<HoldId> {
        let made = |applied: &Applied| match &applied.answer {
            Answer::Held(hold) => Some(hold.id),
            Answer::EventCreated(_)
            | Answer::Event(_)
            | Answer::OwnHold(_)
            | Answer::Hold(_)
            | Answer::Booked(_)
            | Answer::Booking(_)
            | Answer::Units(..)
            | Answer::Swept(_)
            | Answer::ClockCorrected(_) => None,
        };
        each_once(self.applied.iter().filter_map(made))
    }

    /// Every booking that changed, once.
    pub(super) fn bookings(&self) -> BTreeSet<BookingId> {
        self.applied
            .iter()
            .flat_map(|done| done.bookings.iter().copied())
            .collect()
    }

    /// Whether the event itself changed.
    pub(super) fn renews_event(&self) -> bool {
        self.applied.iter().any(|applied| applied.event.is_some())
    }

    /// The first end of a hold that was taken to be live: from then on the decisions are wrong.
    pub(super) fn good_until(&self) -> i64 {
        let live = |step: &Transition| match step.from {
            UnitState::Held { until, .. } if !is_of_the_clock(step.cause) => Some(until.ms()),
            UnitState::Held { .. } | UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => {
                None
            }
        };
        self.steps().filter_map(live).min().unwrap_or(i64::MAX)
    }

    /// The units that the decisions rest on, in unit order.
    pub(super) fn touched_units(&self, replica: &Replica) -> Vec<UnitNo> {
        let seen = self.seen_units(replica).into_iter();
        seen.map(|seen| seen.unit).collect()
    }

    /// The same, each with its version before the batch.
    pub(super) fn seen_units(&self, replica: &Replica) -> Vec<Touched> {
        let changed = self.steps().map(|step| Touched {
            unit: step.unit,
            stays: false,
            version: step.version.0.saturating_sub(1),
            state: step.from,
        });
        let mut seen: Vec<Touched> = changed.collect();
        let seating = replica.inventory.seating(replica.no);
        let read = self.applied.iter().flat_map(|done| &done.basis.units);
        seen.extend(read.map(|no| {
            let unit = seating
                .map(|seating| *seating.unit(*no))
                .unwrap_or_default();
            Touched {
                unit: *no,
                stays: true,
                version: unit.version.0,
                state: unit.state,
            }
        }));
        // Of each unit the first: one that changes, in its lowest version.
        seen.sort_unstable_by_key(|seen| (seen.unit, seen.stays, seen.version));
        seen.dedup_by_key(|seen| seen.unit);
        seen
    }

    /// The holders whose budgets the decisions rest on or move, by key.
    pub(super) fn accounts(&self, replica: &Replica) -> Vec<Account> {
        let read = self.applied.iter().flat_map(|done| &done.basis.holders);
        let mut holders: Vec<&Holder> = read.collect();
        let bookings = self.bookings();
        let bookings = bookings
            .iter()
            .filter_map(|id| replica.inventory.booking(*id));
        let bookings: Vec<&Booking> = bookings.collect();
        holders.extend(bookings.iter().map(|booking| &booking.holder));
        let keyed = holders
            .into_iter()
            .map(|holder| (holder_key(holder), holder));
        let mut keyed: Vec<(Id, &Holder)> = keyed.collect();
        keyed.sort_unstable_by_key(|(key, _)| *key);
        keyed.dedup_by_key(|(key, _)| *key);
        let account = |(key, holder): (Id, &Holder)| Account {
            key,
            holder: holder.clone(),
            bought: replica.inventory.bought(replica.no, holder),
            version: replica.holders.version(holder),
        };
        keyed.into_iter().map(account).collect()
    }
}

/// Whether it takes no hold to be live.
const fn is_of_the_clock(cause: Cause) -> bool {
    matches!(cause, Cause::Expired | Cause::ClockCorrected)
}

/// Of these, each once and in order.
fn each_once(ids: impl Iterator<Item = HoldId>) -> Vec<HoldId> {
    let mut ids: Vec<HoldId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What counts against one holder.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) key: Id,
    pub(super) holder: Holder,
    pub(super) bought: u32,
    /// Of his row before the batch; 0 when he has none.
    pub(super) version: i64,
}

/// When and as which batch something was stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// On the ledger's clock.
    pub(super) at: Timestamp,
}
