//! The read set of a batch: every row that its decisions rest on, each with the version that was remembered.
//! `store_batch` locks these rows and stores the batch only if each still has that version. A rule of `core`
//! that looks at a row which is not in here may be decided on a stale one: its rows belong here.

use std::collections::BTreeSet;

use soldonce_core::{
    Adjacency, Answer, Applied, Booking, BookingId, Cause, Holder, Transition, UnitNo, UnitState,
};

use super::batch::Batch;
use super::replica::{Account, Replica};
use super::tables::{Id, holder_key};

/// What the decisions of a batch rest on.
#[derive(Debug)]
pub(super) struct ReadSet {
    /// The version of the event's row.
    pub(super) event_version: i64,
    /// In unit order.
    pub(super) units: Vec<SeenUnit>,
    /// The holders whose budgets are counted or moved, by key.
    pub(super) accounts: Vec<Account>,
    /// The bookings that change, each with its version; 0 for a new one.
    pub(super) bookings: Vec<(BookingId, i64)>,
    /// The first end of a hold that was taken to be live: from then on the decisions are wrong.
    pub(super) good_until: i64,
}

/// A unit as it was before the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenUnit {
    pub(super) unit: UnitNo,
    /// Whether the batch leaves it as it is.
    pub(super) stays: bool,
    pub(super) version: u64,
    pub(super) state: UnitState,
}

impl ReadSet {
    /// Returns the read set of a batch that was decided on `replica`, in a trial that is still open.
    pub(super) fn of(batch: &Batch, replica: &Replica) -> Self {
        let version = |id: BookingId| replica.bookings.get(&id).copied().unwrap_or(0);
        let bookings = batch.bookings().into_iter();
        Self {
            event_version: replica.event_version,
            units: units(batch, replica),
            accounts: accounts(batch, replica),
            bookings: bookings.map(|id| (id, version(id))).collect(),
            good_until: good_until(batch),
        }
    }
}

/// Returns the units that change and those that a rule looked at, in unit order.
fn units(batch: &Batch, replica: &Replica) -> Vec<SeenUnit> {
    let changed = batch.steps().map(|step| SeenUnit {
        unit: step.unit,
        stays: false,
        version: step.version.0.saturating_sub(1),
        state: step.from,
    });
    let mut seen: Vec<SeenUnit> = changed.collect();
    let seating = replica.inventory.seating(replica.no);
    seen.extend(neighbours(batch, replica).into_iter().map(|no| {
        let unit = seating.map(|seating| *seating.unit(no)).unwrap_or_default();
        SeenUnit {
            unit: no,
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

/// Returns the seats that an adjacency rule looked at: two on each side of one that was taken.
fn neighbours(batch: &Batch, replica: &Replica) -> BTreeSet<UnitNo> {
    let event = replica.inventory.event(replica.no);
    let Some(event) = event.filter(|event| event.policy.adjacency != Adjacency::None) else {
        return BTreeSet::new();
    };
    let mut looked_at = BTreeSet::new();
    let taken = batch.steps().filter(|step| {
        matches!(
            step.cause,
            Cause::Held | Cause::Changed | Cause::SoldDirectly
        )
    });
    for step in taken {
        if let Some((_, row)) = event.chart.row_of(step.unit) {
            let first = step.unit.0.saturating_sub(2).max(row.first.0);
            let last = step.unit.0.saturating_add(3).min(row.end().0);
            looked_at.extend((first..last).map(UnitNo));
        }
    }
    looked_at
}

/// Returns the holders whose budgets the decisions rest on or move, by key.
fn accounts(batch: &Batch, replica: &Replica) -> Vec<Account> {
    let mut holders: Vec<&Holder> = Vec::new();
    for done in &batch.applied {
        match &done.answer {
            Answer::Held(hold) => holders.push(&hold.holder),
            // A change that takes units needs room for them; one that drops some does not
            // matter.
            Answer::Hold(hold) if takes_units(done) => holders.push(&hold.holder),
            Answer::EventCreated(_)
            | Answer::Event(_)
            | Answer::OwnHold(_)
            | Answer::Hold(_)
            | Answer::Booked(_)
            | Answer::Booking(_)
            | Answer::Units(..)
            | Answer::Swept(_)
            | Answer::ClockCorrected(_) => {}
        }
    }
    let bookings = batch.bookings();
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

fn good_until(batch: &Batch) -> i64 {
    let live = |step: &Transition| match step.from {
        UnitState::Held { until, .. } if !is_of_the_clock(step.cause) => Some(until.ms()),
        UnitState::Held { .. } | UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    };
    batch.steps().filter_map(live).min().unwrap_or(i64::MAX)
}

/// Whether it takes no hold to be live.
const fn is_of_the_clock(cause: Cause) -> bool {
    matches!(cause, Cause::Expired | Cause::ClockCorrected)
}

fn takes_units(applied: &Applied) -> bool {
    let commits = applied.commits.iter();
    let mut steps = commits.flat_map(|commit| &commit.transitions);
    steps.any(|step| step.cause == Cause::Changed && !matches!(step.from, UnitState::Held { .. }))
}
