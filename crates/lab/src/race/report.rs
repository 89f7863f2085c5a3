//! The report of a race: its data, and its text for a terminal.

use std::collections::BTreeMap;

use serde::Serialize;

use super::RaceArgs;
use super::judge::{Judged, Promise, faults};
use super::plan::Shape;
use super::tally::Figures;
use super::textbook::{Guards, Scene};
use crate::kit::{Machine, kinds, millis, number, table};

#[derive(Serialize)]
pub(super) struct RaceReport {
    pub(super) command: String,
    pub(super) version: &'static str,
    pub(super) machine: Machine,
    /// The versions and settings of the servers.
    pub(super) servers: Vec<String>,
    pub(super) strategies: Vec<StrategyReport>,
    /// The scenes in which the holder of a lease is stopped for longer than it lives.
    pub(super) stopped: Vec<Scene>,
    /// Empty when every strategy did as it promises.
    pub(super) faults: Vec<String>,
}

/// One strategy over all of its cells.
#[derive(Serialize)]
pub(super) struct StrategyReport {
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    pub(super) mechanism: &'static str,
    pub(super) why: &'static str,
    /// Sent for one buyer of three seats, in order.
    pub(super) statements: &'static [&'static str],
    /// Over all cells.
    pub(super) double_sales: u64,
    pub(super) cells: Vec<CellReport>,
}

#[derive(Clone, Serialize)]
pub(super) struct CellReport {
    pub(super) seats: u32,
    pub(super) shape: Shape,
    #[serde(skip)]
    pub(super) shape_name: String,
    pub(super) buyers: u32,
    pub(super) rounds: u32,
    #[serde(flatten)]
    pub(super) figures: Figures,
    #[serde(flatten)]
    pub(super) judged: Judged,
}

impl StrategyReport {
    /// Sums the requests of all of its cells.
    pub(super) fn requests(&self) -> u64 {
        self.cells.iter().map(|cell| cell.figures.requests).sum()
    }

    fn faults(&self) -> Vec<String> {
        let cells = self.cells.iter().map(|cell| {
            let name = format!("{}, {} buyers", cell.shape_name, cell.buyers);
            (name, cell.judged.clone())
        });
        faults(self.name, self.promise, &cells.collect::<Vec<_>>())
    }
}

impl RaceReport {
    pub(super) fn new(
        args: &RaceArgs,
        servers: Vec<String>,
        (strategies, stopped): (Vec<StrategyReport>, Vec<Scene>),
    ) -> Self {
        let of_scenes = stopped.iter().filter_map(fault_of);
        let of_cells = strategies.iter().flat_map(StrategyReport::faults);
        Self {
            command: command(args),
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            servers,
            faults: of_cells.chain(of_scenes).collect(),
            strategies,
            stopped,
        }
    }

    /// Returns the names of all shapes that were raced, in the order of the race.
    pub(super) fn shapes(&self) -> Vec<&str> {
        let mut shapes: Vec<&str> = Vec::new();
        for cell in self.cells().map(|(_, cell)| cell) {
            if !shapes.contains(&cell.shape_name.as_str()) {
                shapes.push(&cell.shape_name);
            }
        }
        shapes
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = (&StrategyReport, &CellReport)> {
        let of = |strategy| move |cell| (strategy, cell);
        self.strategies
            .iter()
            .flat_map(move |strategy| strategy.cells.iter().map(of(strategy)))
    }

    /// Finds the strategies with this promise, and sums their double sales and their requests.
    pub(super) fn of_promise(&self, promise: Promise) -> (Vec<&StrategyReport>, u64, u64) {
        let all = self.strategies.iter();
        let all: Vec<_> = all.filter(|one| one.promise == promise).collect();
        let double_sales = all.iter().map(|one| one.double_sales).sum();
        let requests = all.iter().map(|one| one.requests()).sum();
        (all, double_sales, requests)
    }

    /// Builds the rows of one shape, those of equally many buyers together.
    pub(super) fn rows(&self, shape: &str) -> Vec<[String; 9]> {
        let of_shape = self.cells().filter(|(_, cell)| cell.shape_name == shape);
        let mut cells: Vec<_> = of_shape.collect();
        cells.sort_by_key(|(_, cell)| cell.buyers);
        cells.into_iter().map(row).collect()
    }

    /// Formats the report for a terminal: a table for each shape, and violations.
    pub(super) fn text(&self) -> String {
        let mut lines = Vec::new();
        for shape in self.shapes() {
            lines.push(format!("{shape}, wanted by every buyer of a round"));
            lines.push(table(HEADER, self.rows(shape), &[1]));
        }
        let (machine, servers) = (&self.machine, self.servers.join("; "));
        let (cores, processor) = (machine.cores, &machine.processor);
        lines.push(format!("{cores} cores, {processor}; {servers}"));
        lines.push(
            "Latencies from a buyer's request to the answer, a refusal too. Figures of one run on \
             one machine: only their ratios mean something."
                .to_owned(),
        );
        lines.extend(self.stopped.iter().map(sentence));
        lines.extend(self.faults.iter().map(|fault| format!("VIOLATION {fault}")));
        if self.faults.is_empty() {
            lines.push(self.verdict());
        }
        lines.join("\n")
    }

    /// Describes the result of a race without faults in a sentence.
    pub(super) fn verdict(&self) -> String {
        let broken = self.of_promise(Promise::Broken).0.into_iter();
        let broken = broken.map(|one| {
            let (name, count) = (one.name, number(one.double_sales));
            format!("{name} sold units twice {count} times, as it must without guards")
        });
        let mut parts: Vec<String> = broken.collect();
        let (_, _, others) = self.of_promise(Promise::SoldOnce);
        if others > 0 {
            parts.push(format!(
                "no other strategy sold a unit twice in {} requests while every buyer went on, and the \
                 auditor agrees",
                number(others)
            ));
        }
        parts.join("; ")
    }
}

pub(super) const HEADER: [&str; 9] = [
    "buyers",
    "strategy",
    "winners",
    "double sales",
    "refused",
    "errors",
    "p50 ms",
    "p99 ms",
    "answers/s",
];

fn row((strategy, cell): (&StrategyReport, &CellReport)) -> [String; 9] {
    let figures = &cell.figures;
    let sum = |counts: &BTreeMap<String, u64>| counts.values().sum::<u64>();
    [
        cell.buyers.to_string(),
        strategy.name.to_owned(),
        format!("{} in {}", figures.winners, cell.rounds),
        cell.judged.double_sales.to_string(),
        sum(&figures.refused).to_string(),
        kinds(&figures.errors),
        millis(figures.p50_us),
        millis(figures.p99_us),
        figures.answers_per_s.to_string(),
    ]
}

/// Describes in a sentence how a scene ended.
pub(super) fn sentence(scene: &Scene) -> String {
    let name = scene.strategy;
    match scene.refused {
        None => format!("{name}: a holder stopped past its lease sold the seat a second time"),
        Some(why) => format!("{name}: a holder stopped past its lease was refused ({why})"),
    }
}

/// Finds the fault of a scene: without guards the seat must be sold twice, with them it must not.
fn fault_of(scene: &Scene) -> Option<String> {
    let name = scene.strategy;
    match (scene.guards, scene.sold_twice) {
        (Guards::None, false) => Some(format!(
            "{name}: the holder that was stopped sold nothing, so the scene proves nothing"
        )),
        (Guards::KeyAndFence, true) => Some(format!(
            "{name}: a holder that was stopped sold the seat again"
        )),
        (Guards::None, true) | (Guards::KeyAndFence, false) => None,
    }
}

/// Formats the command with its options, without addresses: those may hold passwords.
fn command(args: &RaceArgs) -> String {
    let numbers = |numbers: &[u32]| {
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        numbers.join(",")
    };
    let mut command = format!(
        "soldonce lab race --strategies {} --buyers {} --seats {} --rounds {} --connections {}",
        args.strategies.join(","),
        numbers(&args.buyers),
        numbers(&args.seats),
        args.rounds,
        args.connections,
    );
    let named = [
        (args.database_url.is_some(), " --database-url .."),
        (args.redis_url.is_some(), " --redis-url .."),
        (!args.redlock_urls.is_empty(), " --redlock-urls .."),
    ];
    for (_, option) in named.iter().filter(|(is_named, _)| *is_named) {
        command.push_str(option);
    }
    command
}
