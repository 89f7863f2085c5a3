//! Many servers on one database, by its own clock: races between them, and what is left when one of
//! them, its connection or the database itself ends in the middle.

mod apart;
mod cancel;
mod clocks;
mod connections;
mod faults;
mod guards;
mod holders;
mod lag;
mod left_open;
mod melee;
mod places;
mod plans;
mod pool;
mod races;
mod staleness;
mod standby;
mod turns;
mod unsynced;
mod wrong;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use soldonce_clock::{SeededEntropy, SystemClock};
use soldonce_core::{
    Auditor, Command, Commit, Event, EventId, EventNo, Hold, HoldId, NewEvent, NewHold, Policy,
    Rejection, Selection, TtlMax, Wish,
};
use soldonce_engine::ledger::postgres::{
    Durability, OpenError, PostgresLedger, PostgresOptions, Statements, migrate,
};
use soldonce_engine::ledger::{Done, Ledger, Observer, RequestKey};
use soldonce_testkit::postgres::Postgres;

use crate::ledgers::{
    HALL, Recorder, created, held, holder, log, new_event, select, transaction, wait_for_numbers,
};

/// One database and some servers on it.
struct Servers {
    database: Postgres,
    options: PostgresOptions,
    ledgers: Vec<Arc<PostgresLedger>>,
    next: Arc<AtomicU64>,
}

fn hold_id(next: &AtomicU64) -> HoldId {
    let at = u128::from(next.fetch_add(1, Ordering::Relaxed));
    HoldId::from_bits((1 << 100) | at)
}

impl Servers {
    async fn start(count: usize) -> Self {
        Self::start_on(Postgres::start().unwrap(), count).await
    }

    async fn start_on(database: Postgres, count: usize) -> Self {
        log();
        let options = PostgresOptions {
            durability: Durability::Waived,
            ..PostgresOptions::new(database.url())
        };
        migrate(&options).await.unwrap();
        let mut servers = Self {
            database,
            options,
            ledgers: Vec::new(),
            next: Arc::new(AtomicU64::new(1)),
        };
        for _ in 0..count {
            let ledger = servers.one_more(&servers.options).await;
            servers.ledgers.push(ledger);
        }
        servers
    }

    /// Opens one more ledger, with options of its own.
    async fn one_more(&self, options: &PostgresOptions) -> Arc<PostgresLedger> {
        let opened = self.open(options, Arc::new(Recorder::default()));
        Arc::new(opened.await.unwrap())
    }

    /// Adds a ledger that this observer watches.
    async fn add_watched(&mut self, observer: Arc<dyn Observer>) {
        let opened = self.open(&self.options, observer).await;
        self.ledgers.push(Arc::new(opened.unwrap()));
    }

    /// What one more server meets when it starts.
    async fn open_one(&self) -> Result<PostgresLedger, OpenError> {
        let observer = Arc::new(Recorder::default());
        self.open(&self.options, observer).await
    }

    async fn open(
        &self,
        options: &PostgresOptions,
        observer: Arc<dyn Observer>,
    ) -> Result<PostgresLedger, OpenError> {
        // Every process draws its own name.
        let entropy = SeededEntropy::new(self.next.fetch_add(1, Ordering::Relaxed));
        PostgresLedger::open(options, Arc::new(SystemClock), &entropy, observer).await
    }

    fn deadlocks(&self) -> String {
        let sql = "SELECT sum(deadlocks) FROM pg_stat_database";
        self.database.query(sql).unwrap()
    }

    /// The same database through another address, each statement sent whole.
    fn unprepared_at(&self, url: String) -> PostgresOptions {
        PostgresOptions {
            url,
            statements: Statements::Unprepared,
            ..self.options.clone()
        }
    }

    async fn event(&self, change: impl Fn(&mut Policy)) -> Arc<Event> {
        self.event_on(HALL, change).await
    }

    async fn event_on(&self, chart: &str, change: impl Fn(&mut Policy)) -> Arc<Event> {
        self.make(new_event("hamlet-1", chart, change)).await
    }

    async fn event_named(&self, id: &str) -> Arc<Event> {
        self.make(new_event(id, HALL, |_| {})).await
    }

    async fn make(&self, new: NewEvent) -> Arc<Event> {
        created(self.ask(0, Command::CreateEvent(Box::new(new))).await)
    }

    fn wish(&self, event: &Event, who: &str, seats: &[&str]) -> Command {
        self.want(event.no, who, select(event, seats, &[]))
    }

    fn want(&self, event: EventNo, who: &str, selection: Selection) -> Command {
        Command::Hold(NewHold {
            event,
            hold: hold_id(&self.next),
            holder: holder(who),
            wish: Wish::Named(selection),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        })
    }

    async fn ask(&self, server: usize, command: Command) -> Result<Done, Rejection> {
        let ledger = &self.ledgers[server];
        ledger.transact(transaction(command, None)).await
    }

    async fn ask_as(
        &self,
        server: usize,
        command: Command,
        key: RequestKey,
    ) -> Result<Done, Rejection> {
        let ledger = &self.ledgers[server];
        ledger.transact(transaction(command, Some(key))).await
    }

    async fn hold(
        &self,
        server: usize,
        event: &Event,
        who: &str,
        seats: &[&str],
    ) -> Result<Hold, Rejection> {
        let command = self.wish(event, who, seats);
        held(self.ask(server, command).await)
    }

    /// The commits of an event, which are so many, once each has its number.
    async fn shown(&self, server: usize, event: &Event, count: usize) -> Vec<Commit> {
        wait_for_numbers(&self.options.url, || {});
        let history = self.ledgers[server].history(event.id.clone()).await;
        let shown = history.unwrap().commits;
        assert_eq!(shown.len(), count, "of {}", event.id);
        shown
    }

    /// The whole history, judged; and every commit has the next number.
    async fn judge(&self, server: usize, event: &EventId) -> usize {
        let ledger = &self.ledgers[server];
        let history = ledger.history(event.clone()).await.unwrap();
        let found = Auditor::check(&history);
        assert!(found.is_empty(), "{found:#?}");
        for (seq, commit) in (1_u64..).zip(&history.commits) {
            assert_eq!(commit.seq.0, seq, "the numbers are dense");
        }
        history.commits.len()
    }
}
