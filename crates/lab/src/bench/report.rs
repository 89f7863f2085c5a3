//! Medians over the runs, ratios within each run, goals.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::scenario::{CEILING, REFUSALS_KEYED, REFUSALS_SHARED, Scenario};
use super::{BenchArgs, OPEN};
use crate::kit::{
    Bound, LatencyUs, LoadError, LoadReport, Verdict, add_counts, list, load_average, median,
    median_ratio, table, thousandths,
};
use crate::load::{Pace, Transport};

/// One run of one scenario.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) load: LoadReport,
    /// CPU time. None when server and generator share a process.
    pub(super) server_cpu: Option<Duration>,
    pub(super) generator_cpu: Option<Duration>,
    /// What `verify` found wrong in the ledger it left; None where there was none.
    pub(super) violations: Option<usize>,
}

/// All runs at one pace so far, by scenario, in the order of the command line.
pub(super) struct BenchReport {
    setting: BenchSetting,
    scenarios: Vec<(&'static Scenario, Vec<Measured>)>,
}

#[derive(Clone, Debug, Serialize)]
struct BenchSetting {
    transport: Transport,
    connections: u32,
    seconds: u64,
    /// Requests, in place of seconds.
    requests: Option<u64>,
    /// Of the open loop; absent: closed.
    rate_per_s: Option<u64>,
    cores: usize,
    /// Of the machine in the minute before the first run.
    load_average: String,
    version: &'static str,
}

/// Medians and ratios of all runs at one pace.
#[derive(Debug, Serialize)]
struct Summary {
    setting: BenchSetting,
    scenarios: Vec<ScenarioSummary>,
}

#[derive(Debug, Serialize)]
struct ScenarioSummary {
    name: &'static str,
    about: &'static str,
    /// Median of the runs.
    rate_per_s: u64,
    /// Each run's rate, in order.
    rates_per_s: Vec<u64>,
    /// Rate / the ceiling's rate of the same run, in thousandths, median; absent without a ceiling.
    ratio_permille: Option<u64>,
    /// Of the run with the median rate.
    latency_us: LatencyUs,
    /// CPU time per request, median.
    server_cpu_ns_per_request: Option<u64>,
    generator_cpu_ns_per_request: Option<u64>,
    /// Sums over all runs.
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<LoadError, u64>,
    missed: u64,
    /// Found by `verify` in the ledgers that the runs left; absent where there was none.
    violations: Option<usize>,
    as_expected: bool,
}

impl BenchReport {
    pub(super) fn new(args: &BenchArgs, pace: Pace) -> Self {
        let rate_per_s = match pace {
            Pace::Closed => None,
            Pace::Open(rate) => Some(rate),
        };
        let setting = BenchSetting {
            transport: args.transport,
            connections: args.connections,
            seconds: args.seconds,
            requests: args.requests(),
            rate_per_s,
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load_average: load_average(),
            version: env!("CARGO_PKG_VERSION"),
        };
        Self {
            setting,
            scenarios: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, scenario: &'static Scenario, measured: Measured) {
        let mut all = self.scenarios.iter_mut();
        match all.find(|(of, _)| of.name == scenario.name) {
            Some((_, runs)) => runs.push(measured),
            None => self.scenarios.push((scenario, vec![measured])),
        }
    }

    fn runs_of(&self, name: &str) -> &[Measured] {
        let mut all = self.scenarios.iter();
        let found = all.find(|(scenario, _)| scenario.name == name);
        found.map_or(&[], |(_, runs)| runs)
    }

    /// Returns the median rate of a scenario; None if it was not measured.
    pub(super) fn rate_of(&self, name: &str) -> Option<u64> {
        median(self.figures(name, |load| load.rate_per_s))
    }

    fn figures(&self, name: &str, figure: fn(&LoadReport) -> u64) -> impl Iterator<Item = u64> {
        self.runs_of(name).iter().map(move |run| figure(&run.load))
    }

    /// Returns the median of a figure / that of the ceiling in the same round, in thousandths.
    fn ratio_of(&self, name: &str, figure: fn(&LoadReport) -> u64) -> Option<u64> {
        median_ratio(self.figures(name, figure), self.figures(CEILING, figure))
    }

    /// Tells whether all requests were sent and had an expected status, and `verify` found nothing.
    pub(super) fn is_as_expected(&self) -> bool {
        let mut all = self.scenarios.iter();
        let transport = self.setting.transport;
        all.all(|(scenario, runs)| as_expected(scenario, transport, runs))
    }

    fn summary(&self) -> Summary {
        let each = self.scenarios.iter();
        let each = each.map(|(scenario, runs)| ScenarioSummary {
            ratio_permille: self.ratio_of(scenario.name, |load| load.rate_per_s),
            ..summarise(scenario, self.setting.transport, runs)
        });
        Summary {
            setting: self.setting.clone(),
            scenarios: each.collect(),
        }
    }
}

fn summarise(scenario: &Scenario, transport: Transport, runs: &[Measured]) -> ScenarioSummary {
    let rates: Vec<u64> = runs.iter().map(|run| run.load.rate_per_s).collect();
    let rate_per_s = median(rates.clone()).unwrap_or_default();
    let mut typical = runs.iter().filter(|run| run.load.rate_per_s == rate_per_s);
    let latency_us = typical.next().map(|run| run.load.latency_us);
    ScenarioSummary {
        name: scenario.name,
        about: scenario.about,
        rate_per_s,
        rates_per_s: rates,
        ratio_permille: None,
        latency_us: latency_us.unwrap_or_default(),
        server_cpu_ns_per_request: per_request(runs, |run| run.server_cpu),
        generator_cpu_ns_per_request: per_request(runs, |run| run.generator_cpu),
        statuses: add_counts(runs.iter().map(|run| &run.load.statuses)),
        errors: add_counts(runs.iter().map(|run| &run.load.errors)),
        missed: runs.iter().map(|run| run.load.missed).sum(),
        violations: runs.iter().map(|run| run.violations).sum(),
        as_expected: as_expected(scenario, transport, runs),
    }
}

fn as_expected(scenario: &Scenario, transport: Transport, runs: &[Measured]) -> bool {
    let expects = scenario.expects.iter();
    let expects: Vec<u16> = expects.map(|status| transport.status(*status)).collect();
    runs.iter()
        .all(|run| run.load.is_answered_with(&expects) && run.violations.unwrap_or_default() == 0)
}

fn per_request(runs: &[Measured], cpu: fn(&Measured) -> Option<Duration>) -> Option<u64> {
    median(runs.iter().filter_map(|run| {
        let nanos = u64::try_from(cpu(run)?.as_nanos()).ok()?;
        Some(nanos / run.load.sent.max(1))
    }))
}

/// All results of one benchmark.
#[derive(Serialize)]
pub(super) struct Outcome {
    #[serde(flatten)]
    closed: Summary,
    open: Option<Summary>,
    goals: Vec<Verdict>,
}

impl Outcome {
    pub(super) fn new(closed: &BenchReport, open: Option<&BenchReport>) -> Self {
        let of_rate = |scenario: &&Scenario| {
            let (goal, name) = (scenario.goal(closed.setting.transport)?, scenario.name);
            let ratio = closed.ratio_of(name, |load| load.rate_per_s)?;
            let what = format!("{name} / echo, requests a second, closed loop");
            let name = (goal.id, what);
            Some(Verdict::new(name, ratio, Bound::AtLeast, goal.steps))
        };
        let measured = closed.scenarios.iter().map(|(scenario, _)| scenario);
        let mut goals: Vec<Verdict> = measured.filter_map(of_rate).collect();
        let rates = |name| closed.figures(name, |load| load.rate_per_s);
        if let Some(ratio) = median_ratio(rates(REFUSALS_KEYED), rates(REFUSALS_SHARED)) {
            let what = format!("{REFUSALS_KEYED} / {REFUSALS_SHARED}, requests a second");
            goals.push(Verdict::single(("P15", &what), ratio, Bound::AtLeast, 950));
        }
        if let Some(ratio) = open.and_then(|open| open.ratio_of(OPEN, |load| load.latency_us.p99)) {
            let what = format!("{OPEN} / echo, p99, open loop at half the peak of {OPEN}");
            goals.push(Verdict::single(("P4", &what), ratio, Bound::AtMost, 3_000));
        }
        Self {
            closed: closed.summary(),
            open: open.map(BenchReport::summary),
            goals,
        }
    }

    pub(super) fn text(&self) -> String {
        let goals: Vec<_> = self.goals.iter().map(Verdict::line).collect();
        let tables = [Some(&self.closed), self.open.as_ref()];
        let tables: Vec<_> = tables.into_iter().flatten().map(Summary::text).collect();
        format!("{}\n\n{}", tables.join("\n\n"), goals.join("\n"))
    }
}

const HEADER: [&str; 13] = [
    "scenario",
    "requests/s",
    "lowest..highest",
    "/ echo",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "max",
    "server CPU",
    "generator CPU",
    "answers",
    "violations",
];

impl Summary {
    /// Formats the summary as a table with its legend.
    fn text(&self) -> String {
        let setting = &self.setting;
        let pace = setting.rate_per_s.map_or("closed loop".to_owned(), |rate| {
            format!("open loop at {rate}/s, latency from the planned time")
        });
        let abouts = self.scenarios.iter();
        let abouts = abouts.map(|one| format!("{}: {}", one.name, one.about));
        let rows = self.scenarios.iter().map(ScenarioSummary::row);
        format!(
            "{}\n{} connections, {} s, {pace}, {} cores shared by server and generator, load \
             average {} before. Latencies in us; CPU in us per request.\n{}",
            table(HEADER, rows, &[0, 11, 12]),
            setting.connections,
            setting.seconds,
            setting.cores,
            setting.load_average,
            abouts.collect::<Vec<_>>().join("\n"),
        )
    }
}

impl ScenarioSummary {
    fn row(&self) -> [String; 13] {
        let rates = self.rates_per_s.iter();
        let (lowest, highest) = (rates.clone().min(), rates.max());
        let [lowest, highest] = [lowest, highest].map(|rate| rate.copied().unwrap_or_default());
        let ratio = |value: Option<u64>| value.map_or("-".to_owned(), thousandths);
        let latency = self.latency_us;
        [
            self.name.to_owned(),
            self.rate_per_s.to_string(),
            format!("{lowest}..{highest}"),
            ratio(self.ratio_permille),
            latency.p50.to_string(),
            latency.p90.to_string(),
            latency.p99.to_string(),
            latency.p99_9.to_string(),
            latency.max.to_string(),
            ratio(self.server_cpu_ns_per_request),
            ratio(self.generator_cpu_ns_per_request),
            self.answers(),
            self.violations
                .map_or("-".to_owned(), |found| found.to_string()),
        ]
    }

    fn answers(&self) -> String {
        let statuses = list(&self.statuses, |status, count| format!("{status}: {count}"));
        let errors = list(&self.errors, |error, count| format!("{error:?}: {count}"));
        let mut parts = vec![statuses, errors];
        if self.missed > 0 {
            parts.push(format!("never sent: {}", self.missed));
        }
        if !self.as_expected {
            parts.push("NOT AS EXPECTED".to_owned());
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n")
    }
}
