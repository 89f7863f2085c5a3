//! Random commands, the same on every ledger at the same times: every answer must be equal, also
//! over restarts, and in the end all must remember the same. On PostgreSQL two servers take turns,
//! as a coin falls: what one did, the other must know.

use soldonce_clock::{Entropy, SeededEntropy};
use soldonce_core::{
    Adjacency, Authority, BookingId, Change, Command, Difference, Effect, Event, GivenLines,
    HoldId, LineChoice, NewHold, OnHold, PaymentState, Policy, Rejection, Selection, Text,
    Together, TtlMax, UnitNo, Wish,
};
use soldonce_engine::ledger::{Done, RequestKey, sqlite};
use soldonce_engine::reply::{ReplyKind, StoredReply};

use crate::ledgers::{HALL, TestLedger, caller, holder, key, no_money, select};

/// Seeds, each a run of its own.
const RUNS: u64 = 8;
const COMMANDS: usize = 300;

/// Draws small numbers.
pub(crate) struct Dice(SeededEntropy);

impl Dice {
    pub(crate) fn below(&self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What the run knows: every id it ever minted.
pub(crate) struct Run {
    pub(crate) dice: Dice,
    pub(crate) event: std::sync::Arc<Event>,
    pub(crate) holds: Vec<HoldId>,
    pub(crate) bookings: Vec<BookingId>,
}

const SEATS: [&str; 10] = [
    "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
];
const PEOPLE: [&str; 3] = ["ann", "bob", "cid"];

impl Run {
    pub(crate) fn new(seed: u64, event: std::sync::Arc<Event>) -> Self {
        Self {
            dice: Dice(SeededEntropy::new(seed)),
            event,
            holds: Vec::new(),
            bookings: Vec::new(),
        }
    }

    pub(crate) fn hold_id(&mut self, test: &TestLedger) -> HoldId {
        let id = test.hold_id();
        self.holds.push(id);
        id
    }

    pub(crate) fn booking_id(&mut self, test: &TestLedger) -> BookingId {
        let id = test.booking_id();
        self.bookings.push(id);
        id
    }

    pub(crate) fn on(&self) -> OnHold {
        let known = self.holds.get(self.dice.below(self.holds.len().max(1)));
        let hold = known.copied().unwrap_or(HoldId::from_bits(1));
        OnHold {
            hold,
            by: Authority::Caller(caller()),
            fence: None,
        }
    }

    pub(crate) fn booking(&self) -> BookingId {
        let known = self
            .bookings
            .get(self.dice.below(self.bookings.len().max(1)));
        known.copied().unwrap_or(BookingId::from_bits(1))
    }

    fn given(&self) -> GivenLines {
        let unit = UnitNo(u32::try_from(self.dice.below(15)).unwrap());
        GivenLines {
            booking: self.booking(),
            units: vec![unit],
        }
    }

    fn selection(&self) -> Selection {
        let mut seats: Vec<&str> = (0..=self.dice.below(3))
            .map(|_| self.dice.one(&SEATS))
            .collect();
        let areas = [("floor", u32::try_from(1 + self.dice.below(3)).unwrap())];
        match self.dice.below(4) {
            0 => seats.clear(),
            1 => return select(&self.event, &seats, &areas),
            _ => return select(&self.event, &seats, &[]),
        }
        select(&self.event, &seats, &areas)
    }

    pub(crate) fn hold(&mut self, test: &TestLedger) -> Command {
        let wish = match self.dice.below(4) {
            0 => Wish::Best {
                quantity: u32::try_from(1 + self.dice.below(3)).unwrap(),
                category: None,
                together: Together::Preferred,
            },
            _ => Wish::Named(self.selection()),
        };
        Command::Hold(NewHold {
            event: self.event.no,
            hold: self.hold_id(test),
            holder: holder(self.dice.one(&PEOPLE)),
            wish,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        })
    }

    pub(crate) fn change(&self) -> Command {
        let add = match self.dice.below(2) {
            0 => Selection::default(),
            _ => self.selection(),
        };
        let drop = vec![UnitNo(u32::try_from(self.dice.below(10)).unwrap())];
        let on = self.on();
        Command::Change(Box::new(Change {
            on,
            add,
            drop,
            drop_places: Selection::default(),
        }))
    }

    pub(crate) fn sell(&mut self, test: &TestLedger) -> Command {
        Command::Sell {
            event: self.event.no,
            selection: self.selection(),
            holder: holder("door"),
            booking: self.booking_id(test),
            reference: Some(Text::parse("door").unwrap()),
        }
    }

    pub(crate) fn cancel(&self) -> Command {
        let lines = match self.dice.below(3) {
            0 => LineChoice::All,
            _ => LineChoice::Some {
                units: vec![UnitNo(u32::try_from(self.dice.below(15)).unwrap())],
                places: Selection::default(),
            },
        };
        Command::Cancel {
            booking: self.booking(),
            by: Authority::Staff,
            lines,
        }
    }

    pub(crate) fn staff(&self) -> Command {
        let (event, selection) = (self.event.no, self.selection());
        let reason = Text::parse("camera").unwrap();
        match self.dice.below(3) {
            0 => Command::Block {
                event,
                selection,
                reason,
            },
            1 => Command::Unblock {
                event,
                selection,
                reason,
            },
            _ => Command::Revoke {
                hold: self.on().hold,
                reason,
            },
        }
    }

    /// Any command but those on events.
    pub(crate) fn command(&mut self, test: &TestLedger) -> Command {
        let reference = None;
        match self.dice.below(20) {
            0..=6 => self.hold(test),
            7 => self.change(),
            8 => Command::Extend {
                on: self.on(),
                ttl: None,
                ttl_max: TtlMax::HoldMax,
            },
            9..=10 => Command::Checkout {
                on: self.on(),
                booking: self.booking_id(test),
                reference,
                exchange: (self.dice.below(2) == 0).then(|| self.given()),
            },
            11..=12 => {
                let state = self.dice.one(&PaymentState::ALL);
                Command::Payment(Box::new(no_money(self.booking(), state)))
            }
            13 => Command::Release { on: self.on() },
            14 => Command::Abandon {
                on: self.on(),
                booking: None,
            },
            15 => Command::Confirm {
                on: self.on(),
                booking: self.booking_id(test),
                reference,
            },
            16 => self.sell(test),
            17 => self.cancel(),
            18 => Command::Exchange {
                given: self.given(),
                on: self.on(),
                difference: Difference::Unpaid,
            },
            _ => self.staff(),
        }
    }
}

/// An answer as text: enough to tell any two apart. Numbers of commits are left out.
fn told(done: &Result<Done, Rejection>) -> String {
    match done {
        Ok(Done::Fresh { answer, .. }) => format!("{answer:?}"),
        Ok(Done::Replayed(reply)) => format!("replayed {:?}", without_seq(reply)),
        Err(Rejection::UnitUnavailable(why)) => {
            let (conflicts, alternatives) = (&why.conflicts, &why.alternatives);
            format!("unavailable {conflicts:?} {alternatives:?}")
        }
        Err(rejection) => format!("refused {rejection:?}"),
    }
}

/// What may be said to be done for a booking, or nothing.
fn effects_of(booking: BookingId) -> [Option<Effect>; 4] {
    [
        None,
        Some(Effect::Authorise(booking)),
        Some(Effect::Capture(booking)),
        Some(Effect::CancelIntent(booking)),
    ]
}

/// A reply's kind, subject and body; its number of the commit is left out.
fn without_seq(reply: &StoredReply) -> (ReplyKind, [u8; 16], serde_json::Value) {
    let body = [&reply.body, b"}".as_slice()].concat();
    let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    body.as_object_mut().unwrap().remove("seq");
    (reply.kind, reply.subject, body)
}

/// One ledger, as one or more servers.
struct Side(Vec<TestLedger>);

impl Side {
    async fn ask(
        &self,
        dice: &Dice,
        command: &Command,
        key: Option<RequestKey>,
    ) -> Result<Done, Rejection> {
        let server = &self.0[dice.below(self.0.len())];
        match key {
            Some(key) => server.ask_as(command.clone(), key).await,
            None => server.ask(command.clone()).await,
        }
    }

    async fn disturb(&mut self, dice: &Dice) {
        let at = dice.below(self.0.len());
        match dice.below(12) {
            0 => self.0[at].restart().await,
            1 => self.0[at].crash().await,
            _ => {}
        }
    }
}

async fn run(seed: u64, mut side: Side) {
    let memory = TestLedger::memory();
    let change = |policy: &mut Policy| {
        policy.units_bought_per_holder_max = Some(6);
        policy.units_per_holder_max = 7;
        if seed.is_multiple_of(2) {
            policy.adjacency = Adjacency::NoOrphan;
        }
    };
    let event = memory.event_on(HALL, change).await;
    side.0[0].event_on(HALL, change).await;
    let coin = Dice(SeededEntropy::new(seed + 1_000));
    let mut run = Run::new(seed, event);
    for step in 0..COMMANDS {
        if run.dice.below(12) == 0 {
            let ms = u64::try_from(run.dice.below(400_000)).unwrap();
            memory.advance_ms(ms);
            // The servers of one side share their clock.
            side.0[0].advance_ms(ms);
        }
        side.disturb(&coin).await;
        let command = match run.command(&memory) {
            // The provider knows what the buyer was asked for.
            Command::Payment(report) => {
                let settles = run.dice.one(&effects_of(report.booking));
                memory.report(report.booking, report.state, settles).await
            }
            other => other,
        };
        let name = u8::try_from(run.dice.below(200)).unwrap();
        let key = (name < 40).then(|| key(name, 1));
        let one = match key {
            Some(key) => memory.ask_as(command.clone(), key).await,
            None => memory.ask(command.clone()).await,
        };
        let other = side.ask(&coin, &command, key).await;
        assert_eq!(
            told(&one),
            told(&other),
            "seed {seed}, step {step}: {command:?}"
        );
    }
    for server in &side.0 {
        compare(&run, &memory, server).await;
    }
    let keep = soldonce_core::Span::from_ms(10_000);
    let open = memory.ledger.take_effects(keep, 1_000).await.unwrap();
    assert_eq!(
        open,
        side.0[0].ledger.take_effects(keep, 1_000).await.unwrap()
    );
    if let Some(folder) = &side.0[0].folder {
        let report = sqlite::verify::verify(folder.path(), &mut |_| {}).unwrap();
        assert_eq!(report.findings, []);
        assert!(report.transitions > 10, "seed made nothing happen");
    }
}

async fn compare(run: &Run, memory: &TestLedger, other: &TestLedger) {
    // A server that refuses has looked at what is stored now: lists of holds come from a server's memory.
    let nothing = Command::Block {
        event: run.event.no,
        selection: Selection::default(),
        reason: Text::parse("none").unwrap(),
    };
    assert!(other.ask(nothing).await.is_err());
    for id in &run.holds {
        let (one, other) = (memory.ledger.hold(*id).await, other.ledger.hold(*id).await);
        assert_eq!(one.unwrap(), other.unwrap());
    }
    for id in &run.bookings {
        let one = memory.ledger.booking(*id).await;
        assert_eq!(one.unwrap(), other.ledger.booking(*id).await.unwrap());
    }
    let later = memory.ledger.now().plus(soldonce_core::Span::from_ms(1));
    let (mut one, mut two) = (
        memory.ledger.unsettled(later, (None, 1_000)).await.unwrap(),
        other.ledger.unsettled(later, (None, 1_000)).await.unwrap(),
    );
    one.sort_by_key(|booking| booking.id);
    two.sort_by_key(|booking| booking.id);
    assert_eq!(one, two);
    for who in PEOPLE {
        let one = memory.ledger.holds_of(holder(who), (None, 100)).await;
        let two = other.ledger.holds_of(holder(who), (None, 100)).await;
        assert_eq!(one.unwrap(), two.unwrap());
    }
    let one = memory.ledger.history(run.event.id.clone()).await.unwrap();
    let other = other.ledger.history(run.event.id.clone()).await.unwrap();
    assert_eq!(one.commits, other.commits);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ledgers_give_equal_answers() {
    for seed in 0..RUNS {
        run(seed, Side(vec![TestLedger::sqlite()])).await;
    }
}

mod postgres {
    use soldonce_testkit::postgres::PgBouncer;

    use super::{RUNS, Side, TestLedger, run};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_servers_give_the_answers_of_one_memory() {
        for seed in 0..RUNS {
            let one = TestLedger::postgres().await;
            let other = one.second_server().await;
            run(seed, Side(vec![one, other])).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_servers_behind_a_pool_give_the_answers_of_one_memory() {
        let server = TestLedger::server();
        let pool = PgBouncer::start(&server, 16).unwrap();
        for seed in 200..203 {
            let one = TestLedger::postgres_on(&server, Some(&pool)).await;
            let other = one.second_server().await;
            run(seed, Side(vec![one, other])).await;
        }
    }
}
