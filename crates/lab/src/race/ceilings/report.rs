//! The report of the ceilings: medians over the runs, ratios within each run, goals.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::RaceArgs;
use super::strategy::StrategyRun;
use super::{Rate, Run};
use crate::kit::{
    Bound, Machine, Verdict, add_counts, closing_lines, kinds, median, median_ratio, millis,
    number, table, thousandths,
};

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
    /// Empty when no seat was sold twice.
    pub(in super::super) faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Stored,
    Refused,
}

/// A ceiling: its name, what it is, what it counts, its rate in a run.
type RawRate = (&'static str, &'static str, Counted, fn(&Run) -> &Rate);

const RAW_RATES: [RawRate; 6] = [
    (
        "bare insert",
        "one narrow row, one commit, by as many connections",
        Counted::Stored,
        |run| &run.inserts,
    ),
    (
        "bare batch",
        "the rows of a hold without guards or rules, as many holds a commit as wait",
        Counted::Stored,
        |run| &run.batches,
    ),
    (
        "bare script",
        "one script with SET NX PX on Redis, over one connection",
        Counted::Stored,
        |run| &run.scripts,
    ),
    (
        "engine, embedded",
        "a hold of a taken seat, refused by the engine on SQLite with its shield in process",
        Counted::Refused,
        |run| &run.refusals.embedded,
    ),
    (
        "engine, shared",
        "the same on PostgreSQL with the Redis shield; another server made the hold, and this one knows by then",
        Counted::Refused,
        |run| &run.refusals.shared,
    ),
    (
        "shield alone",
        "a taken seat, refused by the Redis shield itself, over one connection",
        Counted::Refused,
        |run| &run.refusals.script,
    ),
];

/// The figures of a ceiling.
#[derive(Serialize)]
struct Bare {
    name: &'static str,
    about: &'static str,
    #[serde(skip)]
    counted: Counted,
    #[serde(flatten)]
    rate: Rate,
}

/// The figures of a strategy. Rates and latencies are medians.
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

const HEADER: [&str; 8] = [
    "one event, 64 buyers",
    "holds/s",
    "/ batch",
    "p99 ms",
    "confirms/s",
    "refusals/s",
    "p99 ms",
    "failed",
];

impl CeilingsReport {
    pub(super) fn new(args: &RaceArgs, servers: Vec<String>, runs: &[Run]) -> Self {
        let names = runs.first().map(|run| &run.strategies);
        let names: Vec<&'static str> = names.into_iter().flatten().map(|(name, _)| *name).collect();
        let of_strategies = names.iter().flat_map(|name| faults(runs, name));
        Self {
            seconds: args.seconds,
            runs: args.runs,
            connections: args.connections,
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            servers,
            bare: RAW_RATES.iter().map(|raw| bare(runs, *raw)).collect(),
            strategies: names.iter().map(|name| figures(runs, name)).collect(),
            goals: goals(runs),
            faults: of_strategies.chain(sold_twice(runs)).collect(),
        }
    }

    /// Formats the report for a terminal.
    pub(in super::super) fn text(&self) -> String {
        let bare = self.bare.iter().map(Bare::row);
        let rows = bare.chain(self.strategies.iter().map(Figures::row));
        let setting = format!(
            "medians of {} runs of {} s, {} connections; {} cores, {}; {}",
            self.runs,
            self.seconds,
            self.connections,
            self.machine.cores,
            self.machine.processor,
            self.servers.join("; ")
        );
        let mut lines = vec![table(HEADER, rows, &[0]), setting];
        let abouts = self.bare.iter();
        lines.extend(abouts.map(|one| format!("{}: {}", one.name, one.about)));
        lines.extend(closing_lines(&self.goals, &self.faults));
        lines.join("\n")
    }
}

impl Bare {
    fn row(&self) -> [String; 8] {
        let none = || "-".to_owned();
        let rate = [number(self.rate.per_s), millis(self.rate.p99_us)];
        let none_of = [none(), none()];
        let ([holds, holds_p99], [refusals, refusals_p99]) = match self.counted {
            Counted::Stored => (rate, none_of),
            Counted::Refused => (none_of, rate),
        };
        [
            self.name.to_owned(),
            holds,
            none(),
            holds_p99,
            none(),
            refusals,
            refusals_p99,
            kinds(&self.rate.failed),
        ]
    }
}

impl Figures {
    fn row(&self) -> [String; 8] {
        [
            self.name.to_owned(),
            number(self.holds_per_s),
            thousandths(self.holds_of_batch_permille),
            millis(self.holds_p99_us),
            number(self.confirms_per_s),
            number(self.refusals_per_s),
            millis(self.refusals_p99_us),
            kinds(&self.failed),
        ]
    }
}

fn goals(runs: &[Run]) -> Vec<Verdict> {
    let holds = |name| of(runs, name).map(|one| one.holds.per_s);
    let per_s = |rate: fn(&Run) -> &Rate| runs.iter().map(move |run| rate(run).per_s);
    let shared = per_s(|run| &run.refusals.shared);
    let goals = [
        (
            ("P6", "queue / pessimistic, holds of one event"),
            median_ratio(holds("queue"), holds("pessimistic")),
            5_000,
        ),
        (
            ("P7", "queue / bare batch, holds of one event"),
            median_ratio(holds("queue"), per_s(|run| &run.batches)),
            500,
        ),
        (
            (
                "P8",
                "refusals of the engine that heard of the hold / embedded",
            ),
            median_ratio(shared, per_s(|run| &run.refusals.embedded)),
            600,
        ),
    ];
    let measured = goals.into_iter().filter_map(|(name, ratio, goal)| {
        Some(Verdict::single(name, ratio?, Bound::AtLeast, goal))
    });
    measured.collect()
}

fn bare(runs: &[Run], (name, about, counted, rate): RawRate) -> Bare {
    let all = || runs.iter().map(rate);
    let rate = Rate {
        per_s: median(all().map(|rate| rate.per_s)).unwrap_or_default(),
        p99_us: median(all().map(|rate| rate.p99_us)).unwrap_or_default(),
        failed: add_counts(all().map(|rate| &rate.failed)),
    };
    Bare {
        name,
        about,
        counted,
        rate,
    }
}

fn figures(runs: &[Run], name: &'static str) -> Figures {
    let middle = |figure: fn(&StrategyRun) -> u64| median(of(runs, name).map(figure));
    let middle = |figure| middle(figure).unwrap_or_default();
    let holds = of(runs, name).map(|one| one.holds.per_s);
    let batches = runs.iter().map(|run| run.batches.per_s);
    let all = of(runs, name).flat_map(|one| [&one.holds, &one.confirms, &one.refusals]);
    Figures {
        name,
        holds_per_s: middle(|one| one.holds.per_s),
        holds_p99_us: middle(|one| one.holds.p99_us),
        holds_of_batch_permille: median_ratio(holds, batches).unwrap_or_default(),
        confirms_per_s: middle(|one| one.confirms.per_s),
        refusals_per_s: middle(|one| one.refusals.per_s),
        refusals_p99_us: middle(|one| one.refusals.p99_us),
        failed: add_counts(all.map(|rate| &rate.failed)),
    }
}

/// Describes how often an engine gave a taken seat to another buyer; None if it never did.
fn sold_twice(runs: &[Run]) -> Option<String> {
    let engines = runs.iter();
    let engines = engines.flat_map(|run| [&run.refusals.embedded, &run.refusals.shared]);
    let twice = second_sales(engines);
    (twice > 0).then(|| format!("engine: the taken seat was sold {twice} more times"))
}

fn faults(runs: &[Run], name: &str) -> Vec<String> {
    let violations: usize = of(runs, name).map(|one| one.violations).sum();
    let twice = second_sales(of(runs, name).map(|one| &one.refusals));
    let unconfirmed = add_counts(of(runs, name).map(|one| &one.confirms.failed));
    let mut faults = Vec::new();
    if !unconfirmed.is_empty() {
        let kinds = kinds(&unconfirmed);
        faults.push(format!("{name}: winners could not confirm: {kinds}"));
    }
    if violations > 0 {
        faults.push(format!("{name}: the auditor found {violations}"));
    }
    if twice > 0 {
        faults.push(format!("{name}: the hot seat was sold {twice} more times"));
    }
    faults
}

fn second_sales<'a>(refusals: impl Iterator<Item = &'a Rate>) -> u64 {
    let twice = refusals.filter_map(|rate| rate.failed.get("sold twice"));
    twice.sum()
}

fn of<'a>(runs: &'a [Run], name: &'a str) -> impl Iterator<Item = &'a StrategyRun> {
    let all = runs.iter().flat_map(|run| &run.strategies);
    all.filter(move |(found, _)| *found == name)
        .map(|(_, reached)| reached)
}
