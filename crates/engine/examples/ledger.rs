//! Measures the SQLite ledger alone: holds and sales per second through the writer, and how long a
//! start takes. `cargo run --release -p soldonce-engine --example ledger -- FOLDER [SEATS] [TASKS] [PHASES]`
//!
//! Writes into `FOLDER`, which must not exist. Prints figures of this machine: compare only what
//! one run prints.
#![expect(clippy::print_stdout, reason = "it reports to a person")]
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot go on must stop"
)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock, SystemEntropy};
use soldonce_core::{
    Actor, Amount, Answer, Applied, Authority, BookingId, CallerId, Command, Currency, Event,
    EventId, HoldId, Holder, HolderName, Inventory, NewEvent, NewHold, OnHold, Origin, Policy,
    Text, TtlMax, UnitName, UnitNo, Wish,
};
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::ledger::{
    Done, Fingerprint, Ledger, Observer, RequestKey, ScopedKey, Transaction,
};

#[derive(Default)]
struct Counts {
    batches: AtomicU64,
    commands: AtomicU64,
    worst_us: AtomicU64,
    sum_us: AtomicU64,
    ticks: AtomicU64,
}

impl Observer for Counts {
    fn opened(&self, _: &Inventory) {}
    fn committed(&self, _: &Inventory, _: &[Applied]) {}
    fn batch(&self, commands: usize, commit: Duration) {
        let us = u64::try_from(commit.as_micros()).unwrap_or(u64::MAX);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.commands
            .fetch_add(u64::try_from(commands).unwrap_or(0), Ordering::Relaxed);
        self.worst_us.fetch_max(us, Ordering::Relaxed);
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }
    fn failed(&self, why: &str) {
        println!("the ledger failed: {why}");
    }
}

impl Counts {
    fn report(&self, what: &str, count: u32, took: Duration) {
        let ticks = writer_ticks();
        let used = ticks - self.ticks.swap(ticks, Ordering::Relaxed);
        let cpu_ns = used * 10_000_000 / u64::from(count.max(1));
        let commands = count;
        let (batches, sum) = (
            self.batches.swap(0, Ordering::Relaxed),
            self.sum_us.swap(0, Ordering::Relaxed),
        );
        let taken = self.commands.swap(0, Ordering::Relaxed);
        let worst = self.worst_us.swap(0, Ordering::Relaxed);
        let per_second = u128::from(commands) * 1_000_000 / took.as_micros().max(1);
        let batches = batches.max(1);
        println!(
            "{what:<24} {per_second:>7}/s, writer {:>6} ns each; batch {:>3}, commit {:>6} us, worst {worst} us",
            cpu_ns,
            taken / batches,
            sum / batches,
        );
    }
}

/// Time on a processor of the writer's thread so far, in hundredths of a second.
fn writer_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    // The name stands in brackets; the two times are the 12th and 13th word behind it.
    let times = stats.filter_map(|stat| {
        let (name, rest) = stat.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let time = |at: usize| words.get(at)?.parse::<u64>().ok();
        name.ends_with("(ledger-writer")
            .then(|| Some(time(11)? + time(12)?))?
    });
    times.sum()
}

struct Run {
    ledger: Arc<SqliteLedger>,
    counts: Arc<Counts>,
    tasks: u32,
    ids: AtomicU64,
}

fn open(folder: &str) -> (Arc<SqliteLedger>, Arc<Counts>, Duration) {
    let counts = Arc::new(Counts::default());
    let observer = Arc::clone(&counts) as Arc<dyn Observer>;
    let begun = SystemClock.boot();
    let options = SqliteOptions::new(folder);
    let ledger = SqliteLedger::open(&options, Arc::new(SystemClock), &SystemEntropy, observer);
    (
        Arc::new(ledger.unwrap()),
        counts,
        SystemClock.boot().since(begun),
    )
}

impl Run {
    fn bits(&self) -> u128 {
        let n = self.ids.fetch_add(1, Ordering::Relaxed);
        // The low bits of a real id are random.
        let mixed = u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (u128::from(SystemClock.wall_ms().cast_unsigned()) << 80)
            | (mixed << 8)
            | u128::from(n & 0xff)
    }

    async fn ask(&self, command: Command, key: Option<RequestKey>) -> Done {
        let actor = Actor::Caller(CallerId::from_bits(1));
        let origin = Origin {
            actor,
            request: "req_01jdkq2x4v8y7z6w5t4s3r2q1p".into(),
        };
        self.ledger
            .transact(Transaction {
                origin,
                command,
                key,
                chart: None,
            })
            .await
            .unwrap()
    }

    async fn event(&self, id: &str, seats: u32) -> Arc<Event> {
        let side = seats.isqrt();
        let json = format!(
            r#"{{"format":"grid","rows":{side},"seats_per_row":{side},"category":"Standard"}}"#
        );
        let chart = soldonce_engine::chart::read(json.as_bytes()).unwrap().chart;
        let new = NewEvent {
            id: EventId::parse(id).unwrap(),
            name: Text::parse("Measured").unwrap(),
            starts_at: None,
            currency: Currency::parse("EUR").unwrap(),
            prices: chart
                .categories()
                .iter()
                .map(|c| (c.clone(), Amount::from_minor(4_500)))
                .collect(),
            chart: Arc::new(chart),
            policy: Policy {
                units_per_holder_max: 1_000,
                ..Policy::default()
            },
            fingerprint: [1; 32],
        };
        let actor = Actor::System;
        let origin = Origin {
            actor,
            request: "start".into(),
        };
        let (command, chart) = (
            Command::CreateEvent(Box::new(new)),
            Some(json.as_bytes().into()),
        );
        let asked = Transaction {
            origin,
            command,
            key: None,
            chart,
        };
        match self.ledger.transact(asked).await.unwrap() {
            Done::Fresh {
                answer: Answer::EventCreated(event),
                ..
            } => event,
            other @ (Done::Fresh { .. } | Done::Replayed(_)) => panic!("no event: {other:?}"),
        }
    }

    /// One hold, and one sale if wanted, of the `n`th seat in a scattered order.
    async fn one(&self, event: &Event, n: u32, what: What) {
        let seats = event.chart.units();
        // A step without a common divisor with any square: every seat once, in no order.
        let seat = UnitNo(u32::try_from(u64::from(n) * 982_451_653 % u64::from(seats)).unwrap());
        let UnitName::Seat(name) = event.chart.unit_name(seat) else {
            return;
        };
        let selection = event.chart.select([name], []).unwrap();
        let holder = Holder {
            caller: CallerId::from_bits(1),
            name: HolderName::parse(&format!("buyer-{n}")).unwrap(),
        };
        let hold = HoldId::from_bits(self.bits());
        let command = Command::Hold(NewHold {
            event: event.no,
            hold,
            holder,
            wish: Wish::Named(selection),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        });
        let done = self.ask(command, None).await;
        if matches!(what, What::Hold) {
            return;
        }
        let Done::Fresh {
            answer: Answer::Held(granted),
            ..
        } = done
        else {
            panic!("{done:?}")
        };
        let key = matches!(what, What::KeyedSale).then(|| RequestKey {
            scoped: ScopedKey(
                self.bits()
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
                    .to_be_bytes(),
            ),
            fingerprint: Fingerprint([1; 16]),
        });
        let on = OnHold {
            hold,
            by: Authority::Secret,
            fence: Some(granted.fence),
        };
        let booking = BookingId::from_bits(self.bits());
        self.ask(
            Command::Confirm {
                on,
                booking,
                reference: None,
            },
            key,
        )
        .await;
    }

    /// Takes numbers below `count` until there are none left.
    async fn as_long_as(&self, next: &AtomicU32, count: u32, event: &Event, what: What) {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        for n in numbers.take_while(|n| *n < count) {
            self.one(event, n, what).await;
        }
    }

    async fn all(self: &Arc<Self>, event: &Arc<Event>, count: u32, what: What) {
        let begun = SystemClock.boot();
        let next = Arc::new(AtomicU32::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..self.tasks {
            let (run, event, next) = (Arc::clone(self), Arc::clone(event), Arc::clone(&next));
            tasks.spawn(async move { run.as_long_as(&next, count, &event, what).await });
        }
        tasks.join_all().await;
        let name = format!("{what:?}, {} seats", event.chart.units());
        self.counts
            .report(&name, count, SystemClock.boot().since(begun));
    }
}

#[derive(Clone, Copy, Debug)]
enum What {
    Hold,
    Sale,
    KeyedSale,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().ok_or("name a folder that does not exist")?;
    let seats: u32 = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let tasks: u32 = args.next().map_or(Ok(256), |text| text.parse())?;
    let (ledger, counts, _) = open(&folder);
    let run = Arc::new(Run {
        ledger,
        counts,
        tasks,
        ids: AtomicU64::new(1),
    });
    let phases = args
        .next()
        .unwrap_or_else(|| "small,hold,sale,keyed".to_owned());
    for phase in phases.split(',') {
        let (seats, count, what) = match phase {
            "small" => (10_000, 10_000, What::Hold),
            "hold" => (seats, seats / 4, What::Hold),
            "sale" => (seats, seats / 4, What::Sale),
            "keyed" => (seats, seats / 4, What::KeyedSale),
            "all" => (seats, seats, What::Sale),
            "held" => (seats, seats, What::Hold),
            "none" => continue,
            other => return Err(format!("no phase `{other}`").into()),
        };
        let event = run.event(phase, seats).await;
        run.all(&event, count, what).await;
    }
    run.ledger.close().await;
    drop(run);
    let (ledger, _, took) = open(&folder);
    println!("start: {} ms", took.as_millis());
    ledger.close().await;
    drop(ledger);
    let begun = SystemClock.boot();
    let report = verify(Path::new(&folder), &mut |_| {})?;
    let took = SystemClock.boot().since(begun).as_millis();
    let (rows, findings) = (report.transitions, report.findings.len());
    println!("verify: {took} ms for {rows} transitions, {findings} findings");
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("most memory at once: {}", peak.unwrap_or_default());
    Ok(())
}
