//! The wall clock steps both ways and servers restart meanwhile: commits keep their order and times never
//! go back, a hold is never shorter than promised but by what the clock stepped forward, never more than
//! twice as long, and the reconciler looks at money within twice its time.
//!
//! A clock that stands still after a step back is planted to see this fail: `a_clock_that_stands_still_is_found`.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use soldonce_clock::{BootTime, Clock, SeededEntropy, SystemClock};
use soldonce_core::{
    Auditor, BookingId, Command, Event, Hold, HoldId, NewHold, Policy, Rejection, Span, TtlMax,
    Wish,
};
use soldonce_engine::ledger::postgres::{Durability, PostgresLedger, PostgresOptions, migrate};
use soldonce_engine::ledger::{Done, Ledger, Observer};
use soldonce_engine::limits::{OUTBOX_AT_ONCE_MAX, RECONCILE_OLDER_MS};
use soldonce_testkit::postgres::{Postgres, query};
use soldonce_testkit::{PATIENCE, until};

use crate::ledgers::{
    HALL, Recorder, TestLedger, booked, checkout, created, held, holder, log, new_event, select,
    transaction,
};

/// The same walks in every run; another seed in place of this one gives others.
const SEED: RngSeed = RngSeed::Fixed(20_261_124);
const TTL_MS: i64 = 60_000;
/// A server's idea of the database's clock may be off by a quarter of a second, and a look takes its time.
const TOLERANCE_MS: i64 = 1_500;
/// Longest wait until a server that is told nothing else has noticed a step.
const NOTICED: Duration = Duration::from_secs(10);
const SEATS: [&str; 5] = ["A-1", "A-2", "A-3", "A-4", "A-5"];

/// The machine's clock as the database sees it: that of the system, and a step that the test sets. Functions
/// of this schema are found before those of the system.
const OWN_CLOCK: &str = "
CREATE SCHEMA stepped;
CREATE TABLE stepped.by (ms bigint NOT NULL);
INSERT INTO stepped.by VALUES (0);
CREATE FUNCTION stepped.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    'SELECT pg_catalog.clock_timestamp() + (SELECT ms FROM stepped.by) * interval ''1 millisecond''';
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = stepped, public, pg_catalog', current_database());
END $$";

/// The bug of old: after a step back the clock waits until the wall clock has caught up.
const STANDS_STILL: &str = "
CREATE OR REPLACE FUNCTION stepped.ledger_clock(machine bigint DEFAULT floor(extract(epoch FROM stepped.clock_timestamp()) * 1000)::bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT greatest(machine, at) FROM clock);
END $$";

#[derive(Clone, Copy, Debug)]
enum Move {
    /// The wall clock is set to another time.
    Step(i64),
    /// Time goes on.
    Pass(u32),
    /// A server is started anew.
    Restart(usize),
    /// A buyer wants a seat, through one of the servers.
    Hold(usize, usize),
    /// And begins to pay for it.
    Pay(usize, usize),
}

fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        2 => (-7_200_000_i64..7_200_000).prop_map(Move::Step),
        2 => (-90_000_i64..30_000).prop_map(Move::Step),
        5 => (1_u32..50_000).prop_map(Move::Pass),
        1 => (0..2_usize).prop_map(Move::Restart),
        6 => (0..2_usize, 0..SEATS.len()).prop_map(|(at, seat)| Move::Hold(at, seat)),
        1 => (0..2_usize, 0..SEATS.len()).prop_map(|(at, seat)| Move::Pay(at, seat)),
    ];
    prop::collection::vec(one, 1..most)
}

/// A ledger of one process on a clock that is moved by hand, or two servers on one database.
enum Place {
    File(Box<TestLedger>),
    Shared {
        ledgers: [Arc<PostgresLedger>; 2],
        options: PostgresOptions,
    },
}

impl Place {
    async fn shared(server: &Postgres) -> Self {
        log();
        let url = server.url_of(&server.database().unwrap());
        query(&url, OWN_CLOCK).unwrap();
        let options = PostgresOptions {
            durability: Durability::Waived,
            ..PostgresOptions::new(url)
        };
        migrate(&options).await.unwrap();
        let ledgers = [open(&options).await, open(&options).await];
        Self::Shared { ledgers, options }
    }

    fn ledger(&self, server: usize) -> &dyn Ledger {
        match self {
            Self::File(test) => &*test.ledger,
            Self::Shared { ledgers, .. } => &*ledgers[server],
        }
    }

    fn step(&self, by: i64) {
        match self {
            Self::File(test) => test.clock.step_wall(test.clock.wall_ms() + by),
            Self::Shared { options, .. } => {
                let step = format!("UPDATE stepped.by SET ms = ms + {by}");
                query(&options.url, &step).unwrap();
            }
        }
        self.notice();
    }

    /// Servers read the clock several times a second in every state: a step is noticed before another one.
    fn notice(&self) {
        let url = match self {
            Self::File(test) => {
                test.ledger.now();
                return;
            }
            Self::Shared { options, .. } => &options.url,
        };
        let pushed = || query(url, "SELECT xmin FROM clock").unwrap();
        // The first push may have read the machine's clock before the step.
        for _ in 0..2 {
            let before = pushed();
            until("the clock is pushed on", PATIENCE, || pushed() != before).unwrap();
        }
    }

    /// As time does; whether a database's machine is set forward or waits is all the same to it.
    fn pass(&self, ms: u32) {
        match self {
            Self::File(test) => {
                test.advance_ms(u64::from(ms));
                self.notice();
            }
            Self::Shared { .. } => self.step(i64::from(ms)),
        }
    }

    async fn restart(&mut self, server: usize) {
        match self {
            Self::File(test) => test.restart().await,
            Self::Shared { ledgers, options } => {
                let ledger = &mut ledgers[server];
                ledger.close().await;
                *ledger = open(options).await;
            }
        }
    }

    async fn ask(&self, server: usize, command: Command) -> Result<Done, Rejection> {
        let end = SystemClock.boot().plus(NOTICED);
        loop {
            let asked = transaction(command.clone(), None);
            let done = self.ledger(server).transact(asked).await;
            // Until the server has noticed a step.
            if !matches!(done, Err(Rejection::Overloaded)) || SystemClock.boot() > end {
                return done;
            }
        }
    }
}

async fn open(options: &PostgresOptions) -> Arc<PostgresLedger> {
    let mut seed = [0; 8];
    soldonce_clock::Entropy::fill(&soldonce_clock::SystemEntropy, &mut seed);
    let entropy = SeededEntropy::new(u64::from_ne_bytes(seed));
    let observer = Arc::new(Recorder::default()) as Arc<dyn Observer>;
    let opened = PostgresLedger::open(options, Arc::new(SystemClock), &entropy, observer);
    Arc::new(opened.await.unwrap())
}

/// A hold that a buyer was promised.
struct Promised {
    hold: Hold,
    /// When it was asked for and when it was answered, in time that has really passed.
    made: [i64; 2],
    /// How far the wall clock had been set forward by then, in all.
    forward: i64,
}

/// What is done to a place, and what was found wrong with it.
struct Walk {
    place: Place,
    event: Arc<Event>,
    began: BootTime,
    /// What was passed by hand.
    passed: i64,
    forward: i64,
    held: [Option<Promised>; SEATS.len()],
    /// Bookings, and when each was answered.
    paying: Vec<(BookingId, i64)>,
    ids: u128,
    latest: i64,
    wrong: Vec<String>,
}

impl Walk {
    async fn begin(place: Place) -> Self {
        let change = |policy: &mut Policy| {
            policy.hold_ttl = Span::from_ms(TTL_MS.unsigned_abs());
            policy.payment_window = policy.hold_ttl;
        };
        let new = new_event("hamlet-1", HALL, change);
        let event = created(place.ask(0, Command::CreateEvent(Box::new(new))).await);
        Self {
            place,
            event,
            began: SystemClock.boot(),
            passed: 0,
            forward: 0,
            held: std::array::from_fn(|_| None),
            paying: Vec::new(),
            ids: 1 << 100,
            latest: i64::MIN,
            wrong: Vec::new(),
        }
    }

    /// Time that has really passed, milliseconds.
    fn elapsed(&self) -> i64 {
        let real = match self.place {
            Place::File(_) => Duration::ZERO,
            Place::Shared { .. } => SystemClock.boot().since(self.began),
        };
        self.passed + i64::try_from(real.as_millis()).unwrap()
    }

    async fn go(&mut self, next: Move) {
        match next {
            Move::Step(by) => {
                self.place.step(by);
                self.forward += by.max(0);
            }
            Move::Pass(ms) => {
                self.place.pass(ms);
                self.passed += i64::from(ms);
            }
            Move::Restart(server) => self.place.restart(server).await,
            Move::Hold(server, seat) => self.wants(server, seat).await,
            Move::Pay(server, seat) => self.pays(server, seat).await,
        }
        self.look_at_money().await;
    }

    /// A buyer who gets a seat that was promised to another is told that this other one's time is over.
    async fn wants(&mut self, server: usize, seat: usize) {
        self.ids += 1;
        let command = Command::Hold(NewHold {
            event: self.event.no,
            hold: HoldId::from_bits(self.ids),
            holder: holder(&format!("buyer-{}", self.ids)),
            wish: Wish::Named(select(&self.event, &[SEATS[seat]], &[])),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        });
        let asked = self.elapsed();
        let got = self.place.ask(server, command).await;
        let answered = self.elapsed();
        let before = self.held[seat].take();
        match (before, held(got)) {
            (None, Ok(hold)) => self.promise(seat, hold, [asked, answered]),
            (Some(before), Ok(hold)) => {
                let lived = answered - before.made[0] + self.forward - before.forward;
                if lived + TOLERANCE_MS < TTL_MS {
                    let promised = &before.hold;
                    self.wrong
                        .push(format!("over after {lived} ms: {promised:?}"));
                }
                self.promise(seat, hold, [asked, answered]);
            }
            (Some(before), Err(Rejection::UnitUnavailable(_))) => {
                let lived = asked - before.made[1];
                if lived > 2 * TTL_MS + TOLERANCE_MS {
                    let promised = &before.hold;
                    self.wrong
                        .push(format!("live after {lived} ms: {promised:?}"));
                }
                self.held[seat] = Some(before);
            }
            (_, Err(rejection)) => self.wrong.push(format!("{}: {rejection}", SEATS[seat])),
        }
    }

    fn promise(&mut self, seat: usize, hold: Hold, made: [i64; 2]) {
        let at = hold.created_at.ms();
        if at < self.latest {
            let latest = self.latest;
            self.wrong.push(format!("back from {latest} to {at}"));
        }
        self.latest = at;
        self.held[seat] = Some(Promised {
            hold,
            made,
            forward: self.forward,
        });
    }

    async fn pays(&mut self, server: usize, seat: usize) {
        let Some(promised) = &self.held[seat] else {
            return;
        };
        self.ids += 1;
        let checkout = checkout(&promised.hold, self.ids);
        let asked = self.elapsed();
        // It may be over, or under way.
        let Ok(booking) = booked(self.place.ask(server, checkout).await) else {
            return;
        };
        let answered = self.elapsed();
        self.paying.push((booking.id, answered));
        // Payment gives the hold a window of its own.
        let hold = self.place.ledger(server).hold(promised.hold.id).await;
        let hold = hold.unwrap().unwrap();
        self.held[seat] = Some(Promised {
            hold,
            made: [asked, answered],
            forward: self.forward,
        });
    }

    /// As the reconciler does.
    async fn look_at_money(&mut self) {
        let ledger = self.place.ledger(0);
        let older = Span::from_ms(RECONCILE_OLDER_MS);
        let most = 2 * i64::try_from(RECONCILE_OLDER_MS).unwrap() + TOLERANCE_MS;
        let due = |since: i64| self.elapsed() - since > most;
        let due: Vec<BookingId> = self
            .paying
            .iter()
            .filter(|(_, since)| due(*since))
            .map(|(id, _)| *id)
            .collect();
        if due.is_empty() {
            return;
        }
        let before = ledger.now().minus(older);
        let found = ledger.unsettled(before, (None, OUTBOX_AT_ONCE_MAX));
        let found = found.await.unwrap();
        for id in due {
            if !found.iter().any(|booking| booking.id == id) {
                self.wrong
                    .push(format!("the reconciler does not look at the money of {id}"));
            }
        }
    }

    async fn end(mut self) -> Vec<String> {
        let ledger = self.place.ledger(0);
        let history = ledger.history(self.event.id.clone()).await.unwrap();
        let found = Auditor::check(&history);
        self.wrong.extend(found.iter().map(ToString::to_string));
        for (seq, commit) in (1_u64..).zip(&history.commits) {
            if commit.seq.0 != seq {
                self.wrong
                    .push(format!("{:?} in place of {seq}", commit.seq));
            }
        }
        self.wrong
    }
}

async fn walked(place: Place, moves: Vec<Move>) -> Vec<String> {
    let mut walk = Walk::begin(place).await;
    for next in moves {
        walk.go(next).await;
    }
    walk.end().await
}

fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: SEED,
        ..ProptestConfig::with_cases(48)
    })]

    #[test]
    fn any_steps_and_restarts_keep_the_promises_on_sqlite(moves in moves(40)) {
        let place = Place::File(Box::new(TestLedger::sqlite()));
        let wrong = runtime().block_on(walked(place, moves));
        prop_assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn any_steps_and_restarts_keep_the_promises_of_two_servers() {
    let (server, runtime) = (Postgres::start().unwrap(), runtime());
    let cases = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20,
        rng_seed: SEED,
        ..ProptestConfig::with_cases(5)
    };
    let mut runner = prop::test_runner::TestRunner::new(cases);
    let ran = runner.run(&moves(20), |moves| {
        let wrong = runtime.block_on(async {
            let place = Place::shared(&server).await;
            walked(place, moves).await
        });
        prop_assert!(wrong.is_empty(), "{wrong:#?}");
        Ok(())
    });
    ran.unwrap();
}

/// The step of an hour, and what is asked for two minutes later.
fn an_hour_back() -> Vec<Move> {
    vec![
        Move::Hold(0, 0),
        Move::Step(-3_600_000),
        Move::Hold(1, 1),
        Move::Pass(50_000),
        Move::Hold(0, 2),
        Move::Pass(49_000),
        Move::Hold(0, 3),
        Move::Pass(49_000),
        Move::Hold(0, 1),
    ]
}

#[test]
fn a_clock_that_stands_still_is_found() {
    let (server, runtime) = (Postgres::start().unwrap(), runtime());
    let walk = async |planted: bool| {
        let place = Place::shared(&server).await;
        if let (true, Place::Shared { options, .. }) = (planted, &place) {
            query(&options.url, STANDS_STILL).unwrap();
        }
        walked(place, an_hour_back()).await
    };
    let right = runtime.block_on(walk(false));
    assert!(right.is_empty(), "{right:#?}");
    // A server that stood still for a moment after it read it is ahead of it for good: its commits are refused.
    let is_found = |one: &String| one.starts_with("live after") || one.ends_with(": overloaded");
    let wrong = runtime.block_on(walk(true));
    assert!(wrong.iter().any(is_found), "{wrong:#?}");
}
