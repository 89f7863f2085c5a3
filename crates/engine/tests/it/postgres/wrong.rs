//! A server that remembers an event wrongly at the right version meets the database's own guards: no buyer
//! is sold what is another's, the buyer gets the right refusal, and the next buyer is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use soldonce_core::{Command, Conflict, ConflictState, Rejection};
use soldonce_engine::ledger::postgres::{OpenError, migrate, verify};
use soldonce_engine::ledger::{Ledger, Observer};

use super::Servers;
use super::turns::Other;
use crate::ledgers::{Recorder, booked, cancel, confirm, held, on, transaction};

/// Counts how often the memory was found to be wrong.
#[derive(Default)]
struct Doubts(AtomicU64);

impl Observer for Doubts {
    fn distrusted(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// One server, and how often it found its memory wrong.
async fn server() -> (Servers, Arc<Doubts>) {
    let mut servers = Servers::start(0).await;
    let doubts = Arc::new(Doubts::default());
    servers.add_watched(doubts.clone()).await;
    (servers, doubts)
}

impl Servers {
    /// Changes rows without a trace for those who remember them.
    fn behind_its_back(&self, sql: &str) {
        let sql = format!("SET session_replication_role = replica; {sql}");
        self.database.query(&sql).unwrap();
    }

    /// The damage was on purpose: the database is not judged.
    async fn forgive(mut self) {
        let empty = self.database.database().unwrap();
        self.options.url = self.database.url_of(&empty);
        migrate(&self.options).await.unwrap();
    }

    /// The next buyer of another seat is served after the last one's refusal.
    async fn goes_on(&self, event: &soldonce_core::Event) {
        let hold = self.hold(0, event, "zoe", &["B-5"]).await.unwrap();
        self.ask(0, confirm(&hold, 99)).await.unwrap();
    }
}

fn taken(refused: &Rejection) -> Vec<ConflictState> {
    let Rejection::UnitUnavailable(why) = refused else {
        panic!("{refused:?}")
    };
    let state = |conflict: &Conflict| match conflict {
        Conflict::Seat { state, .. } => *state,
        Conflict::Area { .. } => panic!("{refused:?}"),
    };
    why.conflicts.iter().map(state).collect()
}

/// Every seat that a buyer held and gave up is sold: the row says so at the version it had.
const SELL: &str = "UPDATE units SET state = 2, owner = '\\x00000000000000000000000000000007', fence = fence + 1 WHERE version > 0";

/// Carol has it: a live hold like the last one.
const HOLD: &str = "INSERT INTO holds SELECT '\\x00000000000000000000000000000042', event_no, caller, 'carol', 0, \
     NULL, NULL, fence + 1, units, created_at, expires_at, max_expires_at, together FROM holds; \
     UPDATE holds SET state = 3 WHERE holder <> 'carol'; \
     UPDATE units SET state = 1, owner = '\\x00000000000000000000000000000042', fence = fence + 1, \
     until = (SELECT max(expires_at) FROM holds) WHERE version > 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sold_unit_that_memory_calls_free_is_refused_as_sold() {
    let (servers, doubts) = server().await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    held(servers.ask(0, Command::Release { on: on(&hold) }).await).unwrap();
    servers.behind_its_back(SELL);
    let refused = servers.hold(0, &event, "bob", &["A-1"]).await.unwrap_err();
    assert_eq!(taken(&refused), [ConflictState::Sold]);
    assert!(doubts.0.load(Ordering::Relaxed) > 0);
    servers.goes_on(&event).await;
    servers.forgive().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_unit_that_memory_calls_free_is_refused_as_held() {
    let (servers, _) = server().await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    held(servers.ask(0, Command::Release { on: on(&hold) }).await).unwrap();
    servers.behind_its_back(HOLD);
    let refused = servers.hold(0, &event, "bob", &["A-1"]).await.unwrap_err();
    assert_eq!(taken(&refused), [ConflictState::Held]);
    servers.goes_on(&event).await;
    servers.forgive().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_that_memory_gives_the_wrong_owner_is_not_sold_to_him() {
    let (servers, _) = server().await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    servers.behind_its_back(HOLD);
    let refused = booked(servers.ask(0, confirm(&hold, 1)).await).unwrap_err();
    assert_eq!(refused, Rejection::HoldReleased);
    assert_eq!(
        servers
            .database
            .query("SELECT count(*) FROM lines")
            .unwrap(),
        "0"
    );
    servers.goes_on(&event).await;
    servers.forgive().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_sold_is_not_cancelled() {
    let (servers, _) = server().await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let booking = booked(servers.ask(0, confirm(&hold, 1)).await).unwrap();
    servers.behind_its_back(
        "UPDATE lines SET state = 2; UPDATE bookings SET state = 3; \
         UPDATE units SET state = 0, owner = NULL, fence = fence + 1 WHERE version > 0",
    );
    let refused = booked(servers.ask(0, cancel(booking.id)).await).unwrap_err();
    assert!(
        matches!(refused, Rejection::AlreadyCancelled(_)),
        "{refused:?}"
    );
    servers.goes_on(&event).await;
    servers.forgive().await;
}

/// A booking has a seat whose row says that it is free: the damage stays when the event is read anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_that_a_booking_has_is_not_sold_again_though_its_row_says_free() {
    let (servers, _) = server().await;
    let event = servers.event(|_| {}).await;
    let hold = servers
        .hold(0, &event, "ann", &["A-1", "A-2"])
        .await
        .unwrap();
    servers.behind_its_back(
        "INSERT INTO lines (booking, n, event_no, unit_no, price, version, state) \
         VALUES ('\\x0001', 0, 0, 0, 1, 1, 1)",
    );
    let refused = booked(servers.ask(0, confirm(&hold, 1)).await).unwrap_err();
    assert_eq!(taken(&refused), [ConflictState::Sold]);
    servers.goes_on(&event).await;
    servers.forgive().await;
}

/// The last word in the statement's own words, and at which isolation it has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_waited_for_a_row_decides_by_what_it_has_become() {
    for (isolation, passes) in [("read committed", true), ("repeatable read", false)] {
        let servers = Servers::start(1).await;
        let event = servers.event(|_| {}).await;
        servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
        let lock = "SELECT FROM units WHERE event_no = 0 AND unit_no = 0 FOR UPDATE";
        let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted";
        let take =
            format!("BEGIN; {lock}; UPDATE units SET version = version + 1 WHERE unit_no = 0");
        let first = Other::run(&servers.database.url(), &take).await;
        let url = servers.database.url();
        let seen = format!(
            "BEGIN ISOLATION LEVEL {isolation}; \
             SELECT count(*) FROM (SELECT FROM units WHERE event_no = 0 AND unit_no = 0 \
             AND version = 1 FOR UPDATE) AS seen; COMMIT"
        );
        let second = std::thread::spawn(move || soldonce_testkit::postgres::query(&url, &seen));
        let has_come = || servers.database.query(waits).is_ok_and(|some| some == "t");
        soldonce_testkit::until("the second waits", soldonce_testkit::PATIENCE, has_come).unwrap();
        first.leave().await;
        let found = second.join().unwrap();
        // On one snapshot there is no answer, but an error.
        assert_eq!(found.is_ok(), passes, "{isolation}: {found:?}");
        assert!(!passes || found.unwrap() == "0", "it is not as it was seen");
        servers.forgive().await;
    }
}

/// The order of the feed rests on what the database says of transactions under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_track_transactions_is_refused() {
    let servers = Servers::start(0).await;
    let untracked = "ALTER DATABASE postgres SET track_activities = off";
    servers.database.query(untracked).unwrap();
    let refused = servers.open_one().await.err();
    assert!(
        matches!(&refused, Some(OpenError::Untracked)),
        "{refused:?}"
    );
}

/// Each statement is answered in time, however many units an event has: they are added in slices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_many_units_has_all_of_them() {
    let servers = Servers::start(1).await;
    let chart = r#"{"format":"seats","seats":[{"seat":"A-1","category":"Seat"}],
        "areas":[{"area":"floor","capacity":200000,"category":"Seat"}]}"#;
    let event = servers.event_on(chart, |_| {}).await;
    assert_eq!(event.chart.units(), 200_001);
    let stored = "SELECT count(*), min(unit_no), max(unit_no) FROM units";
    assert_eq!(
        servers.database.query(stored).unwrap().trim(),
        "200001|0|200000"
    );
}

/// The database's default is another isolation: a server sets its own, and one that cannot says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_databases_default_isolation_is_not_the_servers() {
    let mut servers = Servers::start(0).await;
    let stricter = "ALTER DATABASE postgres SET default_transaction_isolation = 'repeatable read'";
    servers.database.query(stricter).unwrap();
    let without_settings = servers.unprepared_at(servers.database.url());
    let opened = servers.open(&without_settings, Arc::new(Recorder::default()));
    let refused = opened.await.err();
    assert!(
        matches!(&refused, Some(OpenError::Isolation { found }) if found == "repeatable read"),
        "{refused:?}"
    );
    for _ in 0..2 {
        let ledger = servers.one_more(&servers.options).await;
        servers.ledgers.push(ledger);
    }
    let event = servers.event(|_| {}).await;
    for seat in [["A-1"], ["A-2"], ["A-3"], ["B-1"], ["B-2"]] {
        let both = tokio::join!(
            servers.hold(0, &event, "ann", &seat),
            servers.hold(1, &event, "bob", &seat),
        );
        match both {
            (Ok(_), Err(Rejection::UnitUnavailable(_)))
            | (Err(Rejection::UnitUnavailable(_)), Ok(_)) => {}
            other => panic!("{seat:?}: {other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_one_of_its_guards_is_not_served() {
    let servers = Servers::start(1).await;
    let holes = [
        ("sold_unit_key", "DROP INDEX sold_unit_key"),
        ("units_only_rise", "DROP TRIGGER units_only_rise ON units"),
        (
            "units_check",
            "ALTER TABLE units DROP CONSTRAINT units_check",
        ),
    ];
    for (name, hole) in holes {
        servers.database.query(hole).unwrap();
        let refused = servers.open_one().await.err();
        let Some(OpenError::Guards { missing }) = &refused else {
            panic!("{refused:?}")
        };
        assert!(missing.contains(name), "{missing}");
    }
    let found = verify(&servers.options, &mut |_| {}).await.unwrap();
    let guards = found.findings;
    let guards = guards.iter().filter(|finding| finding.what == "guards");
    assert_eq!(guards.count(), holes.len());
    servers.forgive().await;
}

/// A newer build may have narrowed a bound: what was set before it is read all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_policy_that_would_be_refused_today_is_served() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let old =
        "UPDATE events SET policy = (policy::jsonb || '{\"units_per_hold_max\": 5000}')::text";
    servers.database.query(old).unwrap();
    let later = servers.one_more(&servers.options).await;
    servers.ledgers.push(later);
    let hold = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    let transact = servers.ledgers[1].transact(transaction(confirm(&hold, 1), None));
    transact.await.unwrap();
}
