//! Random commands, the same on both ledgers at the same times: every answer must be equal, also
//! over restarts of the one on disk, and in the end both must remember the same.

use soldonce_core::{
    Authority, BookingId, Change, Command, Event, HoldId, LineChoice, NewHold, OnHold,
    PaymentReport, PaymentState, Selection, Text, Together, UnitNo, Wish,
};
use soldonce_engine::ledger::Done;
use soldonce_lease::{Entropy, SeededEntropy};

use crate::ledgers::{HALL, TestLedger, caller, holder, key, select};

/// Seeds, each a run of its own.
const RUNS: u64 = 8;
const COMMANDS: usize = 300;

/// Draws small numbers.
struct Dice(SeededEntropy);

impl Dice {
    fn below(&self, limit: usize) -> usize {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        usize::try_from(u64::from_le_bytes(bytes) % u64::try_from(limit).unwrap()).unwrap()
    }

    fn one<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What the run knows: every id it ever minted.
struct Run {
    dice: Dice,
    event: std::sync::Arc<Event>,
    holds: Vec<HoldId>,
    bookings: Vec<BookingId>,
}

const SEATS: [&str; 10] = [
    "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
];
const PEOPLE: [&str; 3] = ["ann", "bob", "cid"];

impl Run {
    fn hold_id(&mut self, test: &TestLedger) -> HoldId {
        let id = test.hold_id();
        self.holds.push(id);
        id
    }

    fn booking_id(&mut self, test: &TestLedger) -> BookingId {
        let id = test.booking_id();
        self.bookings.push(id);
        id
    }

    fn on(&self) -> OnHold {
        let known = self.holds.get(self.dice.below(self.holds.len().max(1)));
        let hold = known.copied().unwrap_or(HoldId::from_bits(1));
        OnHold {
            hold,
            by: Authority::Caller(caller()),
            fence: None,
        }
    }

    fn booking(&self) -> BookingId {
        let known = self
            .bookings
            .get(self.dice.below(self.bookings.len().max(1)));
        known.copied().unwrap_or(BookingId::from_bits(1))
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

    fn hold(&mut self, test: &TestLedger) -> Command {
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
            ttl_max: None,
        })
    }

    fn change(&self) -> Command {
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

    fn sell(&mut self, test: &TestLedger) -> Command {
        Command::Sell {
            event: self.event.no,
            selection: self.selection(),
            holder: holder("door"),
            booking: self.booking_id(test),
            reference: Some(Text::parse("door").unwrap()),
        }
    }

    fn cancel(&self) -> Command {
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

    fn staff(&self) -> Command {
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

    fn command(&mut self, test: &TestLedger) -> Command {
        let reference = None;
        match self.dice.below(20) {
            0..=6 => self.hold(test),
            7 => self.change(),
            8 => Command::Extend {
                on: self.on(),
                ttl: None,
                ttl_max: None,
            },
            9..=10 => Command::Checkout {
                on: self.on(),
                booking: self.booking_id(test),
                reference,
            },
            11..=12 => {
                let state = self.dice.one(&PaymentState::ALL);
                Command::Payment(PaymentReport {
                    booking: self.booking(),
                    state,
                })
            }
            13 => Command::Release { on: self.on() },
            14 => Command::Abandon { on: self.on() },
            15 => Command::Confirm {
                on: self.on(),
                booking: self.booking_id(test),
                reference,
            },
            16 => self.sell(test),
            17 => self.cancel(),
            18 => Command::Exchange {
                booking: self.booking(),
                give: vec![UnitNo(u32::try_from(self.dice.below(15)).unwrap())],
                on: self.on(),
            },
            _ => self.staff(),
        }
    }
}

/// An answer as text: enough to tell any two apart.
fn told(done: &Result<Done, soldonce_core::Rejection>) -> String {
    match done {
        Ok(Done::Fresh { answer, seq }) => format!("{seq:?} {answer:?}"),
        Ok(Done::Replayed(reply)) => format!("replayed {reply:?}"),
        Err(rejection) => format!("refused {rejection:?}"),
    }
}

async fn run(seed: u64) {
    let (memory, mut disk) = (TestLedger::memory(), TestLedger::sqlite());
    let change = |policy: &mut soldonce_core::Policy| {
        policy.units_bought_per_holder_max = Some(6);
        policy.units_per_holder_max = 7;
    };
    let event = memory.event_on(HALL, change).await;
    disk.event_on(HALL, change).await;
    let dice = Dice(SeededEntropy::new(seed));
    let mut run = Run {
        dice,
        event,
        holds: Vec::new(),
        bookings: Vec::new(),
    };
    for step in 0..COMMANDS {
        match run.dice.below(12) {
            0 => {
                let ms = u64::try_from(run.dice.below(400_000)).unwrap();
                memory.advance_ms(ms);
                disk.advance_ms(ms);
            }
            1 => disk.restart().await,
            2 => disk.crash(),
            _ => {}
        }
        let command = run.command(&memory);
        let name = u8::try_from(run.dice.below(200)).unwrap();
        let (one, other) = if name < 40 {
            let key = key(name, 1);
            (
                memory.ask_as(command.clone(), key).await,
                disk.ask_as(command.clone(), key).await,
            )
        } else {
            (
                memory.ask(command.clone()).await,
                disk.ask(command.clone()).await,
            )
        };
        assert_eq!(
            told(&one),
            told(&other),
            "seed {seed}, step {step}: {command:?}"
        );
    }
    compare(&run, &memory, &disk).await;
}

async fn compare(run: &Run, memory: &TestLedger, disk: &TestLedger) {
    for id in &run.holds {
        let (one, other) = (memory.ledger.hold(*id).await, disk.ledger.hold(*id).await);
        assert_eq!(one.unwrap(), other.unwrap());
    }
    for id in &run.bookings {
        let (one, other) = (
            memory.ledger.booking(*id).await,
            disk.ledger.booking(*id).await,
        );
        assert_eq!(one.unwrap(), other.unwrap());
    }
    for who in PEOPLE {
        let one = memory.ledger.holds_of(holder(who), 100).await.unwrap();
        let other = disk.ledger.holds_of(holder(who), 100).await.unwrap();
        assert_eq!(one, other);
    }
    let one = memory.ledger.history(run.event.id.clone()).await.unwrap();
    let other = disk.ledger.history(run.event.id.clone()).await.unwrap();
    assert_eq!(one.commits, other.commits);
    let folder = disk.folder.as_ref().unwrap().path();
    let report = soldonce_engine::ledger::sqlite::verify::verify(folder, &mut |_| {}).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.transitions > 10, "seed made nothing happen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ledgers_give_equal_answers() {
    for seed in 0..RUNS {
        run(seed).await;
    }
}
