//! The read set of a batch: every row that its decisions rest on, each with the version that was remembered.
//! `store_batch` locks these rows and stores the batch only if each still has that version. What a rule looked
//! at, it noted in its [`Basis`](soldonce_core::Basis); what a command changes is in its transitions.

use soldonce_core::{BookingId, Cause, Holder, Timestamp, Transition, UnitNo, UnitState};

use super::replica::{Account, Replica};
use super::tables::{Id, holder_key};
use crate::ledger::batch::Batch;

/// What the decisions of a batch rest on.
#[derive(Debug)]
pub(super) struct ReadSet {
    pub(super) event_version: i64,
    /// In unit order.
    pub(super) units: Vec<SeenUnit>,
    /// The holders whose budgets are counted or moved, by key.
    pub(super) accounts: Vec<Account>,
    /// The bookings that change, each with its version; 0 for a new one.
    pub(super) bookings: Vec<(BookingId, i64)>,
    /// The first end of a hold that was taken to be live: from then on the decisions are wrong.
    pub(super) good_until: i64,
    /// The last end of a hold that was taken to be over and that the batch does not write down as over: of a unit
    /// that a rule looked at, or of a holder whose budget was counted.
    pub(super) over_since: i64,
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
    pub(super) fn of(batch: &Batch, replica: &Replica, now: Timestamp) -> Self {
        let version = |id: BookingId| replica.bookings.get(&id).copied().unwrap_or(0);
        let bookings = batch.bookings().into_iter();
        let units = units(batch, replica);
        Self {
            event_version: replica.event_version,
            over_since: units_over_since(&units, now).max(holders_over_since(batch, replica, now)),
            units,
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
    let read = batch.applied.iter().flat_map(|done| &done.basis.units);
    seen.extend(read.map(|no| {
        let unit = seating.map(|seating| *seating.unit(*no));
        let unit = unit.unwrap_or_default();
        SeenUnit {
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

/// Returns the holders whose budgets the decisions rest on or move, by key.
fn accounts(batch: &Batch, replica: &Replica) -> Vec<Account> {
    let read = batch.applied.iter().flat_map(|done| &done.basis.holders);
    let mut holders: Vec<&Holder> = read.collect();
    let bookings = batch.bookings().into_iter();
    let bookings = bookings.filter_map(|id| replica.inventory.booking(id));
    holders.extend(bookings.map(|booking| &booking.holder));
    let holders = holders.into_iter();
    let keyed = holders.map(|holder| (holder_key(holder), holder));
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

fn units_over_since(units: &[SeenUnit], now: Timestamp) -> i64 {
    let end = |seen: &SeenUnit| match seen.state {
        UnitState::Held { until, .. } if seen.stays && until <= now => Some(until.ms()),
        UnitState::Held { .. } | UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    };
    units.iter().filter_map(end).max().unwrap_or(i64::MIN)
}

fn holders_over_since(batch: &Batch, replica: &Replica, now: Timestamp) -> i64 {
    let inventory = &replica.inventory;
    let holders = batch.applied.iter().flat_map(|done| &done.basis.holders);
    let ends = holders.filter_map(|holder| inventory.last_end_past(replica.no, holder, now));
    ends.max().map_or(i64::MIN, Timestamp::ms)
}

fn good_until(batch: &Batch) -> i64 {
    let live = |step: &Transition| match step.from {
        UnitState::Held { until, .. } if !is_of_the_clock(step.cause) => Some(until.ms()),
        UnitState::Held { .. } | UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    };
    batch.steps().filter_map(live).min().unwrap_or(i64::MAX)
}

/// Tells whether a transition of this cause does not rest on the hold being live.
const fn is_of_the_clock(cause: Cause) -> bool {
    matches!(cause, Cause::Expired | Cause::ClockCorrected)
}
