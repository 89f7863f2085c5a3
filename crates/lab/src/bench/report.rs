//! Medians over the runs, ratios within each run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::BenchArgs;
use super::process::load_average;
use super::scenario::{Scenario, ceiling};
use crate::load::{LatencyUs, LoadError, LoadReport, Pace};

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
pub(super) struct BenchSetting {
    pub(super) connections: u32,
    pub(super) seconds: u64,
    /// In place of seconds.
    pub(super) requests: Option<u64>,
    /// Of the open loop; absent: closed.
    pub(super) rate_per_s: Option<u64>,
    pub(super) cores: usize,
    /// Of the machine in the minute before the first run.
    pub(super) load_average: String,
    pub(super) version: &'static str,
}

/// Medians and ratios of all runs at one pace.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(super) setting: BenchSetting,
    pub(super) scenarios: Vec<ScenarioSummary>,
}

#[derive(Debug, Serialize)]
pub(super) struct ScenarioSummary {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Median of the runs.
    pub(super) rate_per_s: u64,
    /// Each run's rate, in order.
    pub(super) rates_per_s: Vec<u64>,
    /// Rate / the ceiling's rate of the same run, in thousandths, median; absent without a ceiling.
    pub(super) ratio_permille: Option<u64>,
    /// Of the run with the median rate.
    pub(super) latency_us: LatencyUs,
    /// CPU time per request, median.
    pub(super) server_cpu_ns_per_request: Option<u64>,
    pub(super) generator_cpu_ns_per_request: Option<u64>,
    /// Sums over all runs.
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) errors: BTreeMap<LoadError, u64>,
    pub(super) missed: u64,
    /// Found by `verify` in the ledgers that the runs left; absent where there was none.
    pub(super) violations: Option<usize>,
    pub(super) as_expected: bool,
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
        avg: 0,
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
pub(crate) fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied()
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
}
