//! What the storms beside each other came to: medians over the runs, ratios within each run, goals.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::StormArgs;
use super::super::report::StormReport;
use super::Run;
use super::contender::{ALL, Contender, RIVAL, SECOND_RIVAL};
use crate::bench::{Bound, Verdict, median};
use crate::load::{LatencyUs, LoadError, LoadReport};
use crate::race::Machine;

/// What `GigaScale`'s article tells of its own machine.
const ARTICLE: Article = Article {
    rate_per_s: 572,
    latency_avg_us: 144_000,
};

/// P10, in thousandths: so many times the rate of the peer that takes locks, and so many times lower
/// an average latency.
const RATE_WANTED: u64 = 20_000;
const LATENCY_WANTED: u64 = 15_000;

/// One turn of a contender.
pub(super) struct Measured {
    /// What it calls itself and its settings.
    pub(super) setting: String,
    pub(super) warm_up: StormReport,
    pub(super) storm: StormReport,
}

/// Finished storms.
#[derive(Serialize)]
pub(super) struct PeerReport {
    pub(super) users: u32,
    pub(super) seconds: u64,
    pub(super) seats: u32,
    pub(super) runs: u32,
    version: &'static str,
    pub(super) machine: Machine,
    /// What stood under all of them.
    pub(super) services: Vec<String>,
    pub(super) article: Article,
    pub(super) contenders: Vec<Figures>,
    pub(super) goals: Vec<Verdict>,
    /// What must not be.
    pub(super) faults: Vec<String>,
}

/// Figures that were published; of another machine, so that no ratio to them means anything.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Article {
    pub(super) rate_per_s: u64,
    pub(super) latency_avg_us: u64,
}

/// One contender over all runs.
#[derive(Serialize)]
pub(super) struct Figures {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) setting: String,
    /// Medians, each figure for itself.
    pub(super) rate_per_s: u64,
    pub(super) latency_us: LatencyUs,
    /// Each run's rate, in order.
    rates_per_s: Vec<u64>,
    /// Its rate / that of the peer that takes locks, in the same run, in thousandths, median.
    pub(super) rate_times_permille: u64,
    /// The average latency of that peer / its own, likewise.
    pub(super) latency_times_permille: u64,
    /// Of each run.
    pub(super) winners: Vec<u64>,
    /// Sums over all runs.
    pub(super) sent: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) errors: BTreeMap<LoadError, u64>,
}

impl PeerReport {
    pub(super) fn new(args: &StormArgs, services: Vec<String>, runs: &[Run]) -> Self {
        let contenders: Vec<_> = ALL.iter().map(|one| Figures::new(runs, *one)).collect();
        let products = ALL.into_iter().filter(|one| one.is_product());
        let pairs = products.flat_map(|one| [RIVAL, SECOND_RIVAL].map(|rival| (one, rival)));
        Self {
            users: args.size.users,
            seconds: args.size.seconds,
            seats: args.size.seats,
            runs: args.runs,
            version: env!("CARGO_PKG_VERSION"),
            machine: Machine::here(),
            services,
            article: ARTICLE,
            goals: pairs.flat_map(|pair| goals(runs, pair)).collect(),
            contenders,
            faults: faults(runs),
        }
    }
}

impl Figures {
    fn new(runs: &[Run], contender: Contender) -> Self {
        let own: Vec<&Measured> = of(runs, contender).collect();
        let loads: Vec<&LoadReport> = own.iter().map(|one| &one.storm.load).collect();
        let middle = |figure: fn(&LoadReport) -> u64| middle_of(loads.iter().map(|l| figure(l)));
        let (rate_times_permille, latency_times_permille) = times(runs, (contender, RIVAL));
        let first = own.first();
        Self {
            name: contender.name(),
            about: contender.about(),
            setting: first.map(|one| one.setting.clone()).unwrap_or_default(),
            rate_per_s: middle(|load| load.rate_per_s),
            latency_us: LatencyUs {
                avg: middle(|load| load.latency_us.avg),
                p50: middle(|load| load.latency_us.p50),
                p90: middle(|load| load.latency_us.p90),
                p99: middle(|load| load.latency_us.p99),
                p99_9: middle(|load| load.latency_us.p99_9),
                max: middle(|load| load.latency_us.max),
            },
            rates_per_s: loads.iter().map(|load| load.rate_per_s).collect(),
            rate_times_permille,
            latency_times_permille,
            winners: own.iter().map(|one| one.storm.winners).collect(),
            sent: loads.iter().map(|load| load.sent).sum(),
            statuses: sums(loads.iter().map(|load| &load.statuses)),
            errors: sums(loads.iter().map(|load| &load.errors)),
        }
    }
}

fn goals(runs: &[Run], (own, rival): (Contender, Contender)) -> [Verdict; 2] {
    let goal = |what: &str, measured, wanted| {
        let what = format!("{} / {}: {what}", own.name(), rival.name());
        Verdict::new(("P10", what), measured, Bound::AtLeast, (wanted, wanted))
    };
    let (rate, latency) = times(runs, (own, rival));
    [
        goal("times the rate", rate, RATE_WANTED),
        goal("times lower latency", latency, LATENCY_WANTED),
    ]
}

/// How many times as many answers a second as the rival, and how many times lower an average latency:
/// medians of the ratios within each run, in thousandths.
fn times(runs: &[Run], (own, rival): (Contender, Contender)) -> (u64, u64) {
    let times = |figure: fn(&LoadReport, &LoadReport) -> u64| {
        let pairs = of(runs, own).zip(of(runs, rival));
        middle_of(pairs.map(|(own, rival)| figure(&own.storm.load, &rival.storm.load)))
    };
    (
        times(|own, rival| permille(own.rate_per_s, rival.rate_per_s)),
        times(|own, rival| permille(rival.latency_us.avg, own.latency_us.avg)),
    )
}

/// What any storm, a warm-up too, found that must not be.
fn faults(runs: &[Run]) -> Vec<String> {
    let turns = runs.iter().flatten();
    let storms = turns.flat_map(|(contender, one)| {
        [&one.warm_up, &one.storm].map(|storm| (contender.name(), storm))
    });
    let faults = storms.flat_map(|(name, storm)| {
        let violations = storm.violations.iter();
        violations.map(move |violation| format!("{name}: {violation}"))
    });
    faults.collect()
}

/// The turns of one contender, in the order of the runs.
fn of(runs: &[Run], contender: Contender) -> impl Iterator<Item = &Measured> {
    let all = runs.iter().flatten();
    all.filter(move |(found, _)| *found == contender)
        .map(|(_, measured)| measured)
}

fn permille(own: u64, other: u64) -> u64 {
    own.saturating_mul(1_000) / other.max(1)
}

fn middle_of(values: impl Iterator<Item = u64>) -> u64 {
    median(values.collect()).unwrap_or_default()
}

fn sums<'a, K: Ord + Copy + 'a>(
    counts: impl Iterator<Item = &'a BTreeMap<K, u64>>,
) -> BTreeMap<K, u64> {
    let mut sums = BTreeMap::new();
    for (key, count) in counts.flatten() {
        *sums.entry(*key).or_default() += count;
    }
    sums
}
