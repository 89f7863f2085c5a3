//! A server's cache of one event: its inventory, and the versions of the rows it was read from.
//! Between two statements the cache is what some snapshot of the database showed, as a whole: read
//! in one transaction, and advanced by what this server itself wrote.

mod holders;
mod named;
mod stale;

use std::collections::BTreeMap;

use soldonce_core::{BookingId, EventNo, HoldId, Inventory, Timestamp, Unit, UnitNo};

pub(super) use self::holders::Account;
use self::holders::Holders;
pub(super) use self::named::ToLoad;
pub(super) use self::stale::bookings_by_id;
use self::stale::{SnapshotRows, StaleRows, WRITTEN, holders_by_key, read_horizon};
use super::bind::bind;
use super::charts::Charts;
use super::database::Connection;
use super::failure::Failure;
use super::horizon::Horizon;
use super::tables::bookings::BookingRow;
use super::tables::holds::{HolderRow, get_holder};
use super::tables::{Id, bookings, holder_key, holds, int, units};
use crate::ledger::batch::Batch;
use crate::ledger::rows::holds::get as get_hold;
use crate::ledger::rows::reader::column;

/// One snapshot for several statements.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The latest time of a commit that has no number yet: those that have one are in the past.
const LATEST: &str = "-- latest
SELECT max(at) FROM batches
WHERE event_no = $1 AND xid >= (SELECT xid::text::xid8 FROM sequencer WHERE one = 1)";

/// The cache of one event.
pub(super) struct Replica {
    pub(super) no: EventNo,
    /// The event alone, with everything in it that is not over.
    pub(super) inventory: Inventory,
    pub(super) event_version: i64,
    pub(super) holders: Holders,
    /// The versions of the bookings in the inventory.
    pub(super) bookings: BTreeMap<BookingId, i64>,
    /// Of the snapshot that the cache shows.
    horizon: Horizon,
    /// The cache may be wrong or half read: the next refresh loads everything anew.
    cold: bool,
    /// How often all of it was read.
    pub(super) loads: u64,
    /// A batch of this server whose outcome is unknown.
    pub(super) unresolved: Option<Id>,
    /// The time of the latest commit in the cache. No decision on it has an earlier time.
    pub(super) latest: Timestamp,
}

/// What a refresh brought.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) units: Vec<UnitNo>,
    /// Holds that are over or unknown by now.
    pub(super) ended: Vec<HoldId>,
    /// Whether the event's own row was read.
    pub(super) event: bool,
}

impl Replica {
    /// Creates the cache of an event, cold: the first [`Replica::refresh`] loads it.
    pub(super) fn new(no: EventNo) -> Self {
        Self {
            no,
            inventory: Inventory::starting_at(no),
            event_version: 0,
            holders: Holders::default(),
            bookings: BTreeMap::new(),
            horizon: Horizon::default(),
            cold: true,
            loads: 0,
            unresolved: None,
            latest: Timestamp::MIN,
        }
    }

    /// Marks all of it as cold: the next refresh loads it anew.
    pub(super) fn forget(&mut self) {
        self.cold = true;
    }

    pub(super) fn is_cold(&self) -> bool {
        self.cold
    }

    /// Marks all of it as cold after a batch without an answer. That may still be running: nothing
    /// is read before it is resolved, or it could be stored after what was read and never be seen.
    pub(super) fn forget_until_resolved(&mut self, batch: Id) {
        self.unresolved = Some(batch);
        self.forget();
    }

    /// Takes over what other servers wrote since the last time; what `server` wrote is in memory already.
    /// Reads in a snapshot of its own, or in the transaction that is open on this connection and has the
    /// event's lock exclusively. Loads what is `named` in the same snapshot: the rules panic at a booking
    /// that owns a unit which is not sold.
    ///
    /// # Errors
    /// [`Failure`]; then nothing changed, or everything is read anew the next time.
    pub(super) async fn refresh(
        &mut self,
        connection: &mut Connection,
        charts: &Charts,
        server: Id,
        named: &ToLoad,
    ) -> Result<News, Failure> {
        let is_whole = !self.cold && self.holders.missing.is_empty() && self.knows(named);
        if is_whole && !self.is_behind(connection, server).await? {
            return Ok(News::default());
        }
        // A transaction with the event's exclusive lock sees one state of it in each of its statements.
        let is_exclusive = connection.in_transaction();
        if !is_exclusive {
            connection.begin(SNAPSHOT).await?;
        }
        let read = if self.cold {
            self.load(connection, charts).await
        } else {
            self.catch_up(connection, charts, server).await
        };
        let news = match read {
            Ok(news) => news,
            Err(failure) => {
                if matches!(failure, Failure::Damaged(_)) {
                    // Half of what was read may be in here.
                    self.forget();
                }
                connection.roll_back().await;
                return Err(failure);
            }
        };
        // The news are lost with a future that is dropped now: then all of it must be loaded again.
        self.forget();
        let loaded = match self.load_named(connection, named).await {
            Ok(()) => self.load_holders(connection).await,
            failed => failed,
        };
        let read = match loaded {
            Ok(()) if is_exclusive => Ok(()),
            loaded => connection.finish(loaded).await,
        };
        read?;
        self.cold = false;
        Ok(news)
    }

    async fn load(
        &mut self,
        connection: &mut Connection,
        charts: &Charts,
    ) -> Result<News, Failure> {
        let no = int(self.no.0)?;
        let of_event = [bind(&no)];
        let mut fresh = Self::new(self.no);
        fresh.horizon = read_horizon(connection).await?;
        let row = charts.event_of(connection, no).await?;
        let row = row.ok_or_else(|| missing(self.no))?;
        fresh.event_version = row.version;
        fresh
            .inventory
            .restore_event(row.event, self.inventory.seq(self.no));
        let changed = connection.read(units::UNITS_OF_EVENT, &of_event, units::get);
        let units = fresh.take_units(changed.await?)?;
        let buyers = (holds::BUYERS_OF_EVENT, "holders");
        for row in connection.read(buyers, &of_event, get_holder).await? {
            fresh.take_holder(row);
        }
        let pending = (bookings::PENDING_BOOKINGS, "holds");
        let pending: Vec<Id> = connection.read(pending, &of_event, column).await?;
        for row in bookings_by_id(connection, &pending).await? {
            fresh.take_booking(row);
        }
        let live = connection.read(holds::LIVE_HOLDS, &of_event, get_hold);
        for hold in live.await? {
            fresh.inventory.restore_hold(hold);
        }
        let holding = fresh.inventory.holds().map(|hold| holder_key(&hold.holder));
        fresh
            .read_holders(connection, &holding.collect::<Vec<_>>())
            .await?;
        let latest: Option<Option<Timestamp>> =
            connection.one((LATEST, "batches"), &of_event).await?;
        fresh.latest = latest.flatten().unwrap_or(Timestamp::MIN);
        fresh.inventory.restore_clock(self.inventory.clock());
        fresh.cold = false;
        fresh.loads = self.loads.saturating_add(1);
        let is_gone = |id: &HoldId| fresh.inventory.hold(*id).is_none();
        let ended = self.inventory.holds().map(|hold| hold.id).filter(is_gone);
        let ended = ended.collect();
        // A load of the whole event leaves idle holders out.
        fresh.holders.missing.append(&mut self.holders.missing);
        *self = fresh;
        Ok(News {
            units,
            ended,
            event: true,
        })
    }

    async fn catch_up(
        &mut self,
        connection: &mut Connection,
        charts: &Charts,
        server: Id,
    ) -> Result<News, Failure> {
        let no = int(self.no.0)?;
        let [first, last] = self.horizon.parts();
        let since = [first, last, bind(&no), bind(&server)];
        let stale = StaleRows::read(&connection.rows(WRITTEN, &since).await?)?;
        let horizon = read_horizon(connection).await?;
        let Some(stale) = stale else {
            self.horizon = horizon;
            return Ok(News::default());
        };
        let latest = Timestamp::from_ms(stale.latest);
        let rows = stale.fetch(connection, charts, no).await?;
        self.horizon = horizon;
        self.latest = self.latest.max(latest);
        self.take(rows)
    }

    /// Takes rows of one snapshot over: units before the holds that own them.
    fn take(&mut self, rows: SnapshotRows) -> Result<News, Failure> {
        let event = rows.event.is_some();
        if let Some(row) = rows.event {
            self.event_version = row.version;
            self.inventory.replace_event(row.event);
        }
        let units = self.take_units(rows.units)?;
        let mut ended = Vec::new();
        let bookings: Vec<BookingId> = rows.bookings.iter().map(|row| row.booking.id).collect();
        for row in rows.bookings {
            self.take_booking(row);
        }
        for hold in rows.holds {
            if hold.state.is_terminal() {
                self.inventory.drop_hold(hold.id);
                ended.push(hold.id);
            } else {
                self.inventory.restore_hold(hold);
            }
        }
        for row in rows.holders {
            self.take_holder(row);
        }
        self.evict([], bookings);
        self.holders.evict(&self.inventory, self.no);
        Ok(News {
            units,
            ended,
            event,
        })
    }

    fn take_units(&mut self, units: Vec<(UnitNo, Unit)>) -> Result<Vec<UnitNo>, Failure> {
        let mut changed = Vec::with_capacity(units.len());
        for (no, unit) in units {
            self.inventory
                .restore_unit(self.no, no, unit)
                .map_err(|_| missing(self.no))?;
            changed.push(no);
        }
        Ok(changed)
    }

    fn take_holder(&mut self, row: HolderRow) {
        self.inventory
            .replace_bought(self.no, &row.holder, row.bought);
        self.holders.note(row.holder, row.version);
    }

    async fn read_holders(
        &mut self,
        connection: &mut Connection,
        keys: &[Id],
    ) -> Result<(), Failure> {
        for row in holders_by_key(connection, int(self.no.0)?, keys).await? {
            self.take_holder(row);
        }
        Ok(())
    }

    /// Reads the rows of holders that exist and are not remembered.
    async fn load_holders(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let missing = self.holders.missing.clone();
        if missing.is_empty() {
            return Ok(());
        }
        self.read_holders(connection, &missing).await?;
        self.holders.missing.clear();
        Ok(())
    }

    /// Keeps the changes of a stored batch in memory, and raises the versions of the rows it wrote.
    pub(super) fn take_over(&mut self, batch: &Batch, accounts: Vec<Account>) {
        for id in batch.bookings() {
            let version = self.bookings.entry(id).or_insert(0);
            *version = version.saturating_add(1);
        }
        if batch.renews_event() {
            self.event_version = self.event_version.saturating_add(1);
        }
        self.inventory.keep();
        for account in accounts {
            let version = account.version.saturating_add(1);
            self.holders.note(account.holder, version);
        }
        self.holders.evict(&self.inventory, self.no);
    }

    fn take_booking(&mut self, row: BookingRow) {
        self.bookings.insert(row.booking.id, row.version);
        self.inventory.restore_booking(row.booking);
    }
}

fn missing(no: EventNo) -> Failure {
    let what = format!("event {} or one of its units is missing", no.0);
    Failure::Damaged(crate::ledger::rows::Damaged::new("events", what))
}
