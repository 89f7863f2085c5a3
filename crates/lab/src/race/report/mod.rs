//! What a race found, as it is printed and kept.

mod machine;

use serde::Serialize;

use super::RaceArgs;
use super::judge::{Judged, Promise, faults};
use super::plan::Shape;
use super::run::{Performance, Raced};
use super::tally::Figures;
use super::textbook::{Guards, Scene};

pub(crate) use self::machine::Machine;

/// A finished race.
#[derive(Serialize)]
pub(super) struct RaceReport {
    /// The command that repeats it.
    pub(super) command: String,
    pub(super) version: &'static str,
    pub(super) machine: Machine,
    /// What the servers say of themselves.
    pub(super) servers: Vec<String>,
    pub(super) strategies: Vec<StrategyReport>,
    /// What became of the holder of a lease that was stopped for longer than it.
    pub(super) stopped: Vec<Scene>,
    /// What must not be; empty when every strategy did as it promises.
    pub(super) faults: Vec<String>,
}

/// One strategy over all of its cells.
#[derive(Serialize)]
pub(super) struct StrategyReport {
    pub(super) name: &'static str,
    pub(super) promise: Promise,
    pub(super) mechanism: &'static str,
    pub(super) why: &'static str,
    /// Sent for one buyer of three seats, in sequence.
    pub(super) statements: &'static [&'static str],
    /// Over all cells.
    pub(super) double_sales: u64,
    pub(super) cells: Vec<CellReport>,
}

/// One cell.
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

impl CellReport {
    fn new(raced: &Raced) -> Self {
        Self {
            seats: raced.cell.seats,
            shape: raced.cell.shape,
            shape_name: raced.cell.shape_name(),
            buyers: raced.cell.buyers,
            rounds: raced.rounds,
            figures: raced.figures.clone(),
            judged: raced.judged.clone(),
        }
    }
}

impl RaceReport {
    pub(super) fn new(
        args: &RaceArgs,
        servers: Vec<String>,
        (raced, stopped): (&[Performance], Vec<Scene>),
    ) -> Self {
        let mut wrong: Vec<String> = stopped.iter().filter_map(fault_of).collect();
        let strategies = raced.iter().map(|performance| {
            let Performance {
                strategy,
                statements,
                cells,
            } = performance;
            let judged: Vec<(String, Judged)> = cells
                .iter()
                .map(|raced| {
                    let name = raced.cell.shape_name();
                    let cell = format!("{name}, {} buyers", raced.cell.buyers);
                    (cell, raced.judged.clone())
                })
                .collect();
            wrong.extend(faults(strategy.name, strategy.promise, &judged));
            StrategyReport {
                name: strategy.name,
                promise: strategy.promise,
                mechanism: strategy.mechanism,
                why: strategy.why,
                statements,
                double_sales: judged.iter().map(|(_, judged)| judged.double_sales).sum(),
                cells: cells.iter().map(CellReport::new).collect(),
            }
        });
        Self {
            strategies: strategies.collect(),
            command: command(args),
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            servers,
            stopped,
            faults: wrong,
        }
    }

    /// Every shape that was raced, by its name, in the sequence of the race.
    pub(super) fn shapes(&self) -> Vec<&str> {
        let mut shapes: Vec<&str> = Vec::new();
        for cell in self.cells().map(|(_, cell)| cell) {
            if !shapes.contains(&cell.shape_name.as_str()) {
                shapes.push(&cell.shape_name);
            }
        }
        shapes
    }

    /// Every cell with its strategy.
    pub(super) fn cells(&self) -> impl Iterator<Item = (&StrategyReport, &CellReport)> {
        let of = |strategy| move |cell| (strategy, cell);
        self.strategies
            .iter()
            .flat_map(move |strategy| strategy.cells.iter().map(of(strategy)))
    }

    /// Requests over all cells of those strategies that promise something.
    pub(super) fn guarded_requests(&self) -> u64 {
        let guarded = |(strategy, _): &(&StrategyReport, _)| strategy.promise == Promise::SoldOnce;
        let cells = self.cells().filter(guarded);
        cells.map(|(_, cell)| cell.figures.requests).sum()
    }
}

/// What is wrong with a scene: without guards the seat must be sold twice, with them it must not.
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

/// The command with what was asked for; addresses are left out, they may hold passwords.
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
