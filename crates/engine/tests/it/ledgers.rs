//! A ledger to test: the real one, on a clock that the test moves. Dropping it judges everything
//! that happened with the auditor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{ManualClock, SeededEntropy};
use soldonce_core::{
    Actor, Amount, Answer, Applied, Auditor, Authority, Booking, BookingId, CallerId, Command,
    Commit, Currency, Effect, Event, EventId, EventNo, Fence, History, Hold, HoldId, HoldTerms,
    Holder, HolderName, Inventory, LineChoice, NewEvent, NewHold, OnHold, Origin, PaymentReport,
    PaymentState, Policy, Rejection, Seating, Selection, Seq, Text, Timestamp, TtlMax, Wish,
};
use soldonce_engine::ledger::postgres::{
    Durability, PostgresLedger, PostgresOptions, Statements, TimeSource, migrate,
    verify as postgres_verify,
};
use soldonce_engine::ledger::sqlite::{OpenError, SqliteLedger, SqliteOptions};
use soldonce_engine::ledger::{
    Done, Fingerprint, Ledger, Observer, RequestKey, ScopedKey, Transaction,
};
use soldonce_testkit::postgres::{PgBouncer, Postgres, query};
use soldonce_testkit::{PATIENCE, TempFolder, runtime, until};

use crate::oracle::Oracle;

/// When every test begins.
pub(crate) const START_MS: i64 = 1_790_000_000_000;
/// 2100-01-01, after every test on the machine's clock: events start then.
const FAR_MS: i64 = 4_102_444_800_000;

/// A report about nothing.
pub(crate) fn no_money(booking: BookingId, state: PaymentState) -> PaymentReport {
    PaymentReport {
        booking,
        state,
        amount: Amount::ZERO,
        currency: euro(),
        captured: Amount::ZERO,
        refunded: Amount::ZERO,
        bounced: Amount::ZERO,
        intent: None,
        settles: None,
    }
}

pub(crate) fn euro() -> Currency {
    Currency::parse("EUR").unwrap()
}

/// A test that fails shows what the servers said.
pub(crate) fn log() {
    // Another test of the same process may have set it.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_test_writer()
        .try_init()
        .ok();
}

/// Writes down all commits of one process, for the auditor.
#[derive(Default)]
pub(crate) struct Recorder {
    commits: Mutex<BTreeMap<EventNo, Vec<Commit>>>,
    terms: Mutex<BTreeMap<HoldId, (EventNo, HoldTerms)>>,
    units: Mutex<BTreeMap<EventNo, u32>>,
    /// The policy of each event while it is the one that it was made with.
    policies: Mutex<BTreeMap<EventNo, Option<Policy>>>,
    pub(crate) failures: Mutex<Vec<String>>,
    /// How often memory was found to be wrong.
    pub(crate) distrusted: AtomicU64,
    /// Holds and bookings in memory when the last batch came.
    pub(crate) in_memory: Mutex<(usize, usize)>,
    /// Units held and sold when a ledger was opened last.
    pub(crate) opened: Mutex<(u32, u32)>,
    /// What it saw is not the whole history: others judge that.
    pub(crate) is_silent: AtomicBool,
}

impl Observer for Recorder {
    fn opened(&self, inventory: &Inventory) {
        self.note_events(inventory);
        let seatings = inventory
            .events()
            .filter_map(|event| inventory.seating(event.no));
        let tallies = seatings.map(Seating::tally);
        *self.opened.lock().unwrap() = tallies.fold((0, 0), |(held, sold), tally| {
            (held + tally.held, sold + tally.sold)
        });
    }

    fn committed(&self, inventory: &Inventory, applied: &[Applied]) {
        self.note_events(inventory);
        let counts = (inventory.holds().count(), inventory.bookings().count());
        *self.in_memory.lock().unwrap() = counts;
        for done in applied {
            for id in &done.holds {
                let hold = inventory.hold(*id).unwrap();
                let terms = (hold.event, HoldTerms::from(hold));
                self.terms.lock().unwrap().insert(*id, terms);
            }
            for commit in &done.commits {
                let mut commits = self.commits.lock().unwrap();
                commits
                    .entry(commit.event)
                    .or_default()
                    .push(commit.clone());
            }
        }
    }

    /// Numbers are this process's own: they go on where the last process stopped.
    fn stored_unnumbered(&self, inventory: &Inventory, applied: &[Applied]) {
        let mut numbered = applied.to_vec();
        let mut ends: BTreeMap<EventNo, Seq> = BTreeMap::new();
        for commit in numbered.iter_mut().flat_map(|done| &mut done.commits) {
            let commits = self.commits.lock().unwrap();
            let known = commits.get(&commit.event).and_then(|known| known.last());
            let end = known.map(|known| known.seq).unwrap_or_default();
            let end = ends.entry(commit.event).or_insert(end);
            *end = end.next();
            commit.seq = *end;
        }
        self.committed(inventory, &numbered);
    }

    fn distrusted(&self) {
        self.distrusted.fetch_add(1, Ordering::Relaxed);
    }

    fn failed(&self, why: &str) {
        self.failures.lock().unwrap().push(why.to_owned());
    }
}

impl Recorder {
    fn note_events(&self, inventory: &Inventory) {
        let units = inventory
            .events()
            .map(|event| (event.no, event.chart.units()));
        self.units.lock().unwrap().extend(units);
        let mut policies = self.policies.lock().unwrap();
        for event in inventory.events() {
            let first = policies.entry(event.no);
            let first = first.or_insert_with(|| Some(event.policy.clone()));
            if first.as_ref() != Some(&event.policy) {
                *first = None;
            }
        }
    }

    /// Everything that broke a promise.
    pub(crate) fn violations(&self) -> Vec<String> {
        if self.is_silent.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let terms = self.terms.lock().unwrap();
        let mut found = Vec::new();
        for (event, commits) in &*self.commits.lock().unwrap() {
            let of_event = terms.values().filter(|(of, _)| of == event);
            let history = History {
                units: self.units.lock().unwrap()[event],
                terms: self.policies.lock().unwrap()[event].clone(),
                holds: of_event.map(|(_, terms)| terms.clone()).collect(),
                commits: commits.clone(),
            };
            found.extend(Auditor::check(&history).iter().map(ToString::to_string));
        }
        found
    }
}

/// A ledger under test.
pub(crate) struct TestLedger {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: ManualClock,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) folder: Option<TempFolder>,
    /// The server under a ledger of many, and how it is used.
    pub(crate) postgres: Option<(Arc<Postgres>, PostgresOptions)>,
    next: AtomicU64,
}

impl Drop for TestLedger {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let violations = self.recorder.violations();
        assert!(
            violations.is_empty(),
            "the ledger's history is wrong: {violations:#?}"
        );
        if let Some((_, options)) = &self.postgres {
            verified(options);
        }
    }
}

/// Waits until every commit in a database has its number; calls `meanwhile` before each new look. Reading an
/// event's history would not do: it shows commits without a number under one of its own.
pub(crate) fn wait_for_numbers(url: &str, meanwhile: impl Fn()) {
    let waiting = "SELECT count(*) FROM batches b WHERE commands > 0 \
                   AND NOT EXISTS (SELECT FROM feed f WHERE f.batch = b.id)";
    let are_there = || {
        let is_last = query(url, waiting).unwrap() == "0";
        if !is_last {
            meanwhile();
        }
        is_last
    };
    until("every commit has its number", PATIENCE, are_there).unwrap();
}

/// What is stored in a database is whole after every test.
pub(crate) fn verified(options: &PostgresOptions) {
    let direct = PostgresOptions {
        // Each statement runs once.
        statements: Statements::Unprepared,
        ..PostgresOptions::new(&options.url)
    };
    // From a thread of its own: this one has a runtime.
    let report = std::thread::scope(|scope| {
        let judge = scope.spawn(|| {
            let runtime = runtime().unwrap();
            let report = runtime.block_on(postgres_verify(&direct, &mut |_| {}));
            report.unwrap()
        });
        judge.join().unwrap()
    });
    let found = &report.findings;
    assert!(found.is_empty(), "the database is wrong: {found:#?}");
}

pub(crate) fn open_in(
    options: &SqliteOptions,
    clock: &ManualClock,
    recorder: &Arc<Recorder>,
) -> Result<SqliteLedger, OpenError> {
    let observer = Arc::clone(recorder) as Arc<dyn Observer>;
    SqliteLedger::open(
        options,
        Arc::new(clock.clone()),
        &SeededEntropy::new(7),
        observer,
    )
}

async fn open_on(
    options: &PostgresOptions,
    clock: &ManualClock,
    recorder: &Arc<Recorder>,
) -> PostgresLedger {
    // Every process draws its own name.
    static SEED: AtomicU64 = AtomicU64::new(7);
    let entropy = SeededEntropy::new(SEED.fetch_add(1, Ordering::Relaxed));
    let observer = Arc::clone(recorder) as Arc<dyn Observer>;
    let clock = Arc::new(clock.clone());
    PostgresLedger::open(options, clock, &entropy, observer)
        .await
        .unwrap()
}

impl TestLedger {
    /// The oracle of the differential runs.
    pub(crate) fn memory() -> Self {
        let (clock, recorder) = (ManualClock::at(START_MS), Arc::new(Recorder::default()));
        let observer = Arc::clone(&recorder) as Arc<dyn Observer>;
        let ledger = Oracle::new(Arc::new(clock.clone()), observer);
        Self {
            ledger: Arc::new(ledger),
            clock,
            recorder,
            folder: None,
            postgres: None,
            next: AtomicU64::new(1),
        }
    }

    /// A ledger that was opened by hand, on the clock and the recorder of another test.
    pub(crate) fn with_ledger(&self, ledger: SqliteLedger) -> Self {
        Self {
            ledger: Arc::new(ledger),
            clock: self.clock.clone(),
            recorder: Arc::clone(&self.recorder),
            folder: None,
            postgres: None,
            next: AtomicU64::new(1_000_000),
        }
    }

    pub(crate) fn sqlite() -> Self {
        let (clock, recorder) = (ManualClock::at(START_MS), Arc::new(Recorder::default()));
        let folder = TempFolder::new().unwrap();
        let options = SqliteOptions::new(folder.path());
        let ledger = open_in(&options, &clock, &recorder).unwrap();
        let folder = Some(folder);
        Self {
            ledger: Arc::new(ledger),
            clock,
            recorder,
            folder,
            postgres: None,
            next: AtomicU64::new(1),
        }
    }

    /// A ledger in a database of its own.
    pub(crate) async fn postgres() -> Self {
        Self::postgres_on(&Self::server(), None).await
    }

    /// A database server for several ledgers.
    pub(crate) fn server() -> Arc<Postgres> {
        Arc::new(Postgres::start().unwrap())
    }

    /// A ledger in a new database of this server, through a pool in transaction mode if there is one.
    pub(crate) async fn postgres_on(server: &Arc<Postgres>, pool: Option<&PgBouncer>) -> Self {
        let name = server.database().unwrap();
        Self::on_database(server, &name, pool, START_MS).await
    }

    /// As [`TestLedger::postgres_on`], in this database, which is migrated, at this time.
    pub(crate) async fn on_database(
        server: &Arc<Postgres>,
        name: &str,
        pool: Option<&PgBouncer>,
        now_ms: i64,
    ) -> Self {
        log();
        let direct = PostgresOptions {
            durability: Durability::Waived,
            time: TimeSource::Given,
            ..PostgresOptions::new(server.url_of(name))
        };
        migrate(&direct).await.unwrap();
        let options = match pool {
            Some(pool) => PostgresOptions {
                url: pool.url_of(name),
                statements: Statements::Unprepared,
                ..direct
            },
            None => direct,
        };
        let (clock, recorder) = (ManualClock::at(now_ms), Arc::new(Recorder::default()));
        let ledger = open_on(&options, &clock, &recorder).await;
        Self {
            ledger: Arc::new(ledger),
            clock,
            recorder,
            folder: None,
            postgres: Some((Arc::clone(server), options)),
            next: AtomicU64::new(1),
        }
    }

    /// One more server on the same database, by the same clock. What it alone saw is not judged.
    pub(crate) async fn second_server(&self) -> Self {
        let (server, options) = self.postgres.as_ref().unwrap();
        let recorder = Arc::new(Recorder::default());
        for recorder in [&recorder, &self.recorder] {
            recorder.is_silent.store(true, Ordering::Relaxed);
        }
        let ledger = open_on(options, &self.clock, &recorder).await;
        Self {
            ledger: Arc::new(ledger),
            clock: self.clock.clone(),
            recorder,
            folder: None,
            postgres: Some((Arc::clone(server), options.clone())),
            next: AtomicU64::new(2_000_000),
        }
    }

    /// Closes the ledger and opens it again; the oracle just goes on.
    pub(crate) async fn restart(&mut self) {
        if let Some((_, options)) = &self.postgres {
            self.ledger.close().await;
            let ledger = open_on(options, &self.clock, &self.recorder).await;
            self.ledger = Arc::new(ledger);
            return;
        }
        let Some(folder) = &self.folder else { return };
        self.ledger.close().await;
        let options = SqliteOptions::new(folder.path());
        self.ledger = Arc::new(open_in(&options, &self.clock, &self.recorder).unwrap());
    }

    /// Drops the ledger without closing it, as a crash does, and opens it again.
    pub(crate) async fn crash(&mut self) {
        if let Some((_, options)) = &self.postgres {
            self.ledger = TestLedger::memory().ledger.clone();
            let ledger = open_on(options, &self.clock, &self.recorder).await;
            self.ledger = Arc::new(ledger);
            return;
        }
        let Some(folder) = &self.folder else { return };
        let options = SqliteOptions::new(folder.path());
        let dead = TestLedger::memory().ledger.clone();
        drop(std::mem::replace(&mut self.ledger, dead));
        self.ledger = Arc::new(open_in(&options, &self.clock, &self.recorder).unwrap());
    }

    pub(crate) fn advance_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    /// Waits until every commit has its number. Its ledger gives numbers as its clock goes on, which is why
    /// the clock does.
    pub(crate) fn numbered(&self) {
        if let Some((_, options)) = &self.postgres {
            wait_for_numbers(&options.url, || self.advance_ms(20));
        }
    }

    /// A fresh id, later than all before.
    fn bits(&self) -> u128 {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let at = u128::try_from(self.ledger.now().ms()).unwrap();
        (at << 80) | u128::from(n)
    }

    pub(crate) fn hold_id(&self) -> HoldId {
        HoldId::from_bits(self.bits())
    }

    pub(crate) fn booking_id(&self) -> BookingId {
        BookingId::from_bits(self.bits())
    }

    /// What a provider says that has all of a booking's money in `state`, if there is such a booking.
    pub(crate) async fn report(
        &self,
        booking: BookingId,
        state: PaymentState,
        settles: Option<Effect>,
    ) -> Command {
        let report = match self.ledger.booking(booking).await.unwrap() {
            Some(found) => PaymentReport {
                settles,
                ..PaymentReport::whole(&found, euro(), state)
            },
            None => no_money(booking, state),
        };
        Command::Payment(Box::new(report))
    }

    pub(crate) async fn ask(&self, command: Command) -> Result<Done, Rejection> {
        self.ledger.transact(transaction(command, None)).await
    }

    pub(crate) async fn ask_as(
        &self,
        command: Command,
        key: RequestKey,
    ) -> Result<Done, Rejection> {
        self.ledger.transact(transaction(command, Some(key))).await
    }

    /// An event on a chart of this JSON, with the default policy changed by `change`.
    pub(crate) async fn event_on(&self, json: &str, change: impl Fn(&mut Policy)) -> Arc<Event> {
        self.create(new_event("hamlet-1", json, change), json).await
    }

    /// The same hall on another day.
    pub(crate) async fn other_event(&self) -> Arc<Event> {
        self.create(new_event("hamlet-2", HALL, |_| {}), HALL).await
    }

    async fn create(&self, new: NewEvent, json: &str) -> Arc<Event> {
        let asked = transaction(Command::CreateEvent(Box::new(new)), None);
        let asked = Transaction {
            chart: Some(json.as_bytes().into()),
            ..asked
        };
        created(self.ledger.transact(asked).await)
    }

    /// An event of 3 rows of 10 seats and a floor of 5 places.
    pub(crate) async fn event(&self) -> Arc<Event> {
        self.event_on(HALL, |_| {}).await
    }

    pub(crate) async fn hold(
        &self,
        event: &Event,
        who: &str,
        seats: &[&str],
    ) -> Result<Hold, Rejection> {
        let command = self.hold_command(event, who, seats);
        held(self.ask(command).await)
    }

    pub(crate) fn hold_command(&self, event: &Event, who: &str, seats: &[&str]) -> Command {
        self.wish_command(event, who, Wish::Named(select(event, seats, &[])))
    }

    pub(crate) fn wish_command(&self, event: &Event, who: &str, wish: Wish) -> Command {
        Command::Hold(NewHold {
            event: event.no,
            hold: self.hold_id(),
            holder: holder(who),
            wish,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        })
    }

    pub(crate) async fn confirm(&self, hold: &Hold) -> Result<Booking, Rejection> {
        booked(self.ask(self.confirm_command(hold)).await)
    }

    pub(crate) fn confirm_command(&self, hold: &Hold) -> Command {
        confirm(hold, self.bits())
    }

    pub(crate) fn checkout_command(&self, hold: &Hold) -> Command {
        checkout(hold, self.bits())
    }
}

/// A hall with a bit of everything in it.
pub(crate) async fn busy(test: &TestLedger) -> (Arc<Event>, Booking, Hold) {
    let event = test.event().await;
    let sold = test.hold(&event, "ann", &["A-1", "A-2"]).await.unwrap();
    let booking = test.confirm(&sold).await.unwrap();
    let pinned = test.hold(&event, "bob", &["A-3"]).await.unwrap();
    booked(test.ask(test.checkout_command(&pinned)).await).unwrap();
    let given_up = test.hold(&event, "dan", &["A-5"]).await.unwrap();
    booked(test.ask(test.checkout_command(&given_up)).await).unwrap();
    held(
        test.ask(Command::Abandon {
            on: on(&given_up),
            booking: None,
        })
        .await,
    )
    .unwrap();
    let released = test.hold(&event, "cid", &["A-4"]).await.unwrap();
    held(test.ask(Command::Release { on: on(&released) }).await).unwrap();
    let wish = Wish::Named(select(&event, &["B-1"], &[("floor", 2)]));
    let keyed = test
        .ask_as(test.wish_command(&event, "eve", wish), key(1, 1))
        .await;
    (event, booking, held(keyed).unwrap())
}

pub(crate) const HALL: &str = r#"{"format":"seats",
    "seats":[{"seat":"A-1","category":"Standard"},{"seat":"A-2","category":"Standard"},{"seat":"A-3","category":"Standard"},{"seat":"A-4","category":"Standard"},{"seat":"A-5","category":"Standard"},
             {"seat":"B-1","category":"Standard"},{"seat":"B-2","category":"Standard"},{"seat":"B-3","category":"Standard"},{"seat":"B-4","category":"Standard"},{"seat":"B-5","category":"Standard"}],
    "areas":[{"area":"floor","capacity":5,"category":"Standing"}]}"#;

pub(crate) fn new_event(id: &str, json: &str, change: impl Fn(&mut Policy)) -> NewEvent {
    let chart = soldonce_engine::chart::read(json.as_bytes()).unwrap().chart;
    let mut policy = Policy::default();
    change(&mut policy);
    let prices = chart
        .categories()
        .iter()
        .map(|name| (name.clone(), Amount::from_minor(4_500)));
    NewEvent {
        id: EventId::parse(id).unwrap(),
        name: Text::parse("Hamlet").unwrap(),
        starts_at: Some(Timestamp::from_ms(FAR_MS)),
        currency: euro(),
        prices: prices.collect(),
        chart: Arc::new(chart),
        policy,
        fingerprint: [9; 32],
    }
}

pub(crate) fn caller() -> CallerId {
    CallerId::from_bits(77)
}

pub(crate) fn holder(name: &str) -> Holder {
    Holder {
        caller: caller(),
        name: HolderName::parse(name).unwrap(),
    }
}

pub(crate) fn transaction(command: Command, key: Option<RequestKey>) -> Transaction {
    let origin = Origin {
        actor: Actor::Caller(caller()),
        request: "req-1".into(),
    };
    Transaction {
        origin,
        command,
        key,
        chart: None,
    }
}

pub(crate) fn key(name: u8, body: u8) -> RequestKey {
    RequestKey {
        scoped: ScopedKey([name; 16]),
        fingerprint: Fingerprint([body; 16]),
    }
}

pub(crate) fn select(event: &Event, seats: &[&str], areas: &[(&str, u32)]) -> Selection {
    event
        .chart
        .select(seats.iter().copied(), areas.iter().copied())
        .unwrap()
}

pub(crate) fn on(hold: &Hold) -> OnHold {
    OnHold {
        hold: hold.id,
        by: Authority::Secret,
        fence: Some(hold.fence),
    }
}

pub(crate) fn confirm(hold: &Hold, booking: u128) -> Command {
    Command::Confirm {
        on: on(hold),
        booking: BookingId::from_bits(booking),
        reference: None,
    }
}

pub(crate) fn checkout(hold: &Hold, booking: u128) -> Command {
    Command::Checkout {
        on: on(hold),
        booking: BookingId::from_bits(booking),
        reference: None,
        exchange: None,
    }
}

/// The house cancels all of a booking.
pub(crate) fn cancel(booking: BookingId) -> Command {
    Command::Cancel {
        booking,
        by: Authority::Staff,
        lines: LineChoice::All,
    }
}

pub(crate) fn on_with(hold: &Hold, fence: Fence) -> OnHold {
    OnHold {
        fence: Some(fence),
        ..on(hold)
    }
}

/// How many units were held, each by one; everybody else was told that they are taken.
pub(crate) fn units_given_once(answers: &[Result<Hold, Rejection>]) -> usize {
    let mut taken: Vec<u32> = Vec::new();
    for answer in answers {
        match answer {
            Ok(hold) => taken.extend(hold.units.iter().map(|held| held.unit.0)),
            Err(Rejection::UnitUnavailable(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), count, "a unit was given twice");
    count
}

/// Another has the units of a wish, or had them just now.
#[track_caller]
pub(crate) fn expect_taken<T: std::fmt::Debug>(refused: &Result<T, Rejection>) {
    let is_taken = matches!(refused, Err(Rejection::UnitUnavailable(_)));
    assert!(is_taken, "{refused:?}");
}

/// Whether the outcome of a command is unknown.
pub(crate) fn is_unknown<T>(done: &Result<T, Rejection>) -> bool {
    matches!(done, Err(Rejection::OutcomeUnknown))
}

/// The event of an answer, which must be there.
pub(crate) fn created(done: Result<Done, Rejection>) -> Arc<Event> {
    match done {
        Ok(Done::Fresh {
            answer: Answer::EventCreated(event),
            ..
        }) => event,
        other => panic!("no event: {other:?}"),
    }
}

/// The hold of an answer.
pub(crate) fn held(done: Result<Done, Rejection>) -> Result<Hold, Rejection> {
    match done? {
        Done::Fresh {
            answer: Answer::Held(hold) | Answer::OwnHold(hold) | Answer::Hold(hold),
            ..
        } => Ok(hold),
        other => panic!("no hold: {other:?}"),
    }
}

/// The booking of an answer.
pub(crate) fn booked(done: Result<Done, Rejection>) -> Result<Booking, Rejection> {
    match done? {
        Done::Fresh {
            answer: Answer::Booked(booking) | Answer::Booking(booking),
            ..
        } => Ok(booking),
        other => panic!("no booking: {other:?}"),
    }
}
