//! The start: builds memory from the tables, one scan of each. Rows that contradict each other stop
//! the start, so that nothing is sold wrongly.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::{Connection, TransactionBehavior};
use secrecy::SecretBox;
use soldonce_clock::Entropy;
use soldonce_core::{Chart, EventNo, Hold, HoldId, HoldState, Holder, Inventory, UnitState};

use super::batch::Tails;
use super::checkpoint::Checkpointer;
use super::fault::Fault;
use super::folder::{Folder, HighWater, Mark};
use super::read_ahead::read_ahead;
use super::tables::audit::Chain;
use super::tables::head::Head;
use super::tables::{
    bookings, charts, deliveries, dropped, endpoints, events, holds, idempotency, keys, outbox,
    units,
};
use super::{OpenError, SqliteOptions, connection, guards};
use crate::ledger::MasterKey;
use crate::ledger::stored_keys::StoredKeys;

/// An open ledger with its memory.
pub(super) struct OpenLedger {
    pub(super) connection: Connection,
    pub(super) checkpointer: Checkpointer,
    pub(super) inventory: Inventory,
    pub(super) keys: StoredKeys,
    pub(super) tails: Tails,
    pub(super) high_water: HighWater,
    pub(super) masters: Vec<MasterKey>,
}

/// Opens the database of a locked folder and builds memory from it.
pub(super) fn open(
    folder: &Folder,
    options: &SqliteOptions,
    entropy: &dyn Entropy,
) -> Result<OpenLedger, OpenError> {
    if !options.accept_loss {
        require_database(folder)?;
    }
    let (mut connection, _) = connection::writer(folder)?;
    if let Some(name) = guards::missing(&connection)?.first() {
        let what = format!(
            "`{name}` is missing or not as it was made, so the file refuses less than it must: run \
             `soldonce verify`, and put a sound copy of the folder back"
        );
        return Err(Fault::damaged("sqlite_schema", what).into());
    }
    let found = Head::find(&connection)?;
    if !options.accept_loss {
        require_whole(folder, folder.high_water(), found.as_ref())?;
    }
    let head = match found {
        Some(head) => head,
        None => start(&mut connection, entropy)?,
    };
    let high_water = folder.open_high_water(&head)?;
    let (inventory, keys, tails) = rebuild(&connection, folder, head)?;
    let masters = keys::masters(&connection)?;
    if masters.is_empty() {
        return Err(Fault::damaged("master_keys", "there is none").into());
    }
    let checkpointer = Checkpointer::start(folder)?;
    Ok(OpenLedger {
        connection,
        checkpointer,
        inventory,
        keys,
        tails,
        high_water,
        masters,
    })
}

/// Fails if the database of the folder is lost, before a new one is created in its place.
pub(super) fn require_database(folder: &Folder) -> Result<(), OpenError> {
    if folder.is_without_database()? {
        if folder.has_part()? {
            return Err(OpenError::Failed(format!(
                "a copy into `{}` was cut off: make it again, or delete `ledger.sqlite.part` for a new ledger",
                folder.path().display()
            )));
        }
        return require_whole(folder, folder.high_water(), None);
    }
    Ok(())
}

/// Fails if the ledger is or may be behind its high-water mark; `head` is none without a ledger.
pub(super) fn require_whole(
    folder: &Folder,
    mark: Result<Option<Mark>, Fault>,
    head: Option<&Head>,
) -> Result<(), OpenError> {
    let behind = |what: String| OpenError::Behind {
        folder: folder.path().to_owned(),
        what,
    };
    let mark = mark.map_err(|fault| behind(fault.to_string()))?;
    match (head, mark) {
        (None, Some(mark)) => Err(behind(format!("it is empty, {} were made", mark.commits))),
        (Some(head), None) if head.commits > 0 => Err(OpenError::Unmarked {
            folder: folder.path().to_owned(),
        }),
        (Some(head), Some(mark)) if head.commits < mark.commits => Err(behind(format!(
            "it ends at {}, {} were made",
            head.commits, mark.commits
        ))),
        (Some(head), Some(mark)) if head.commits == mark.commits && head.hash != mark.hash => {
            let commits = head.commits;
            Err(behind(format!(
                "commit {commits} is not the one that was made"
            )))
        }
        (None | Some(_), None) | (Some(_), Some(_)) => Ok(()),
    }
}

/// Writes the first rows of a new ledger: a master key, and a head that no other ledger has.
fn start(connection: &mut Connection, entropy: &dyn Entropy) -> Result<Head, Fault> {
    let (mut secret, mut seed) = (Box::new([0; 32]), [0; 32]);
    entropy.fill(secret.as_mut_slice());
    entropy.fill(&mut seed);
    let master = MasterKey {
        version: 1,
        secret: Arc::new(SecretBox::new(secret)),
    };
    let head = Head::start(seed);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    keys::insert_master(&transaction, &master)?;
    head.insert(&transaction)?;
    transaction.commit()?;
    Ok(head)
}

fn rebuild(
    connection: &Connection,
    folder: &Folder,
    head: Head,
) -> Result<(Inventory, StoredKeys, Tails), OpenError> {
    std::thread::scope(|scope| {
        // A second connection reads what is only counted, while this one reads units and holds.
        let accounts = scope.spawn(|| Accounts::read(folder));
        let mut inventory = Inventory::new();
        let chains = rebuild_events(connection, &mut inventory)?;
        rebuild_units(connection, folder, &mut inventory, &chains)?;
        let lost = |_| OpenError::Failed("the reading of the bookings panicked".to_owned());
        let accounts = accounts.join().map_err(lost)??;
        accounts.restore_bought(&mut inventory)?;
        inventory.restore_clock(head.clock);
        let tails = Tails {
            head,
            chains,
            charts: charts::numbers(connection)?,
            effect: outbox::last(connection)?,
            endpoints: endpoints::all(connection)?,
            delivery: deliveries::last(connection)?,
            bytes: Vec::new(),
        };
        Ok((inventory, accounts.keys, tails))
    })
}

fn rebuild_events(connection: &Connection, inventory: &mut Inventory) -> Result<Vec<Chain>, Fault> {
    let mut read: BTreeMap<i64, Arc<Chart>> = BTreeMap::new();
    let all = events::all(connection, |number| {
        if let Some(chart) = read.get(&number) {
            return Ok(Arc::clone(chart));
        }
        let chart = charts::find(connection, number)?;
        read.insert(number, Arc::clone(&chart));
        Ok(chart)
    })?;
    let mut chains = Vec::with_capacity(all.len());
    let mut dropped = dropped::all(connection)?.into_iter().peekable();
    let mut put_back = |before: Option<EventNo>, inventory: &mut Inventory, chains: &mut Vec<_>| {
        while let Some((_, (id, tombstone))) =
            dropped.next_if(|(no, _)| before.is_none_or(|before| *no < before))
        {
            inventory.restore_dropped(id);
            chains.push(Chain::gone(&tombstone));
        }
    };
    for event in all {
        put_back(Some(event.no), inventory, &mut chains);
        let chain = Chain::find(connection, event.no)?.unwrap_or_else(|| Chain::start(&event));
        inventory.restore_event(event, chain.seq);
        chains.push(chain);
    }
    put_back(None, inventory, &mut chains);
    Ok(chains)
}

/// Sums of one event that must be equal to those of other tables.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// The sum of all unit versions: each transition added one.
    versions: u64,
    held: u64,
}

/// Restores units, then the holds that own some of them: each side must refer to the other.
fn rebuild_units(
    connection: &Connection,
    folder: &Folder,
    inventory: &mut Inventory,
    chains: &[Chain],
) -> Result<(), OpenError> {
    let mut sums = vec![Sums::default(); chains.len()];
    let mut oldest: Option<HoldId> = None;
    let dropped: BTreeSet<EventNo> = inventory.dropped().map(|(_, no)| no).collect();
    units::each(connection, |row| {
        // The row is still to be deleted.
        if dropped.contains(&row.event) {
            return Ok(());
        }
        let foreign = || {
            let what = format!("event {} has no unit {:?}", row.event.0, row.no);
            Fault::damaged("units", what)
        };
        let sum = sums.get_mut(row.event.index()).ok_or_else(foreign)?;
        sum.versions = sum.versions.saturating_add(row.unit.version.0);
        if let UnitState::Held { hold, .. } = row.unit.state {
            sum.held = sum.held.saturating_add(1);
            oldest = Some(oldest.map_or(hold, |known| known.min(hold)));
        }
        inventory
            .restore_unit(row.event, row.no, row.unit)
            .map_err(|_| foreign())
    })?;
    if let Some(oldest) = oldest {
        read_ahead(
            |chunks| {
                let reader = connection::reader(folder)?;
                Ok(holds::each_live(&reader, oldest, |hold| chunks.push(hold))?)
            },
            |hold| restore_hold(connection, inventory, hold, &mut sums),
        )?;
    }
    for ((sum, chain), event) in sums.iter().zip(chains).zip(0_u32..) {
        if sum.versions != chain.steps {
            let what = format!(
                "event {event} has made {} transitions, its units know of {}",
                chain.steps, sum.versions
            );
            return Err(Fault::damaged("units", what).into());
        }
        if sum.held != 0 {
            let what = format!("{} held units of event {event} have no live hold", sum.held);
            return Err(Fault::damaged("units", what).into());
        }
    }
    Ok(())
}

/// Restores a hold of the file; fails unless its units refer to it.
fn restore_hold(
    connection: &Connection,
    inventory: &mut Inventory,
    hold: Hold,
    sums: &mut [Sums],
) -> Result<(), Fault> {
    let seating = inventory.seating(hold.event);
    let owns = |unit: UnitState| {
        unit == UnitState::Held {
            hold: hold.id,
            until: hold.expires_at,
        }
    };
    let foreign = hold.units.iter().find(|held| {
        let unit = seating.and_then(|seating| seating.units().get(held.unit.index()));
        !unit.is_some_and(|unit| owns(unit.state) && unit.fence == hold.fence)
    });
    if let Some(held) = foreign {
        let what = format!("{} does not have its unit {:?}", hold.id, held.unit);
        return Err(Fault::damaged("holds", what));
    }
    if let Some(sum) = sums.get_mut(hold.event.index()) {
        let units = u64::try_from(hold.units.len()).unwrap_or(u64::MAX);
        sum.held = sum.held.saturating_sub(units);
    }
    if let HoldState::Pinned(id) = hold.state {
        let missing = || Fault::damaged("bookings", format!("{id} of {} is missing", hold.id));
        inventory.restore_booking(bookings::find(connection, id)?.ok_or_else(missing)?);
    }
    inventory.restore_hold(hold);
    Ok(())
}

/// The rows that are only counted: units that holders have bought, and idempotency keys.
#[derive(Default)]
struct Accounts {
    bought: Vec<(EventNo, Holder, u32)>,
    keys: StoredKeys,
}

impl Accounts {
    fn read(folder: &Folder) -> Result<Self, OpenError> {
        let connection = connection::reader(folder)?;
        let mut accounts = Self::default();
        bookings::each(&connection, |row| {
            if row.sold > 0 {
                let bought = (row.booking.event, row.booking.holder, row.sold);
                accounts.bought.push(bought);
            }
            Ok(())
        })?;
        idempotency::each(&connection, |record| {
            accounts.keys.add(record.key.scoped, record.number);
            ControlFlow::Continue(())
        })?;
        Ok(accounts)
    }

    /// Adds the bought units to the counts of their holders; fails unless as many units are sold.
    fn restore_bought(&self, inventory: &mut Inventory) -> Result<(), Fault> {
        let mut sold: BTreeMap<EventNo, u64> = BTreeMap::new();
        for (event, holder, units) in &self.bought {
            let count = sold.entry(*event).or_default();
            *count = count.saturating_add(u64::from(*units));
            inventory.restore_bought(*event, holder, *units);
        }
        for event in inventory.events() {
            let seating = inventory.seating(event.no);
            let units = seating.map_or(0, |seating| seating.tally().sold);
            let lines = sold.get(&event.no).copied().unwrap_or(0);
            if u64::from(units) != lines {
                let id = &event.id;
                let what = format!("{units} units of `{id}` are sold, {lines} lines say so");
                return Err(Fault::damaged("bookings", what));
            }
        }
        Ok(())
    }
}
