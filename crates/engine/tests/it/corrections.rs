//! An operator sets the clock of a ledger back that is hours ahead: every hold keeps the time it has left,
//! every event's history says so, and nothing is wrong with the ledger afterwards.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, ManualClock, SeededEntropy, SystemClock};
use soldonce_core::{
    BookingId, Cause, Command, Effect, Event, Hold, HoldState, Rejection, Selection, Span, TtlMax,
};
use soldonce_engine::ledger::postgres::{
    Durability, PostgresLedger, PostgresOptions, correct_clock as correct_database, migrate,
};
use soldonce_engine::ledger::sqlite::{SqliteOptions, correct_clock, verify};
use soldonce_engine::ledger::{ClockCorrected, Done, Ledger};
use soldonce_testkit::postgres::{Postgres, query};
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::ledgers::{
    HALL, Recorder, TestLedger, booked, busy, cancel, checkout, created, expect_taken, held,
    holder, new_event, on, open_in, select, transaction, verified,
};

const DAY_MS: i64 = 24 * 3_600_000;

/// What an event's history says of corrections: how many commits, and of how many units.
async fn said(ledger: &dyn Ledger, event: &Event) -> (usize, usize) {
    let history = ledger.history(event.id.clone()).await.unwrap();
    let of_clock = |cause: Cause| cause == Cause::ClockCorrected;
    let commits = history.commits.iter();
    let commits: Vec<_> = commits
        .filter(|commit| commit.transitions.iter().any(|step| of_clock(step.cause)))
        .collect();
    let steps = commits.iter().map(|commit| commit.transitions.len());
    (commits.len(), steps.sum())
}

/// The steps at the provider that were to be done before now.
async fn overdue(ledger: &dyn Ledger) -> Vec<Effect> {
    let later = ledger.now().plus(Span::from_ms(1));
    let found = ledger.overdue_effects(later).await.unwrap();
    found.into_iter().map(|open| open.effect).collect()
}

fn everything(event: &Event) -> Selection {
    let seats = [
        "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
    ];
    select(event, &seats, &[("floor", 5)])
}

/// Another event, sold out.
async fn sell_out(test: &TestLedger) -> Arc<Event> {
    let other = test.other_event().await;
    let sell = Command::Sell {
        event: other.no,
        selection: everything(&other),
        holder: holder("eve"),
        booking: test.booking_id(),
        reference: None,
    };
    booked(test.ask(sell).await).unwrap();
    other
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_a_day_ahead_is_set_back_and_goes_on() {
    let mut test = TestLedger::sqlite();
    test.clock.step_wall(test.clock.wall_ms() + DAY_MS);
    let (event, booking, hold) = busy(&test).await;
    let other = sell_out(&test).await;
    test.clock.step_wall(test.clock.wall_ms() - DAY_MS);
    let left = hold.expires_at.ms() - test.ledger.now().ms();
    let steps = overdue(&*test.ledger).await;
    assert!(!steps.is_empty());
    test.ledger.close().await;
    let dead = TestLedger::memory().ledger.clone();
    drop(std::mem::replace(&mut test.ledger, dead));
    // Two parts of one history, of which the recorder sees the second one alone.
    let before = Arc::clone(&test.recorder);
    assert!(before.violations().is_empty());
    before
        .is_silent
        .store(true, std::sync::atomic::Ordering::Relaxed);

    let folder = test.folder.as_ref().unwrap().path().to_owned();
    let options = SqliteOptions::new(&folder);
    let done = correct_clock(&options, &test.clock, &SeededEntropy::new(7)).unwrap();
    let expected = ClockCorrected {
        set_back_ms: DAY_MS.unsigned_abs(),
        events: 2,
        holds: 3,
    };
    assert_eq!(done, expected);
    let again = correct_clock(&options, &test.clock, &SeededEntropy::new(7)).unwrap();
    assert_eq!(
        again,
        ClockCorrected::default(),
        "there is nothing left to do"
    );

    let report = verify::verify(&folder, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
    test.ledger = Arc::new(open_in(&options, &test.clock, &before).unwrap());
    assert_eq!(test.ledger.now().ms(), test.clock.wall_ms());
    let kept = test.ledger.hold(hold.id).await.unwrap().unwrap();
    assert_eq!(kept.expires_at.ms() - test.ledger.now().ms(), left);
    assert_eq!(said(&*test.ledger, &event).await, (1, 5));
    assert_eq!(
        said(&*test.ledger, &other).await,
        (1, 1),
        "the unit of a booking"
    );
    assert_eq!(overdue(&*test.ledger).await, steps, "none is hidden");
    goes_on(&test, &event, &kept).await;
    booked(test.ask(cancel(booking.id)).await).unwrap();
    test.ledger.close().await;
    let report = verify::verify(&folder, &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.findings);
}

/// The hold lives as long as it was promised, and no longer.
async fn goes_on(test: &TestLedger, event: &Event, hold: &Hold) {
    let left = hold.expires_at.ms() - test.ledger.now().ms();
    test.advance_ms(left.unsigned_abs() - 1);
    let refused = test.hold(event, "gus", &["B-1"]).await;
    expect_taken(&refused);
    test.advance_ms(1);
    test.hold(event, "gus", &["B-1"]).await.unwrap();
}

#[test]
fn a_machine_whose_clock_was_never_set_corrects_nothing() {
    let test = TestLedger::sqlite();
    let folder = test.folder.as_ref().unwrap().path().to_owned();
    let options = SqliteOptions::new(folder);
    let locked = correct_clock(&options, &test.clock, &SeededEntropy::new(7));
    assert!(locked.is_err(), "a server has it");
    let mut test = test;
    let dead = TestLedger::memory().ledger.clone();
    drop(std::mem::replace(&mut test.ledger, dead));
    test.clock.step_wall(0);
    let refused = correct_clock(&options, &test.clock, &SeededEntropy::new(7)).unwrap_err();
    assert!(refused.to_string().contains("set it"), "{refused}");
}

fn started() -> (Postgres, PostgresOptions) {
    let server = Postgres::start().unwrap();
    let options = PostgresOptions {
        durability: Durability::Waived,
        ..PostgresOptions::new(server.url())
    };
    (server, options)
}

async fn open(options: &PostgresOptions, seed: u64) -> PostgresLedger {
    let entropy = SeededEntropy::new(seed);
    let observer = Arc::new(Recorder::default());
    let opened = PostgresLedger::open(options, Arc::new(SystemClock), &entropy, observer);
    opened.await.unwrap()
}

async fn ask(ledger: &PostgresLedger, command: Command) -> Result<Done, Rejection> {
    ledger.transact(transaction(command, None)).await
}

async fn event(ledger: &PostgresLedger, id: &str) -> Arc<Event> {
    let new = new_event(id, HALL, |_| {});
    created(ask(ledger, Command::CreateEvent(Box::new(new))).await)
}

async fn hold(ledger: &PostgresLedger, event: &Event, n: u128, seat: &str) -> Hold {
    let wish = Command::Hold(soldonce_core::NewHold {
        event: event.no,
        hold: soldonce_core::HoldId::from_bits((1 << 100) | n),
        holder: holder("ann"),
        wish: soldonce_core::Wish::Named(select(event, &[seat], &[])),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    });
    held(ask(ledger, wish).await).unwrap()
}

async fn migrate_a_day_ahead(options: &PostgresOptions) {
    migrate(options).await.unwrap();
    let day_ahead =
        format!("UPDATE clock SET at = {DAY_MS} + extract(epoch FROM clock_timestamp()) * 1000");
    query(&options.url, &day_ahead).unwrap();
}

/// A hold that waits, one that is being paid, and an event that is sold out; on a ledger a day ahead.
async fn a_day_ahead(server: &Postgres, options: &PostgresOptions) -> ([Arc<Event>; 2], Hold, i64) {
    migrate_a_day_ahead(options).await;
    let ledger = open(options, 1).await;
    let events = [
        event(&ledger, "hamlet-1").await,
        event(&ledger, "hamlet-2").await,
    ];
    let active = hold(&ledger, &events[0], 1, "A-1").await;
    let paid = hold(&ledger, &events[0], 2, "A-2").await;
    booked(ask(&ledger, checkout(&paid, 7)).await).unwrap();
    let sell = Command::Sell {
        event: events[1].no,
        selection: everything(&events[1]),
        holder: holder("eve"),
        booking: BookingId::from_bits(8),
        reference: None,
    };
    booked(ask(&ledger, sell).await).unwrap();
    let left = active.expires_at.ms() - ledger.now().ms();
    let here = Arc::new(SystemClock);
    let refused = correct_database(options, here, &SeededEntropy::new(2), recorder()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("stop every server"), "{refused}");
    ledger.close().await;
    drop(ledger);
    until_alone(server);
    (events, active, left)
}

fn until_alone(server: &Postgres) {
    let alone = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    let is_alone = || server.query(alone).unwrap() == "1";
    until("no client is connected", PATIENCE, is_alone).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_a_day_ahead_is_set_back_and_goes_on() {
    let (server, options) = started();
    let ([hall, other], active, left) = a_day_ahead(&server, &options).await;
    let here = Arc::new(SystemClock);
    let done = correct_database(&options, here, &SeededEntropy::new(3), recorder()).await;
    let done = done.unwrap();
    assert_eq!((done.events, done.holds), (2, 2));
    let by = i64::try_from(done.set_back_ms).unwrap();
    assert!((DAY_MS - 60_000..=DAY_MS).contains(&by), "{by}");
    verified(&options);
    let ledger = open(&options, 4).await;
    let ahead = || ledger.now().ms() - SystemClock.wall_ms();
    assert!(ahead().abs() < 60_000, "{}", ahead());
    // An answer that took long tells of a time that is over: the next one is soon there.
    let is_right = || ahead().abs() < 1_000;
    until("the ledger's clock is right", PATIENCE, is_right).unwrap();
    let kept = ledger.hold(active.id).await.unwrap().unwrap();
    let now_left = kept.expires_at.ms() - ledger.now().ms();
    assert!(
        (left - 60_000..=left + 1_000).contains(&now_left),
        "{now_left} of {left}"
    );
    let cap = kept.max_expires_at.ms() - active.max_expires_at.ms();
    assert_eq!(cap, -by, "its cap moves with it");
    assert_eq!(said(&ledger, &hall).await, (1, 2));
    assert_eq!(said(&ledger, &other).await, (1, 1), "the unit of a booking");
    // Commands are taken and numbered as before.
    let more = hold(&ledger, &hall, 3, "A-3").await;
    assert!(more.created_at.ms() < active.created_at.ms());
    booked(ask(&ledger, cancel(BookingId::from_bits(8))).await).unwrap();
    let release = Command::Release { on: on(&kept) };
    let released = held(ask(&ledger, release).await).unwrap();
    assert_eq!(released.state, HoldState::Released);
    ledger.close().await;
    verified(&options);
}

/// Runs until there is a row of `go`.
const SLOW: &str = "
CREATE TABLE go (n integer);
CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(1);
        WHILE NOT EXISTS (SELECT FROM go) LOOP NULL; END LOOP; RETURN NULL;
    END $$;
CREATE TRIGGER wait BEFORE UPDATE ON outbox EXECUTE FUNCTION wait();
CREATE ROLE other SUPERUSER LOGIN";

async fn has_session(other: &Client, which: &str) -> bool {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM pg_stat_activity
                        WHERE backend_type = 'client backend' AND usename <> 'other' AND {which})"
    );
    other.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Checks that a statement may take longer than those of a server: one sets back all messages that wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correction_waits_for_a_statement_that_takes_long() {
    let (server, options) = started();
    migrate_a_day_ahead(&options).await;
    query(&options.url, SLOW).unwrap();
    let url = server.url().replace("postgres@", "other@");
    let (other, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    while has_session(&other, "true").await {}
    let clock = ManualClock::at(SystemClock.wall_ms());
    let here = Arc::new(clock.clone());
    let mut correcting = JoinSet::new();
    correcting.spawn(async move {
        correct_database(&options, here, &SeededEntropy::new(3), recorder()).await
    });
    // Held by the running trigger alone: a statement that is only prepared looks active too.
    let is_slow = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 1)";
    while !has_session(&other, is_slow).await {
        assert!(correcting.try_join_next().is_none(), "it failed");
    }
    clock.advance(Duration::from_mins(1));
    // Long enough for a wait that is over to be given up.
    for _ in 0..100 {
        assert!(has_session(&other, is_slow).await);
    }
    let go = "INSERT INTO go VALUES (1)";
    other.batch_execute(go).await.unwrap();
    let done = correcting.join_next().await.unwrap().unwrap().unwrap();
    assert!(done.set_back_ms.abs_diff(DAY_MS.unsigned_abs()) < 60_000);
}

/// It is seen by a role that may see next to nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_role_is_to_be_stopped_too() {
    let (server, options) = started();
    migrate(&options).await.unwrap();
    let ledger = open(&options, 1).await;
    server.query("CREATE ROLE operator LOGIN").unwrap();
    let as_operator = PostgresOptions {
        url: server.url().replace("postgres@", "operator@"),
        ..options
    };
    let here = Arc::new(SystemClock);
    let refused = correct_database(&as_operator, here, &SeededEntropy::new(2), recorder()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("stop every server"), "{refused}");
    ledger.close().await;
}

/// Its holds would keep their ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_is_not_set_back_past_an_event_that_cannot_be_read() {
    let (server, options) = started();
    migrate(&options).await.unwrap();
    let ledger = open(&options, 1).await;
    event(&ledger, "hamlet-1").await;
    ledger.close().await;
    drop(ledger);
    until_alone(&server);
    query(&options.url, "UPDATE events SET prices = '[]'").unwrap();
    let here = Arc::new(SystemClock);
    let refused = correct_database(&options, here, &SeededEntropy::new(2), recorder()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("event 0 cannot be read"), "{refused}");
}

fn recorder() -> Arc<Recorder> {
    Arc::new(Recorder::default())
}
