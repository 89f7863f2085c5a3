//! How many one-seat holds a second the PostgreSQL ledger makes durable on one server, without HTTP.
//!
//! ```text
//! cargo run --release -p soldonce-engine --example postgres -- URL [BUYERS] [SECONDS] [STRATEGY]
//! ```
//! Uses the database at URL, which must have been migrated and is left with one more event.
#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use soldonce_clock::{BootTime, Clock, Entropy, SystemClock, SystemEntropy};
use soldonce_core::{
    Actor, Amount, Answer, CallerId, Command, Currency, Event, EventId, HoldId, Holder, HolderName,
    NewEvent, NewHold, Origin, Policy, Text, UnitNo, Wish,
};
use soldonce_engine::ledger::postgres::{PostgresLedger, PostgresOptions, Strategy};
use soldonce_engine::ledger::{Done, Ledger, Transaction};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use tokio::task::JoinSet;

/// Seats of the event: enough for every hold of a run.
const SEATS: u32 = 400_000;

type Failed = Box<dyn std::error::Error>;

/// What all buyers share.
struct Sale {
    ledger: PostgresLedger,
    event: Arc<Event>,
    next_seat: AtomicU32,
    next_hold: AtomicU64,
    held: AtomicU64,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("give the address of a database")?;
    let buyers: usize = arguments.next().map_or(Ok(64), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let live = Arc::new(Live::new(Arc::new(Metrics::default())));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let strategy = match arguments.next().as_deref() {
        None | Some("queue") => Strategy::Queue,
        Some("constraint") => Strategy::Constraint,
        Some("optimistic") => Strategy::Optimistic,
        Some("pessimistic") => Strategy::Pessimistic,
        Some("nowait") => Strategy::NoWait,
        Some(other) => return Err(format!("{other} is no strategy without Redis").into()),
    };
    let options = PostgresOptions {
        strategy,
        ..PostgresOptions::new(url)
    };
    let ledger = PostgresLedger::open(&options, Arc::clone(&clock), &SystemEntropy, live).await?;
    let event = event(&ledger).await?;
    let sale = Arc::new(Sale {
        ledger,
        event,
        next_seat: AtomicU32::new(0),
        next_hold: AtomicU64::new(1),
        held: AtomicU64::new(0),
    });
    let until = clock.boot().plus(Duration::from_secs(seconds));
    let begun = clock.boot();
    let mut all = JoinSet::new();
    for buyer in 0..buyers {
        let (sale, clock) = (Arc::clone(&sale), Arc::clone(&clock));
        all.spawn(async move { sale.buy(buyer, &*clock, until).await });
    }
    all.join_all().await;
    let took = clock.boot().since(begun).as_millis().max(1);
    let held = u128::from(sale.held.load(Ordering::Relaxed));
    let rate = held * 1_000 / took;
    println!("{buyers} buyers: {held} holds in {took} ms, {rate}/s");
    sale.ledger.close().await;
    Ok(())
}

impl Sale {
    /// One buyer holds seat after seat until this time.
    async fn buy(&self, buyer: usize, clock: &dyn Clock, until: BootTime) {
        while clock.boot() < until && self.hold(buyer).await {}
    }

    /// One buyer holds the next seat; whether there was one.
    async fn hold(&self, buyer: usize) -> bool {
        let seat = self.next_seat.fetch_add(1, Ordering::Relaxed);
        if seat >= SEATS {
            return false;
        }
        let chart = &self.event.chart;
        let name = chart.unit_name(UnitNo(seat)).to_string();
        let Ok(selection) = chart.select([name.as_str()], []) else {
            return false;
        };
        let Ok(holder) = HolderName::parse(&format!("buyer-{buyer}-{seat}")) else {
            return false;
        };
        let bits = (u128::from(fresh()) << 64)
            | u128::from(self.next_hold.fetch_add(1, Ordering::Relaxed));
        let new = NewHold {
            event: self.event.no,
            hold: HoldId::from_bits(bits),
            holder: Holder {
                caller: CallerId::from_bits(7),
                name: holder,
            },
            wish: Wish::Named(selection),
            ttl: None,
            ttl_max: None,
        };
        let done = self.ledger.transact(asked(Command::Hold(new))).await;
        if done.is_ok() {
            self.held.fetch_add(1, Ordering::Relaxed);
        }
        done.is_ok()
    }
}

fn asked(command: Command) -> Transaction {
    Transaction {
        origin: Origin {
            actor: Actor::System,
            request: "bench".into(),
        },
        command,
        key: None,
        chart: None,
    }
}

fn fresh() -> u64 {
    let mut bytes = [0; 8];
    SystemEntropy.fill(&mut bytes);
    u64::from_be_bytes(bytes)
}

async fn event(ledger: &PostgresLedger) -> Result<Arc<Event>, Failed> {
    let json = format!(
        r#"{{"format":"grid","rows":{},"seats_per_row":1000,"category":"Standard"}}"#,
        SEATS / 1000
    );
    let chart = soldonce_engine::chart::read(json.as_bytes()).map_err(|error| error.to_string())?;
    let new = NewEvent {
        id: EventId::parse(&format!("bench-{:x}", fresh()))?,
        name: Text::parse("Bench")?,
        starts_at: None,
        currency: Currency::parse("EUR").ok_or("no currency")?,
        chart: Arc::new(chart.chart),
        prices: BTreeMap::from([("Standard".to_owned(), Amount::from_minor(100))]),
        policy: Policy::default(),
        fingerprint: [0; 32],
    };
    let command = Command::CreateEvent(Box::new(new));
    match ledger.transact(asked(command)).await {
        Ok(Done::Fresh {
            answer: Answer::EventCreated(event),
            ..
        }) => Ok(event),
        other => Err(format!("no event: {other:?}").into()),
    }
}
