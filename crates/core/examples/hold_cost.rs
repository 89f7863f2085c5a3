//! What a hold by a seat's name and its release cost in a hall of 100 seats and in one of a million, in the same
//! run: both halls are there, and rounds of them alternate. Then what a seat costs in memory.
//!
//! `cargo run --release -p soldonce-core --example hold_cost`
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "it reports to whoever started it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use soldonce_core::{
    Amount, Authority, CallerId, Chart, ChartBuilder, Command, Currency, EventId, EventNo, HoldId,
    Holder, HolderName, Inventory, NewEvent, NewHold, OnHold, Origin, Policy, Position, SeatSpec,
    Text, Timestamp, Wish,
};

const ROUNDS: u32 = 61;
const HOLDS_PER_ROUND: u32 = 5_000;
const PER_ROW: u64 = 50;

fn main() {
    let before = resident_bytes();
    let mut large = Hall::new(1_000_000);
    let after = resident_bytes();
    let mut small = Hall::new(100);
    let mut costs: [Vec<u128>; 2] = Default::default();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (a, b) = (small.round(), large.round());
        costs[0].push(a);
        costs[1].push(b);
        ratios.push(b * 1_000 / a);
    }
    let [small_ns, large_ns] =
        costs.map(|mut nanos| median(&mut nanos) / u128::from(HOLDS_PER_ROUND));
    println!("hold + release, 100 seats:       {small_ns} ns");
    println!("hold + release, 1,000,000 seats: {large_ns} ns");
    let ratio = median(&mut ratios);
    println!(
        "median of the rounds' ratios:    {}.{:03}",
        ratio / 1_000,
        ratio % 1_000
    );
    let counted =
        large.chart.heap_bytes() + large.inventory.seating(EventNo(0)).unwrap().heap_bytes();
    println!("bytes a seat, counted:           {}", counted / 1_000_000);
    println!(
        "bytes a seat, resident:          {}",
        (after - before) / 1_000_000
    );
}

fn median(values: &mut [u128]) -> u128 {
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

struct Hall {
    chart: Arc<Chart>,
    inventory: Inventory,
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
            random: 0x9e37_79b9_7f4a_7c15,
            now: 0,
        }
    }

    /// Holds random free seats by name, releases each, and gives the nanoseconds it took.
    fn round(&mut self) -> u128 {
        let origin = Origin::system("bench");
        let asked: Vec<(String, Holder)> = (0..HOLDS_PER_ROUND).map(|_| self.ask()).collect();
        #[expect(
            clippy::disallowed_methods,
            reason = "the only thing here is to measure time"
        )]
        let start = Instant::now();
        for (name, holder) in asked {
            self.now += 1;
            let hold = HoldId::from_bits(u128::try_from(self.now).unwrap());
            let new = NewHold {
                event: EventNo(0),
                hold,
                holder,
                wish: Wish::Named(self.chart.select([name.as_str()], []).unwrap()),
                ttl: None,
                ttl_max: None,
            };
            let now = Timestamp::from_ms(self.now);
            let hold_it = Command::Hold(new);
            self.inventory.apply(now, &origin, hold_it).unwrap();
            let on = OnHold {
                hold,
                by: Authority::Secret,
                fence: None,
            };
            let release_it = Command::Release { on };
            self.inventory.apply(now, &origin, release_it).unwrap();
            self.inventory.forget_hold(hold);
        }
        start.elapsed().as_nanos()
    }

    /// The name of a random seat, and somebody who wants it.
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
