//! Writes the rows of one commit: everything the commands of a batch changed, each row once, in its
//! state after the batch.

use rusqlite::Connection;
use soldonce_core::{Answer, BookingId, EventNo, HoldId, Inventory, Timestamp, UnitNo, Version};

use super::fault::Fault;
use super::tables::audit::{self, Chain, chain_of};
use super::tables::head::Head;
use super::tables::units::{self, ChangedUnit, IsSold};
use super::tables::{bookings, charts, deliveries, events, holds, outbox};
use crate::ledger::batch::{Batch, distinct};
use crate::ledger::rows::charts::{document as document_of, sha256};
use crate::webhook::Endpoint;

/// Lists every unit that changed, once, in unit order, with its version and state before the batch.
fn changed_units(batch: &Batch) -> Vec<ChangedUnit> {
    let mut changed: Vec<ChangedUnit> = Vec::with_capacity(batch.steps);
    for commit in batch.commits() {
        changed.extend(commit.transitions.iter().map(|step| ChangedUnit {
            event: commit.event,
            unit: step.unit,
            before: Version(step.version.0.saturating_sub(1)),
            state: step.from,
        }));
    }
    // Sorted by version last, so of each unit the first transition of the batch stays.
    changed.sort_unstable_by_key(|unit| (unit.event, unit.unit, unit.before));
    changed.dedup_by_key(|unit| -> (EventNo, UnitNo) { (unit.event, unit.unit) });
    changed
}

fn new_bookings(batch: &Batch) -> Vec<BookingId> {
    distinct(batch.applied.iter().filter_map(|applied| {
        let Answer::Booked(booking) = &applied.answer else {
            return None;
        };
        Some(booking.id)
    }))
}

/// Lists every event whose units changed, once.
pub(super) fn moved_events(batch: &Batch) -> Vec<EventNo> {
    distinct(batch.commits().map(|commit| commit.event))
}

/// Lists events that changed and are not new.
fn changed_events(batch: &Batch) -> Vec<EventNo> {
    let is_new = |event: &EventNo| batch.charts.iter().any(|(new, _)| new == event);
    let changed = batch.applied.iter().filter_map(|applied| applied.event);
    distinct(changed.filter(|event| !is_new(event)))
}

/// The end of each table that only grows, as of the last commit.
#[derive(Clone, Debug)]
pub(super) struct Tails {
    /// The number, hash and time of the last commit.
    pub(super) head: Head,
    /// The end of each event's audit chain, by event number.
    pub(super) chains: Vec<Chain>,
    /// Stored charts: the number and the hash of the document.
    pub(super) charts: Vec<(i64, [u8; 32])>,
    /// The number of the newest effect.
    pub(super) effect: i64,
    pub(super) endpoints: Vec<Endpoint>,
    /// The number of the newest delivery.
    pub(super) delivery: i64,
    /// A buffer for the rows that are hashed, used again for each one.
    pub(super) bytes: Vec<u8>,
}

/// Writes a batch, table by table, in an open transaction, in the order that the triggers of
/// `guards.sql` need: a unit leaves a hold that is over, and a line its booking before it is sold
/// to another.
pub(super) fn write(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
    tails: &mut Tails,
    now: Timestamp,
) -> Result<(), Fault> {
    write_events(connection, inventory, batch, tails, now)?;
    write_holds(connection, inventory, batch)?;
    let changed = changed_units(batch);
    units::write(connection, inventory, &changed, IsSold(false))?;
    write_bookings(connection, inventory, batch)?;
    units::write(connection, inventory, &changed, IsSold(true))?;
    write_audit(connection, batch, tails)?;
    // One command may settle what a later one wants again: money that went back and came back.
    for applied in &batch.applied {
        if applied.done_effects.is_empty() && applied.effects.is_empty() {
            continue;
        }
        outbox::settle(connection, applied.done_effects.iter().copied(), now)?;
        tails.effect = outbox::write(connection, applied.effects.iter(), now, tails.effect)?;
    }
    let (to, messages) = (&tails.endpoints, &batch.messages);
    tails.delivery = deliveries::write(connection, to, messages, now, tails.delivery)?;
    let moved = moved_events(batch);
    let moved = moved.iter();
    let chains = moved.filter_map(|event| Some((*event, tails.chains.get(event.index())?)));
    tails.head = tails.head.then(now, chains);
    tails.head.update(connection)
}

fn write_events(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
    tails: &mut Tails,
    now: Timestamp,
) -> Result<(), Fault> {
    let event = |no: EventNo| {
        let missing = || Fault::damaged("events", format!("event {} is not in memory", no.0));
        inventory.event(no).ok_or_else(missing)
    };
    for (no, document) in &batch.charts {
        let new = event(*no)?;
        let document = document_of(document.as_deref(), &new.chart)?;
        let sha = sha256(&document);
        let known = tails.charts.iter().find(|(_, known)| *known == sha);
        let chart_no = if let Some((chart_no, _)) = known {
            *chart_no
        } else {
            let last = tails.charts.last();
            let chart_no = last.map_or(1, |(last, _)| last.saturating_add(1));
            charts::write(connection, chart_no, &document, &new.chart)?;
            tails.charts.push((chart_no, sha));
            chart_no
        };
        events::insert(connection, new, chart_no)?;
        if tails.chains.len() != no.index() {
            let what = format!("event {} is not the next one", no.0);
            return Err(Fault::damaged("events", what));
        }
        tails.chains.push(Chain::start(new));
    }
    for no in changed_events(batch) {
        events::update(connection, event(no)?, now)?;
    }
    Ok(())
}

fn write_holds(connection: &Connection, inventory: &Inventory, batch: &Batch) -> Result<(), Fault> {
    let new = batch.new_holds();
    let missing = |id: HoldId| Fault::damaged("holds", format!("{id} is not in memory"));
    let found = batch.holds().into_iter();
    let found = found.map(|id| inventory.hold(id).ok_or_else(|| missing(id)));
    holds::write(connection, found, &new)
}

fn write_bookings(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
) -> Result<(), Fault> {
    let changed = batch.bookings();
    if changed.is_empty() {
        return Ok(());
    }
    let missing = |id: &BookingId| Fault::damaged("bookings", format!("{id} is not in memory"));
    let found = changed.iter();
    let found = found.map(|id| inventory.booking(*id).ok_or_else(|| missing(id)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let new = new_bookings(batch);
    bookings::write(connection, &found, |id| new.binary_search(&id).is_ok())
}

fn write_audit(connection: &Connection, batch: &Batch, tails: &mut Tails) -> Result<(), Fault> {
    let (chains, bytes) = (&mut tails.chains, &mut tails.bytes);
    audit::append(connection, batch.commits(), chains, bytes)?;
    for event in moved_events(batch) {
        chain_of(&mut tails.chains, event)?.write(connection, event)?;
    }
    Ok(())
}
