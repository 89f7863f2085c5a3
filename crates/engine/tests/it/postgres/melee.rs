//! Random commands on a small hall at many servers at once: every command is answered by the rules, and all
//! answers together make one history.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use soldonce_core::{Adjacency, Answer, Authority, Command, LineChoice, Policy, Rejection, TtlMax};
use soldonce_engine::ledger::postgres::PostgresLedger;
use soldonce_engine::ledger::{Done, Ledger};
use tokio::task::JoinSet;

use super::Servers;
use crate::differential::Run;
use crate::ledgers::{TestLedger, transaction};

/// Commands of one run.
pub(super) const COMMANDS: usize = 1_500;
const CALLERS: usize = 12;
/// Holds and bookings that are known to be there: everybody acts on the same few.
const KNOWN_MAX: usize = 6;

/// How often each kind of answer was given.
pub(super) type Answers = BTreeMap<&'static str, usize>;

/// What all callers share.
struct Melee {
    ledgers: Vec<Arc<PostgresLedger>>,
    run: Mutex<Run>,
    ids: TestLedger,
    asked: AtomicUsize,
}

impl Melee {
    fn next(&self) -> Option<(usize, Command)> {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        (n < COMMANDS).then(|| (n, command(&mut self.run.lock().unwrap(), &self.ids)))
    }

    /// Takes note of what can be acted on.
    fn note(&self, done: &Done) {
        let Done::Fresh { answer, .. } = done else {
            return;
        };
        let mut run = self.run.lock().unwrap();
        match answer {
            Answer::Held(hold) => keep(&mut run.holds, hold.id),
            Answer::Booked(booking) => keep(&mut run.bookings, booking.id),
            _ => {}
        }
    }
}

fn keep<T>(known: &mut Vec<T>, one: T) {
    if known.len() == KNOWN_MAX {
        known.remove(0);
    }
    known.push(one);
}

/// A command that has a chance: on what is there, and giving back as much as is taken.
fn command(run: &mut Run, ids: &TestLedger) -> Command {
    let (holds, bookings) = (run.holds.clone(), run.bookings.clone());
    let on = run.on();
    let reference = None;
    let command = match run.dice.below(24) {
        0..=6 => run.hold(ids),
        7..=9 => run.change(),
        10..=11 => Command::Extend {
            on,
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        },
        12..=14 => Command::Release { on },
        15..=16 => Command::Confirm {
            on,
            booking: run.booking_id(ids),
            reference,
        },
        17 => Command::Checkout {
            on,
            booking: run.booking_id(ids),
            reference,
            exchange: None,
        },
        18..=20 => Command::Cancel {
            booking: run.booking(),
            by: Authority::Staff,
            lines: LineChoice::All,
        },
        21 => Command::Abandon { on, booking: None },
        22 => run.sell(ids),
        _ => run.staff(),
    };
    // Only what succeeds is there.
    (run.holds, run.bookings) = (holds, bookings);
    command
}

async fn call(melee: Arc<Melee>) -> Answers {
    let mut answers = Answers::new();
    while let Some((n, command)) = melee.next() {
        let ledger = &melee.ledgers[n % melee.ledgers.len()];
        let done = ledger.transact(transaction(command.clone(), None)).await;
        assert!(
            !matches!(done, Err(Rejection::ReadOnly | Rejection::OutcomeUnknown)),
            "the outcome stays unknown: {command:?}"
        );
        let code = done.as_ref().map_or_else(Rejection::code, |_| "done");
        *answers.entry(code).or_default() += 1;
        if let Ok(done) = &done {
            melee.note(done);
        }
    }
    answers
}

pub(super) async fn melee(servers: &Servers, seed: u64) -> Answers {
    let change = |policy: &mut Policy| {
        policy.units_per_holder_max = 7;
        if seed.is_multiple_of(2) {
            policy.adjacency = Adjacency::NoOrphan;
        }
    };
    let event = servers.event(change).await;
    let melee = Arc::new(Melee {
        ledgers: servers.ledgers.clone(),
        run: Mutex::new(Run::new(seed, Arc::clone(&event))),
        ids: TestLedger::memory(),
        asked: AtomicUsize::new(0),
    });
    let mut all = JoinSet::new();
    for _ in 0..CALLERS {
        all.spawn(call(Arc::clone(&melee)));
    }
    let mut answers = Answers::new();
    for (code, count) in all.join_all().await.into_iter().flatten() {
        *answers.entry(code).or_default() += count;
    }
    servers.judge(0, &event.id).await;
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_commands_at_once_make_one_history() {
    for seed in 0..4 {
        let servers = Servers::start(3).await;
        let answers = melee(&servers, seed).await;
        assert!(answers["done"] > COMMANDS / 10, "{answers:?}");
        assert_eq!(answers.get("overloaded"), None, "{answers:?}");
        assert_eq!(servers.deadlocks(), "0");
    }
}
