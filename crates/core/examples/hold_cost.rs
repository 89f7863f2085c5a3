//! What a hold and its release cost in a hall of 100 seats and in one of a million, in the same
//! run: both halls are there, and rounds of them alternate. Then what a seat costs in memory.
//!
//! `cargo run --release -p soldonce-core --example hold_cost`
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "it reports to its terminal")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use soldonce_core::{
    Amount, Authority, CallerId, Chart, ChartBuilder, Command, Currency, EventId, EventNo, HoldId,
    Holder, HolderName, Inventory, NewEvent, NewHold, OnHold, Origin, Policy, Position, SeatSpec,
    Selection, Text, Timestamp, TtlMax, Wish,
};

const ROUNDS: u32 = 61;
const HOLDS_PER_ROUND: u32 = 5_000;
const PER_ROW: u64 = 50;

/// What one round took, in nanoseconds.
#[derive(Clone, Copy)]
struct Cost {
    look_up: u128,
    hold_and_release: u128,
}

fn main() {
    let before = resident_bytes();
    let mut large = Hall::new(1_000_000);
    let after = resident_bytes();
    let mut small = Hall::new(100);
    let rounds: Vec<(Cost, Cost)> = (0..ROUNDS)
        .map(|_| (small.round(), large.round()))
        .collect();
    report("look-up of a name", &rounds, |cost| cost.look_up);
    report("hold and release", &rounds, |cost| cost.hold_and_release);
    report("all of it", &rounds, |cost| {
        cost.look_up + cost.hold_and_release
    });
    let counted =
        large.chart.heap_bytes() + large.inventory.seating(EventNo(0)).unwrap().heap_bytes();
    println!("bytes a seat: {} counted", counted / 1_000_000);
    println!("bytes a seat: {} resident", (after - before) / 1_000_000);
}

fn report(what: &str, rounds: &[(Cost, Cost)], part: impl Fn(&Cost) -> u128) {
    let each = |nanos: u128| nanos / u128::from(HOLDS_PER_ROUND);
    let small = each(median(rounds.iter().map(|(small, _)| part(small))));
    let large = each(median(rounds.iter().map(|(_, large)| part(large))));
    let ratio = median(rounds.iter().map(|(a, b)| part(b) * 1_000 / part(a)));
    let (whole, rest) = (ratio / 1_000, ratio % 1_000);
    println!("{what:18} {small:5} ns at 100 seats, {large:5} ns at a million: {whole}.{rest:03}");
}

fn median(values: impl Iterator<Item = u128>) -> u128 {
    let mut values: Vec<u128> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Pages of this process that are in memory.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = pages
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    pages * 4_096
}

#[expect(
    clippy::disallowed_methods,
    reason = "the only thing here is to measure time"
)]
fn now() -> Instant {
    Instant::now()
}

struct Hall {
    chart: Arc<Chart>,
    inventory: Inventory,
    origin: Origin,
    random: u64,
    now: i64,
}

impl Hall {
    fn new(seats: u64) -> Self {
        let chart = Arc::new(chart(seats));
        let mut inventory = Inventory::new();
        let new = NewEvent {
            id: EventId::parse("show").unwrap(),
            name: Text::parse("Show").unwrap(),
            starts_at: None,
            currency: Currency::parse("EUR").unwrap(),
            chart: Arc::clone(&chart),
            prices: BTreeMap::from([("Seat".to_owned(), Amount::price(100).unwrap())]),
            policy: Policy::default(),
            fingerprint: [0; 32],
        };
        let create = Command::CreateEvent(Box::new(new));
        inventory
            .apply(Timestamp::ZERO, &Origin::system("bench"), create)
            .unwrap();
        Self {
            chart,
            inventory,
            origin: Origin::system("bench"),
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
        }
    }

    /// Looks the names of random seats up; then holds each seat and releases it.
    fn round(&mut self) -> Cost {
        let asked: Vec<(String, Holder)> = (0..HOLDS_PER_ROUND).map(|_| self.ask()).collect();
        let start = now();
        let found: Vec<(Selection, Holder)> = asked
            .into_iter()
            .map(|(name, holder)| {
                let found = self.chart.select([name.as_str()], []);
                (found.unwrap(), holder)
            })
            .collect();
        let look_up = start.elapsed().as_nanos();
        let start = now();
        for (selection, holder) in found {
            self.hold_and_release(selection, holder);
        }
        let hold_and_release = start.elapsed().as_nanos();
        Cost {
            look_up,
            hold_and_release,
        }
    }

    fn hold_and_release(&mut self, selection: Selection, holder: Holder) {
        self.now += 1;
        let hold = HoldId::from_bits(u128::try_from(self.now).unwrap());
        let new = NewHold {
            event: EventNo(0),
            hold,
            holder,
            wish: Wish::Named(selection),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        };
        let now = Timestamp::from_ms(self.now);
        let hold_it = Command::Hold(new);
        self.inventory.apply(now, &self.origin, hold_it).unwrap();
        let on = OnHold {
            hold,
            by: Authority::Secret,
            fence: None,
        };
        let release_it = Command::Release { on };
        self.inventory.apply(now, &self.origin, release_it).unwrap();
        self.inventory.forget_hold(hold);
    }

    /// The name of a random seat, and a buyer who wants it.
    fn ask(&mut self) -> (String, Holder) {
        // xorshift64 (Marsaglia): any spread over the hall will do.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        // Not asked of the chart: that would bring to hand what a stranger's request would not.
        let seat = self.random % u64::from(self.chart.seats());
        let name = format!("R{}-{}", seat / PER_ROW, seat % PER_ROW);
        let holder = Holder {
            caller: CallerId::from_bits(1),
            name: HolderName::parse(&format!("user-{}", self.random % 1_000)).unwrap(),
        };
        (name, holder)
    }
}

fn chart(seats: u64) -> Chart {
    let mut chart = ChartBuilder::new("hall");
    chart.zone("main", None).unwrap();
    for row in 0..seats / PER_ROW {
        chart.row(&row.to_string()).unwrap();
        for number in 0..PER_ROW {
            let id = format!("R{row}-{number}");
            let at = |n: u64| i32::try_from(n).unwrap_or(0);
            let position = Some(Position {
                x: at(number),
                y: at(row),
            });
            let seat = SeatSpec {
                id: &id,
                label: None,
                category: "Seat",
                position,
            };
            chart.seat(&seat).unwrap();
        }
    }
    chart.build().unwrap()
}
