//! A batch: what the commands did that are stored together.

use std::collections::BTreeSet;

use soldonce_core::{Answer, Applied, BookingId, Command, Commit, HoldId, Timestamp, Transition};

use super::limits::BATCH_STEPS_MAX;
use crate::ledger::RequestKey;
use crate::ledger::decide::{freed_from_sold, may_move_free_units};
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
    /// How many of these freed a unit from SOLD.
    freed: usize,
}

impl Batch {
    pub(super) fn add(&mut self, applied: Applied, record: Option<(RequestKey, StoredReply)>) {
        let steps = applied
            .commits
            .iter()
            .map(|commit| commit.transitions.len());
        self.steps += steps.sum::<usize>();
        self.freed += freed_from_sold(&applied);
        self.records.extend(record);
        self.applied.push(applied);
    }

    /// Whether it may have one more command.
    pub(super) fn has_room_for(&self, command: &Command) -> bool {
        self.steps < BATCH_STEPS_MAX && (self.freed == 0 || !may_move_free_units(command))
    }

    /// Every transition, in order.
    pub(super) fn steps(&self) -> impl Iterator<Item = &Transition> {
        let commits = self.applied.iter().flat_map(|applied| &applied.commits);
        commits.flat_map(|commit| &commit.transitions)
    }

    /// Takes the commits out, to show them.
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
}

/// Of these, each once and in order.
fn each_once(ids: impl Iterator<Item = HoldId>) -> Vec<HoldId> {
    let mut ids: Vec<HoldId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// When something was stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// On the ledger's clock.
    pub(super) at: Timestamp,
}
