//! A server whose memory, clock or tasks are not what they should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use soldonce_clock::{BootTime, Clock, SeededEntropy, SleepFuture, SystemClock};
use soldonce_core::{
    Answer, Applied, BookingState, Change, Command, EventNo, Inventory, NewHold, PaymentReport,
    PaymentState, Rejection, Selection, Seq, Text, Timestamp, Together, Wish,
};
use soldonce_engine::ledger::postgres::{PostgresLedger, PostgresOptions, TimeSource};
use soldonce_engine::ledger::{Ledger, Observer};
use soldonce_engine::live::Live;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, postgres, until};
use tokio::task::JoinSet;

use super::Servers;
use super::turns::Other;
use crate::ledgers::{
    booked, cancel, checkout, confirm, euro, expect_taken, held, holder, is_unknown, on, select,
    transaction,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_booking_is_cancelled_at_once_on_another_server() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    for n in 1..=20 {
        let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
        let booking = booked(servers.ask(0, confirm(&hold, n)).await).unwrap();
        let cancelled = booked(servers.ask(1, cancel(booking.id)).await).unwrap();
        assert_eq!(cancelled.state, BookingState::Cancelled);
    }
    servers.judge(0, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_is_heard_of_at_once_by_another_server() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    for (n, seat) in (1..).zip(["A-1", "A-2", "A-3", "A-4", "A-5"]) {
        let hold = servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        let pending = booked(servers.ask(0, checkout(&hold, n)).await).unwrap();
        let report = PaymentReport::whole(&pending, euro(), PaymentState::Captured);
        let paid = Command::Payment(Box::new(report));
        let booking = booked(servers.ask(1, paid).await).unwrap();
        assert_eq!(booking.state, BookingState::Confirmed);
    }
    servers.judge(0, &event.id).await;
}

/// Panics once, at the next batch that is stored.
#[derive(Default)]
struct Fragile(AtomicBool);

impl Observer for Fragile {
    fn committed(&self, _: &Inventory, _: &[Applied]) {
        assert!(!self.0.swap(false, Ordering::Relaxed), "as planned");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_ends_one_batch_and_not_the_event() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let observer = Arc::new(Fragile::default());
    servers.add_watched(observer.clone()).await;
    observer.0.store(true, Ordering::Relaxed);
    let torn = servers.hold(1, &event, "ann", &["A-1"]).await;
    assert!(is_unknown(&torn), "{torn:?}");
    // It was stored before the panic, and the memory is read anew.
    let taken = servers.hold(1, &event, "bob", &["A-1"]).await;
    expect_taken(&taken);
    servers.hold(1, &event, "bob", &["A-2"]).await.unwrap();
    assert_eq!(servers.judge(1, &event.id).await, 2);
}

/// Counts events that were shown.
#[derive(Default)]
struct EventCount(AtomicU64);

impl Observer for EventCount {
    fn committed(&self, _: &Inventory, applied: &[Applied]) {
        let events = applied
            .iter()
            .filter(|done| matches!(done.answer, Answer::Event(_)));
        let count = u64::try_from(events.count()).unwrap();
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_event_that_many_ask_for_at_once_is_shown_once() {
    let mut servers = Servers::start(1).await;
    let shown = Arc::new(EventCount::default());
    servers.add_watched(shown.clone()).await;
    for n in 0..10_u32 {
        servers.event_named(&format!("night-{n}")).await;
        let wishes = (0..6).map(|_| servers.want(EventNo(n), "ann", Selection::default()));
        let asked = wishes.map(|wish| (Arc::clone(&servers.ledgers[1]), transaction(wish, None)));
        let asked = asked.map(|(ledger, wish)| async move { ledger.transact(wish).await });
        asked.collect::<JoinSet<_>>().join_all().await;
    }
    assert_eq!(shown.0.load(Ordering::Relaxed), 10);
}

/// Another server sells while this one reads the event for the first time. What is shown then is known to the
/// shield, too: no later number would bring it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shown_of_a_new_event_is_known_to_its_shield() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let steps = [("A-1", "-- head"), ("A-2", "-- units_of_event")];
    for (seq, (seat, statement)) in (1..).zip(steps) {
        proxy.next_with(statement, Fault::Cut);
        let live = Arc::new(Live::new(Arc::default()));
        let watched = Arc::clone(&live) as Arc<dyn Observer>;
        let options = servers.unprepared_at(url.clone());
        let mut opening = JoinSet::new();
        opening.spawn(async move {
            let (clock, entropy) = (Arc::new(SystemClock), SeededEntropy::new(seq));
            PostgresLedger::open(&options, clock, &entropy, watched).await
        });
        until("it is cut", PATIENCE, || proxy.to_come() == 0).unwrap();
        servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        let head = || {
            servers
                .database
                .query("SELECT seq FROM feed_heads")
                .unwrap()
        };
        until("it is numbered", PATIENCE, || head() == seq.to_string()).unwrap();
        proxy.heal();
        let ledger = opening.join_next().await.unwrap().unwrap().unwrap();
        let shown = || live.find(&event.id).ok().filter(|it| it.seq() == Seq(seq));
        until("it is shown", PATIENCE, || shown().is_some()).unwrap();
        let now = Timestamp::from_ms(SystemClock.wall_ms());
        let wanted = select(&event, &[seat], &[]);
        let shield = &shown().unwrap().shield;
        let refusal = shield.try_seats(&event.chart, wanted.seats(), &holder("bob"), now);
        assert!(refusal.is_some(), "{statement}");
        ledger.close().await;
    }
}

/// The machine's clocks, the boot clock some milliseconds ahead.
#[derive(Default)]
struct Ahead(AtomicU64);

impl Ahead {
    fn by(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

impl Clock for Ahead {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms()
    }

    fn boot(&self) -> BootTime {
        SystemClock.boot().plus(self.by())
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        let left = until.since(self.boot());
        let until = SystemClock.boot().plus(left);
        Box::pin(async move { SystemClock.sleep_until(until).await })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_a_unit_stay_in_their_order_when_a_clock_is_ahead() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let clock = Arc::new(Ahead::default());
    let observer = Arc::new(crate::ledgers::Recorder::default());
    let entropy = SeededEntropy::new(77);
    let fast = Arc::clone(&clock) as Arc<dyn Clock>;
    let opened = PostgresLedger::open(&servers.options, fast, &entropy, observer);
    servers.ledgers.push(Arc::new(opened.await.unwrap()));
    let before = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    clock.0.fetch_add(200, Ordering::Relaxed);
    let release = Command::Release { on: on(&before) };
    held(servers.ask(1, release).await).unwrap();
    servers.hold(0, &event, "bob", &["A-1"]).await.unwrap();
    let commits = servers.shown(0, &event, 3).await;
    let versions = commits.iter().map(|commit| commit.transitions[0].version.0);
    assert_eq!(versions.collect::<Vec<_>>(), [1, 2, 3]);
}

/// Loses the answer of the next batch, and all questions for it. A batch that was too old when it came is not
/// stored: on a busy machine that happens.
fn lose_the_answer(proxy: &FaultProxy) {
    proxy.next_with("-- store_batch", Fault::DropReply);
    for _ in 0..4 {
        proxy.next_with("-- give_up", Fault::Reset);
    }
}

/// How many commands are stored.
fn stored(servers: &Servers) -> i64 {
    let commands = "SELECT coalesce(sum(commands), 0) FROM batches";
    servers.database.query(commands).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsettled_batch_is_settled_before_the_memory_is_believed() {
    let mut servers = Servers::start(1).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let shaky = servers.one_more(&servers.unprepared_at(url)).await;
    servers.ledgers.push(shaky);
    let mut nights = 0..20;
    let (event, early) = loop {
        let night = nights.next().expect("a batch that is stored");
        let event = servers.event_named(&format!("night-{night}")).await;
        let before = stored(&servers);
        // Stored, but the answer is lost, and so are all questions for it.
        lose_the_answer(&proxy);
        let unknown = servers.hold(1, &event, "ann", &["A-1"]).await;
        assert!(is_unknown(&unknown), "{unknown:?}");
        // The next command may not be decided before the first is settled.
        proxy.next_with("-- give_up", Fault::Reset);
        let early = servers.hold(1, &event, "bob", &["A-2"]).await;
        let is_stored = stored(&servers) > before + i64::from(early.is_ok());
        if is_stored && early.is_err() {
            break (event, early);
        }
        proxy.heal();
        if is_stored {
            // The task that settles what no command asks for was first.
            let taken = servers.hold(1, &event, "bob", &["A-1"]).await;
            expect_taken(&taken);
        }
    };
    assert!(matches!(early, Err(Rejection::ReadOnly)), "{early:?}");
    assert_eq!(proxy.to_come(), 0);
    let taken = servers.hold(1, &event, "bob", &["A-1"]).await;
    expect_taken(&taken);
    servers.hold(1, &event, "bob", &["A-2"]).await.unwrap();
    assert_eq!(servers.judge(1, &event.id).await, 2);
}

/// A batch is stored, its answer and all questions for it are lost, and no command comes for the event any
/// more: what it did is shown and known to the shield all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_stored_without_an_answer_is_known_without_another_command() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let live = Arc::new(Live::new(Arc::default()));
    let options = servers.unprepared_at(url);
    let shaky = servers.open(&options, live.clone()).await.unwrap();
    let seat = || select(&event, &["A-1"], &[]);
    let ask = async |command| shaky.transact(transaction(command, None)).await;
    let block = Command::Block {
        event: event.no,
        selection: seat(),
        reason: Text::parse("broken").unwrap(),
    };
    ask(block).await.unwrap();
    let passes = || {
        let (now, wanted) = (Timestamp::from_ms(SystemClock.wall_ms()), seat());
        let shown = live.find(&event.id).unwrap();
        let refusal = shown
            .shield
            .try_seats(&event.chart, wanted.seats(), &holder("bob"), now);
        refusal.is_none()
    };
    until("it is blocked", PATIENCE, || !passes()).unwrap();
    let unblock = Command::Unblock {
        event: event.no,
        selection: seat(),
        reason: Text::parse("repaired").unwrap(),
    };
    let before = stored(&servers);
    for _ in 0..20 {
        lose_the_answer(&proxy);
        let unknown = ask(unblock.clone()).await;
        assert!(is_unknown(&unknown), "{unknown:?}");
        if stored(&servers) > before {
            break;
        }
        proxy.heal();
    }
    until("it is known to be free", PATIENCE, passes).unwrap();
    shaky.close().await;
}

const ROW: &str = r#"{"format":"grid","rows":1,"seats_per_row":40,"category":"Standard"}"#;
/// Buyers of one batch: more than it is tried, and one who is refused behind most of them.
const BUYERS: usize = 40;
const MALLORY: usize = 36;

/// Nothing gets a number while this transaction is open.
const OPEN: &str = "BEGIN; SELECT pg_current_xact_id()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_the_database_refuses_takes_no_other_with_it() {
    let servers = Servers::start(1).await;
    let event = servers.event_on(ROW, |_| {}).await;
    let poison = "ALTER TABLE holds ADD CONSTRAINT poison CHECK (holder <> 'mallory')";
    postgres::query(&servers.database.url(), poison).unwrap();
    let mut all = JoinSet::new();
    for n in 1..=BUYERS {
        let seat = format!("A-{n}");
        let seat = seat.as_str();
        let who = if n == MALLORY { "mallory" } else { seat };
        let wish = servers.wish(&event, who, &[seat]);
        let ledger = Arc::clone(&servers.ledgers[0]);
        all.spawn(async move { (n, held(ledger.transact(transaction(wish, None)).await)) });
    }
    for (n, answer) in all.join_all().await {
        assert_eq!(answer.is_ok(), n != MALLORY, "{n}: {answer:?}");
    }
    assert_eq!(servers.judge(0, &event.id).await, BUYERS - 1);
}

/// What a server remembers is believed: it is not read before a hold, and not all of it before a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_that_is_whole_is_not_read_again() {
    let mut servers = Servers::start(0).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let options = PostgresOptions {
        // On a busy machine a command may be too old for the database's clock, and is decided again.
        time: TimeSource::Given,
        ..servers.unprepared_at(url)
    };
    let watched = servers.one_more(&options).await;
    servers.ledgers.push(watched);
    let holds_the_feed_up = Other::run(&servers.database.url(), OPEN).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    for statement in ["-- behind", "-- units_of_event"] {
        proxy.next_with(statement, Fault::Reset);
    }
    servers.hold(0, &event, "ann", &["A-2"]).await.unwrap();
    assert_eq!(proxy.to_come(), 2, "nothing was read");
    proxy.heal();
    proxy.next_with("-- units_of_event", Fault::Reset);
    let refused = servers.hold(0, &event, "bob", &["A-1"]).await;
    expect_taken(&refused);
    assert_eq!(proxy.to_come(), 1, "what changed was read, and no more");
    holds_the_feed_up.leave().await;
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

/// The best seats are free again, and the server that is asked for them has not heard of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_seats_are_chosen_from_what_is_free_now() {
    let servers = Servers::start(2).await;
    let event = servers.event_on(ROW, |_| {}).await;
    let holds_the_feed_up = Other::run(&servers.database.url(), OPEN).await;
    let best = async |server| {
        let Command::Hold(wish) = servers.wish(&event, "ann", &[]) else {
            unreachable!("a wish is a hold");
        };
        let wish = NewHold {
            wish: Wish::Best {
                quantity: 2,
                category: None,
                together: Together::Required,
            },
            ..wish
        };
        held(servers.ask(server, Command::Hold(wish)).await).unwrap()
    };
    let first = best(0).await;
    let second = best(1).await;
    let release = Command::Release { on: on(&first) };
    servers.ask(0, release).await.unwrap();
    let third = best(1).await;
    assert_ne!(second.units[0].unit, first.units[0].unit);
    assert_eq!(third.units[0].unit, first.units[0].unit);
    holds_the_feed_up.leave().await;
    servers.judge(0, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_another_server_ended_cannot_take_more_units() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    for _ in 0..20 {
        let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
        let release = Command::Release { on: on(&hold) };
        servers.ask(1, release).await.unwrap();
        // The first server may not have heard of it.
        let change = Command::Change(Box::new(Change {
            on: on(&hold),
            add: select(&event, &["B-1"], &[]),
            drop: Vec::new(),
            drop_places: Selection::default(),
        }));
        let refused = servers.ask(0, change).await.unwrap_err();
        assert!(matches!(refused, Rejection::HoldReleased), "{refused:?}");
    }
}
