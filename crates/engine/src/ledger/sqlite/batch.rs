//! What one commit is made of: everything the commands of a batch changed, each row once, in the
//! state in which the batch leaves it.

use std::sync::Arc;

use rusqlite::Connection;
use soldonce_core::{
    Answer, Applied, BookingId, Command, EventNo, HoldId, Inventory, Timestamp, UnitNo, Version,
};

use super::fault::Fault;
use super::limits::BATCH_STEPS_MAX;
use super::tables::audit::{self, Chain};
use super::tables::bookings;
use super::tables::head::Head;
use super::tables::holds::HoldWriter;
use super::tables::units::{self, ChangedUnit, IsSold};
use super::tables::{charts, deliveries, events, outbox};
use crate::ledger::NewRecord;
use crate::ledger::decide::{freed_from_sold, may_move_free_units};
use crate::ledger::rows::charts::sha256;
use crate::webhook::{Endpoint, Message};

/// Commands decided in memory and not yet durable.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// What the accepted ones did, in order.
    pub(super) applied: Vec<Applied>,
    /// Their idempotency records.
    pub(super) records: Vec<NewRecord>,
    /// Events that are new, with their charts as they were given.
    pub(super) charts: Vec<(EventNo, Option<Arc<[u8]>>)>,
    /// What webhook endpoints are told of them.
    pub(super) messages: Vec<Message>,
    /// How many transitions they made.
    pub(super) steps: usize,
    /// How many of these freed a unit from SOLD.
    freed: usize,
    /// Whether anything must become durable.
    pub(super) has_effect: bool,
}

impl Batch {
    /// An empty one with room for so many commands.
    pub(super) fn with_room(commands: usize) -> Self {
        Self {
            applied: Vec::with_capacity(commands),
            ..Self::default()
        }
    }

    pub(super) fn add(
        &mut self,
        applied: Applied,
        record: Option<NewRecord>,
        chart: Option<Arc<[u8]>>,
    ) {
        self.has_effect |= applied.has_effect();
        self.freed += freed_from_sold(&applied);
        self.steps += applied
            .commits
            .iter()
            .map(|commit| commit.transitions.len())
            .sum::<usize>();
        self.records.extend(record);
        if let (Answer::EventCreated(_), Some(event)) = (&applied.answer, applied.event) {
            self.charts.push((event, chart));
        }
        self.applied.push(applied);
    }

    /// Whether it may have one more command.
    pub(super) fn has_room_for(&self, command: &Command) -> bool {
        self.steps < BATCH_STEPS_MAX && (self.freed == 0 || !may_move_free_units(command))
    }

    /// Every unit that changed, once, in unit order, with its version before the batch.
    fn changed_units(&self) -> Vec<ChangedUnit> {
        let mut changed: Vec<ChangedUnit> = Vec::with_capacity(self.steps);
        for commit in self.applied.iter().flat_map(|applied| &applied.commits) {
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

    /// Every hold that changed, once.
    pub(super) fn changed_holds(&self) -> Vec<HoldId> {
        distinct(
            self.applied
                .iter()
                .flat_map(|applied| &applied.holds)
                .copied(),
        )
    }

    /// Every booking that changed, once.
    pub(super) fn changed_bookings(&self) -> Vec<BookingId> {
        distinct(
            self.applied
                .iter()
                .flat_map(|applied| &applied.bookings)
                .copied(),
        )
    }

    fn new_holds(&self) -> Vec<HoldId> {
        distinct(self.applied.iter().filter_map(|applied| {
            let Answer::Held(hold) = &applied.answer else {
                return None;
            };
            Some(hold.id)
        }))
    }

    fn new_bookings(&self) -> Vec<BookingId> {
        distinct(self.applied.iter().filter_map(|applied| {
            let Answer::Booked(booking) = &applied.answer else {
                return None;
            };
            Some(booking.id)
        }))
    }

    /// Every event whose units changed, once.
    fn moved_events(&self) -> Vec<EventNo> {
        let commits = self.applied.iter().flat_map(|applied| &applied.commits);
        distinct(commits.map(|commit| commit.event))
    }

    /// Events that are not new and changed.
    fn changed_events(&self) -> Vec<EventNo> {
        let is_new = |event: &EventNo| self.charts.iter().any(|(new, _)| new == event);
        let changed = self.applied.iter().filter_map(|applied| applied.event);
        distinct(changed.filter(|event| !is_new(event)))
    }
}

fn distinct<T: Ord>(ids: impl Iterator<Item = T>) -> Vec<T> {
    let mut ids: Vec<T> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// What the file holds beside the inventory: moved on with each commit.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    /// Where the ledger stands.
    pub(super) head: Head,
    /// Where the audit of each event stands, by its number.
    pub(super) chains: Vec<Chain>,
    /// Charts that are stored, by the hash of their document.
    pub(super) charts: Vec<(i64, [u8; 32])>,
    /// The newest effect.
    pub(super) effect: i64,
    /// Where messages go.
    pub(super) endpoints: Vec<Endpoint>,
    /// The newest delivery.
    pub(super) delivery: i64,
    /// For the rows under the hashes, to be filled again and again.
    pub(super) bytes: Vec<u8>,
}

/// Writes a batch, table by table, inside an open transaction, in the sequence that the triggers of `guards.sql`
/// need: a unit leaves a hold that is over, and a line its booking before it is sold to another one.
pub(super) fn write(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
    ends: &mut Ends,
    now: Timestamp,
) -> Result<(), Fault> {
    write_events(connection, inventory, batch, ends)?;
    write_holds(connection, inventory, batch)?;
    let changed = batch.changed_units();
    units::write(connection, inventory, &changed, IsSold(false))?;
    write_bookings(connection, inventory, batch)?;
    units::write(connection, inventory, &changed, IsSold(true))?;
    write_audit(connection, batch, ends)?;
    let effects = batch.applied.iter().flat_map(|applied| &applied.effects);
    ends.effect = outbox::write(connection, effects, now, ends.effect)?;
    let settled = batch.applied.iter().flat_map(|applied| &applied.settled);
    outbox::settle(connection, settled.copied(), now)?;
    let (to, messages) = (&ends.endpoints, &batch.messages);
    ends.delivery = deliveries::write(connection, to, messages, now, ends.delivery)?;
    let moved = batch.moved_events();
    let chains = moved
        .iter()
        .filter_map(|event| Some((*event, ends.chains.get(event.index())?)));
    ends.head = ends.head.then(now, chains);
    ends.head.update(connection)
}

fn write_events(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
    ends: &mut Ends,
) -> Result<(), Fault> {
    let event = |no: EventNo| {
        let missing = || Fault::damaged("events", format!("event {} is not in memory", no.0));
        inventory.event(no).ok_or_else(missing)
    };
    for (no, document) in &batch.charts {
        let new = event(*no)?;
        let written;
        let document: &[u8] = if let Some(document) = document {
            document
        } else {
            written = serde_json::to_vec(&crate::chart::write(&new.chart))
                .map_err(|error| Fault::damaged("charts", error.to_string()))?;
            &written
        };
        let sha = sha256(document);
        let known = ends
            .charts
            .iter()
            .find(|(_, known)| *known == sha)
            .map(|(no, _)| *no);
        let chart_no = if let Some(chart_no) = known {
            chart_no
        } else {
            let chart_no = ends
                .charts
                .last()
                .map_or(1, |(last, _)| last.saturating_add(1));
            charts::write(connection, chart_no, document, &new.chart)?;
            ends.charts.push((chart_no, sha));
            chart_no
        };
        events::insert(connection, new, chart_no)?;
        if ends.chains.len() != no.index() {
            return Err(Fault::damaged(
                "events",
                format!("event {} is not the next one", no.0),
            ));
        }
        ends.chains.push(Chain::start(new));
    }
    for no in batch.changed_events() {
        events::update(connection, event(no)?)?;
    }
    Ok(())
}

fn write_holds(connection: &Connection, inventory: &Inventory, batch: &Batch) -> Result<(), Fault> {
    let new = batch.new_holds();
    let mut writer = HoldWriter::new(connection)?;
    for id in batch.changed_holds() {
        let missing = || Fault::damaged("holds", format!("{id} is not in memory"));
        let hold = inventory.hold(id).ok_or_else(missing)?;
        if new.binary_search(&id).is_ok() {
            writer.insert(hold)?;
        } else {
            writer.update(hold)?;
        }
    }
    Ok(())
}

fn write_bookings(
    connection: &Connection,
    inventory: &Inventory,
    batch: &Batch,
) -> Result<(), Fault> {
    let changed = batch.changed_bookings();
    if changed.is_empty() {
        return Ok(());
    }
    let missing = |id: &BookingId| Fault::damaged("bookings", format!("{id} is not in memory"));
    let found = changed
        .iter()
        .map(|id| inventory.booking(*id).ok_or_else(|| missing(id)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let new = batch.new_bookings();
    bookings::write(connection, &found, |id| new.binary_search(&id).is_ok())
}

fn write_audit(connection: &Connection, batch: &Batch, ends: &mut Ends) -> Result<(), Fault> {
    let missing =
        |event: EventNo| Fault::damaged("chains", format!("event {} has no chain", event.0));
    for commit in batch.applied.iter().flat_map(|applied| &applied.commits) {
        let event = commit.event;
        let chain = ends
            .chains
            .get_mut(event.index())
            .ok_or_else(|| missing(event))?;
        audit::append(connection, commit, chain, &mut ends.bytes)?;
    }
    for event in batch.moved_events() {
        let chain = ends
            .chains
            .get(event.index())
            .ok_or_else(|| missing(event))?;
        chain.write(connection, event)?;
    }
    Ok(())
}
