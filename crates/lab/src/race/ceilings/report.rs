//! What the ceilings came to: medians over the runs, ratios within each run, goals.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::super::RaceArgs;
use super::super::report::Machine;
use super::super::table::{kinds, millis, number};
use super::closed::Rate;
use super::strategy::Reached;
use super::{Counted, Run, raw_rates};
use crate::bench::{Bound, Verdict, thousandths};

/// A finished measurement.
#[derive(Serialize)]
pub(in super::super) struct CeilingsReport {
    seconds: u32,
    runs: u32,
    connections: usize,
    version: &'static str,
    machine: Machine,
    servers: Vec<String>,
    bare: Vec<Bare>,
    strategies: Vec<Figures>,
    goals: Vec<Verdict>,
    /// What must not be.
    pub(in super::super) faults: Vec<String>,
}

/// A ceiling.
#[derive(Serialize)]
struct Bare {
    name: &'static str,
    about: &'static str,
    #[serde(skip)]
    counted: Counted,
    per_s: u64,
    p99_us: u64,
    failed: BTreeMap<String, u64>,
}

/// What a strategy reached. Rates and latencies are medians.
#[derive(Serialize)]
struct Figures {
    name: &'static str,
    holds_per_s: u64,
    holds_p99_us: u64,
    /// Of the bare batch of the same run, in thousandths.
    holds_of_batch_permille: u64,
    confirms_per_s: u64,
    refusals_per_s: u64,
    refusals_p99_us: u64,
    /// Over all runs and loads.
    failed: BTreeMap<String, u64>,
}

impl CeilingsReport {
    pub(super) fn new(args: &RaceArgs, servers: Vec<String>, runs: &[Run]) -> Self {
        let names = runs.first().map(|run| &run.strategies);
        let names: Vec<&'static str> = names.into_iter().flatten().map(|(name, _)| *name).collect();
        Self {
            seconds: args.seconds,
            runs: args.runs,
            connections: args.connections,
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            servers,
            bare: bare(runs),
            strategies: names.iter().map(|name| figures(runs, name)).collect(),
            goals: goals(runs, &names),
            faults: names
                .iter()
                .flat_map(|name| faults(runs, name))
                .chain(sold_twice(runs))
                .collect(),
        }
    }

    /// The report for a terminal.
    pub(in super::super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header([
            "one event, 64 buyers",
            "holds/s",
            "/ batch",
            "p99 ms",
            "confirms/s",
            "refusals/s",
            "p99 ms",
            "failed",
        ]);
        let none = || "-".to_owned();
        for one in &self.bare {
            let stored = Some(one).filter(|one| one.counted == Counted::Stored);
            let refused = Some(one).filter(|one| one.counted == Counted::Refused);
            table.add_row([
                one.name.to_owned(),
                stored.map_or_else(none, |one| number(one.per_s)),
                none(),
                stored.map_or_else(none, |one| millis(one.p99_us)),
                none(),
                refused.map_or_else(none, |one| number(one.per_s)),
                refused.map_or_else(none, |one| millis(one.p99_us)),
                kinds(&one.failed),
            ]);
        }
        for one in &self.strategies {
            table.add_row([
                one.name.to_owned(),
                number(one.holds_per_s),
                thousandths(one.holds_of_batch_permille),
                millis(one.holds_p99_us),
                number(one.confirms_per_s),
                number(one.refusals_per_s),
                millis(one.refusals_p99_us),
                kinds(&one.failed),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let abouts = self.bare.iter();
        let abouts = abouts.map(|one| format!("{}: {}", one.name, one.about));
        let setting = format!(
            "medians of {} runs of {} s, {} connections; {} cores, {}; {}",
            self.runs,
            self.seconds,
            self.connections,
            self.machine.cores,
            self.machine.processor,
            self.servers.join("; ")
        );
        let mut lines = vec![table.to_string(), setting];
        lines.extend(abouts);
        if cfg!(debug_assertions) {
            lines.push("A debug build: the figures say little.".to_owned());
        }
        lines.extend(self.goals.iter().map(Verdict::line));
        lines.extend(self.faults.iter().map(|fault| format!("VIOLATION {fault}")));
        lines.join("\n") + "\n"
    }
}

fn goals(runs: &[Run], names: &[&'static str]) -> Vec<Verdict> {
    let holds = |name: &str| rates(runs, name, |reached| reached.holds.per_s);
    let queue = holds("queue");
    let mut goals = Vec::new();
    if names.contains(&"queue") && names.contains(&"pessimistic") {
        let ratio = median(permille(&queue, &holds("pessimistic")));
        let what = "queue / pessimistic, holds of one event";
        goals.push(goal("P6", what, ratio, 5_000));
    }
    if names.contains(&"queue") {
        let ratio = median(permille(&queue, &per_s(runs, |run| &run.batches)));
        let what = "queue / bare batch, holds of one event";
        goals.push(goal("P7", what, ratio, 500));
    }
    let embedded = per_s(runs, |run| &run.refusals.embedded);
    let shared = per_s(runs, |run| &run.refusals.shared);
    let ratio = median(permille(&shared, &embedded));
    let what = "refusals of the engine behind the Redis shield / embedded";
    goals.push(goal("P8", what, ratio, 600));
    goals
}

fn goal(id: &'static str, what: &str, ratio: u64, wanted: u64) -> Verdict {
    Verdict::new(
        (id, what.to_owned()),
        ratio,
        Bound::AtLeast,
        (wanted, wanted),
    )
}

fn per_s(runs: &[Run], of: impl Fn(&Run) -> &Rate) -> Vec<u64> {
    runs.iter().map(|run| of(run).per_s).collect()
}

fn bare(runs: &[Run]) -> Vec<Bare> {
    raw_rates()
        .into_iter()
        .map(|(name, about, counted, of)| {
            let rates: Vec<&Rate> = runs.iter().map(of).collect();
            Bare {
                name,
                about,
                counted,
                per_s: median(rates.iter().map(|rate| rate.per_s).collect()),
                p99_us: median(rates.iter().map(|rate| rate.p99_us).collect()),
                failed: sums(&rates),
            }
        })
        .collect()
}

fn figures(runs: &[Run], name: &'static str) -> Figures {
    let middle = |figure: fn(&Reached) -> u64| median(rates(runs, name, figure));
    let batches: Vec<u64> = runs.iter().map(|run| run.batches.per_s).collect();
    let holds = rates(runs, name, |reached| reached.holds.per_s);
    let all = of(runs, name).flat_map(|one| [&one.holds, &one.confirms, &one.refusals]);
    Figures {
        name,
        holds_per_s: median(holds.clone()),
        holds_p99_us: middle(|reached| reached.holds.p99_us),
        holds_of_batch_permille: median(permille(&holds, &batches)),
        confirms_per_s: middle(|reached| reached.confirms.per_s),
        refusals_per_s: middle(|reached| reached.refusals.per_s),
        refusals_p99_us: middle(|reached| reached.refusals.p99_us),
        failed: sums(&all.collect::<Vec<_>>()),
    }
}

/// A seat that an engine gave to somebody else, though it was taken.
fn sold_twice(runs: &[Run]) -> Option<String> {
    let rates = runs
        .iter()
        .flat_map(|run| [&run.refusals.embedded, &run.refusals.shared]);
    let twice = rates.filter_map(|rate| rate.failed.get("sold twice"));
    let twice: u64 = twice.sum();
    (twice > 0).then(|| format!("engine: the taken seat was sold {twice} more times"))
}

fn faults(runs: &[Run], name: &str) -> Vec<String> {
    let violations: usize = of(runs, name).map(|one| one.violations).sum();
    let twice = of(runs, name).filter_map(|one| one.refusals.failed.get("sold twice"));
    let twice: u64 = twice.sum();
    let mut faults = Vec::new();
    if violations > 0 {
        faults.push(format!("{name}: the auditor found {violations}"));
    }
    if twice > 0 {
        faults.push(format!("{name}: the hot seat was sold {twice} more times"));
    }
    faults
}

/// The runs of one strategy.
fn of<'a>(runs: &'a [Run], name: &'a str) -> impl Iterator<Item = &'a Reached> {
    let all = runs.iter().flat_map(|run| &run.strategies);
    all.filter(move |(found, _)| *found == name)
        .map(|(_, reached)| reached)
}

fn rates(runs: &[Run], name: &str, figure: fn(&Reached) -> u64) -> Vec<u64> {
    of(runs, name).map(figure).collect()
}

/// Each figure beside that of the same run, in thousandths.
fn permille(own: &[u64], other: &[u64]) -> Vec<u64> {
    let pairs = own.iter().zip(other);
    pairs
        .map(|(own, other)| own * 1_000 / (*other).max(1))
        .collect()
}

fn sums(rates: &[&Rate]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (kind, count) in rates.iter().flat_map(|rate| &rate.failed) {
        *sums.entry(kind.clone()).or_default() += count;
    }
    sums
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_a_run_and_medians_over_all() {
        let ratios = permille(&[500, 90, 0], &[1_000, 100, 0]);
        assert_eq!(ratios, [500, 900, 0]);
        assert_eq!(median(ratios), 500);
        assert_eq!(median(Vec::new()), 0);
    }
}
