//! Medians over the runs, ratios within each run, as a table or JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::BenchArgs;
use super::process::load_average;
use super::scenario::{Scenario, ceiling};
use crate::lab::load::{LatencyUs, LoadError, LoadReport, Pace};

/// One run of one scenario.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) load: LoadReport,
    /// None when both share a process.
    pub(crate) server_cpu: Option<Duration>,
    pub(crate) generator_cpu: Option<Duration>,
    /// What `verify` found wrong in the ledger it left; None where there was none.
    pub(crate) violations: Option<usize>,
}

/// All runs so far, by scenario, in the order asked for.
pub(crate) struct BenchReport {
    setting: BenchSetting,
    scenarios: Vec<(&'static dyn Scenario, Vec<Measured>)>,
}

#[derive(Clone, Debug, Serialize)]
struct BenchSetting {
    connections: u32,
    seconds: u64,
    /// In place of seconds.
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
pub(crate) struct Summary {
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
    pub(crate) fn new(args: &BenchArgs, pace: Pace) -> Self {
        let rate_per_s = match pace {
            Pace::Closed => None,
            Pace::Open(rate) => Some(rate),
        };
        let setting = BenchSetting {
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

    fn runs_of(&self, name: &str) -> Option<&[Measured]> {
        let mut all = self.scenarios.iter();
        all.find(|(scenario, _)| scenario.name() == name)
            .map(|(_, runs)| runs.as_slice())
    }

    /// Every scenario that was measured.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &'static dyn Scenario> {
        self.scenarios.iter().map(|(scenario, _)| *scenario)
    }

    /// The median rate of a scenario, if it was measured.
    pub(crate) fn rate_of(&self, name: &str) -> Option<u64> {
        median(rates(self.runs_of(name)?))
    }

    /// What `figure` of a scenario is beside that of the ceiling in the same round, in thousandths,
    /// median.
    pub(crate) fn ratio_of(&self, name: &str, figure: fn(&LoadReport) -> u64) -> Option<u64> {
        let (own, ceiling) = (self.runs_of(name)?, self.runs_of(ceiling())?);
        let pairs = own.iter().zip(ceiling);
        median(
            pairs
                .map(|(own, ceiling)| figure(&own.load) * 1_000 / figure(&ceiling.load).max(1))
                .collect(),
        )
    }

    pub(crate) fn add(&mut self, scenario: &'static dyn Scenario, measured: Measured) {
        let known = self
            .scenarios
            .iter_mut()
            .find(|(of, _)| of.name() == scenario.name());
        match known {
            Some((_, runs)) => runs.push(measured),
            None => self.scenarios.push((scenario, vec![measured])),
        }
    }

    /// Whether every answer had a status that its scenario expects, and none was missing.
    pub(crate) fn is_as_expected(&self) -> bool {
        self.scenarios
            .iter()
            .all(|(scenario, runs)| as_expected(*scenario, runs))
    }

    pub(crate) fn summary(&self) -> Summary {
        let each = self.scenarios.iter().map(|(scenario, runs)| {
            let ratio_permille = self.ratio_of(scenario.name(), |load| load.rate_per_s);
            summarise(*scenario, runs, ratio_permille)
        });
        Summary {
            setting: self.setting.clone(),
            scenarios: each.collect(),
        }
    }

    pub(crate) fn table(&self) -> String {
        let summary = self.summary();
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header([
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
        ]);
        for scenario in &summary.scenarios {
            table.add_row(row(scenario));
        }
        for column in table.column_iter_mut().skip(1).take(10) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let setting = &self.setting;
        let pace = setting.rate_per_s.map_or("closed loop".to_owned(), |rate| {
            format!("open loop at {rate}/s, latency from the planned time")
        });
        let abouts = summary.scenarios.iter();
        let abouts: Vec<_> = abouts
            .map(|one| format!("{}: {}", one.name, one.about))
            .collect();
        format!(
            "{table}\n{} connections, {} s, {pace}, {} cores shared by server and generator, load \
             average {} before. Latencies in us; CPU in us per request.\n{}",
            setting.connections,
            setting.seconds,
            setting.cores,
            setting.load_average,
            abouts.join("\n"),
        )
    }
}

fn summarise(
    scenario: &dyn Scenario,
    runs: &[Measured],
    ratio_permille: Option<u64>,
) -> ScenarioSummary {
    let each = rates(runs);
    let middle = median(each.clone()).unwrap_or_default();
    let typical = runs.iter().find(|run| run.load.rate_per_s == middle);
    let zero = LatencyUs {
        p50: 0,
        p90: 0,
        p99: 0,
        p99_9: 0,
        max: 0,
    };
    let mut statuses = BTreeMap::new();
    let mut errors = BTreeMap::new();
    for run in runs {
        for (status, count) in &run.load.statuses {
            *statuses.entry(*status).or_default() += count;
        }
        for (error, count) in &run.load.errors {
            *errors.entry(*error).or_default() += count;
        }
    }
    ScenarioSummary {
        name: scenario.name(),
        about: scenario.about(),
        rate_per_s: middle,
        rates_per_s: each,
        ratio_permille,
        latency_us: typical.map_or(zero, |run| run.load.latency_us),
        server_cpu_ns_per_request: per_request(runs, |run| run.server_cpu),
        generator_cpu_ns_per_request: per_request(runs, |run| run.generator_cpu),
        statuses,
        errors,
        missed: runs.iter().map(|run| run.load.missed).sum(),
        violations: runs.iter().map(|run| run.violations).sum(),
        as_expected: as_expected(scenario, runs),
    }
}

fn as_expected(scenario: &dyn Scenario, runs: &[Measured]) -> bool {
    runs.iter().all(|run| {
        let load = &run.load;
        load.errors.is_empty()
            && load.statuses.keys().all(|s| scenario.expects().contains(s))
            && run.violations.unwrap_or_default() == 0
    })
}

fn rates(runs: &[Measured]) -> Vec<u64> {
    runs.iter().map(|run| run.load.rate_per_s).collect()
}

fn per_request(runs: &[Measured], cpu: impl Fn(&Measured) -> Option<Duration>) -> Option<u64> {
    let each = runs.iter().filter_map(|run| {
        let nanos = u64::try_from(cpu(run)?.as_nanos()).ok()?;
        Some(nanos / run.load.sent.max(1))
    });
    median(each.collect())
}

/// The middle one; of an even number the lower of the two. None of none.
pub(super) fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
}

fn row(scenario: &ScenarioSummary) -> Vec<String> {
    let lowest = scenario
        .rates_per_s
        .iter()
        .min()
        .copied()
        .unwrap_or_default();
    let highest = scenario
        .rates_per_s
        .iter()
        .max()
        .copied()
        .unwrap_or_default();
    let latency = scenario.latency_us;
    let mut cells = vec![
        scenario.name.to_owned(),
        scenario.rate_per_s.to_string(),
        format!("{lowest}..{highest}"),
        scenario.ratio_permille.map_or("-".to_owned(), thousandths),
    ];
    let latencies = [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.max,
    ];
    cells.extend(latencies.map(|micros| micros.to_string()));
    let cpu = [
        scenario.server_cpu_ns_per_request,
        scenario.generator_cpu_ns_per_request,
    ];
    cells.extend(cpu.map(|nanos| nanos.map_or("-".to_owned(), thousandths)));
    let statuses = scenario
        .statuses
        .iter()
        .map(|(status, count)| format!("{status}: {count}"));
    let errors = scenario
        .errors
        .iter()
        .map(|(error, count)| format!("{error:?}: {count}"));
    let missed = (scenario.missed > 0).then(|| format!("never sent: {}", scenario.missed));
    let refused = (!scenario.as_expected).then(|| "NOT AS EXPECTED".to_owned());
    let answers: Vec<_> = statuses
        .chain(errors)
        .chain(missed)
        .chain(refused)
        .collect();
    cells.push(answers.join("\n"));
    cells.push(
        scenario
            .violations
            .map_or("-".to_owned(), |found| found.to_string()),
    );
    cells
}

/// 1,234 thousandths as `1.234`.
pub(super) fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_a_value_that_occurred() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![9, 1]), Some(1));
        assert_eq!(median(vec![9, 1, 5]), Some(5));
    }

    #[test]
    fn thousandths_keep_their_zeros() {
        assert_eq!(thousandths(12_005), "12.005");
    }
}
