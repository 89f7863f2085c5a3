//! Memory and CPU time of a server under the load of `endure`.

use std::sync::PoisonError;

use serde::Serialize;

use super::LoadResult;
use super::cycle::Odd;
use crate::kit::{LoadReport, thousandths};
use crate::limits::{ENDURE_GROWTH_PERMILLE_MAX, ENDURE_WARM_SAMPLES};

/// Statuses that the load brings about. Which step has which is judged as it goes, but for the last of a connection.
const EXPECTED: [u16; 3] = [200, 201, 409];

/// The server at one moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sample {
    pub(super) second: u64,
    pub(super) resident_kib: u64,
    /// Of one core, since the sample before.
    pub(super) cpu_permille: u64,
}

/// A finished load.
#[derive(Debug, Serialize)]
pub(super) struct EnduranceReport {
    ledger: &'static str,
    samples: Vec<Sample>,
    /// Resident memory when the server was warm.
    warm_kib: u64,
    /// The most resident memory from then on.
    most_kib: u64,
    growth_permille: u64,
    cpu_permille: u64,
    is_flat: bool,
    #[serde(flatten)]
    load: LoadReport,
    pub(super) violations: Vec<String>,
}

impl EnduranceReport {
    pub(super) fn new(
        ledger: &'static str,
        (load, odd, samples): LoadResult,
        findings: usize,
    ) -> Self {
        let warm = samples.iter().skip(ENDURE_WARM_SAMPLES);
        let warm_kib = warm.clone().next().map_or(0, |sample| sample.resident_kib);
        let most_kib = warm.map(|sample| sample.resident_kib).max().unwrap_or(0);
        let growth_permille = (most_kib - warm_kib) * 1_000 / warm_kib.max(1);
        let all: u64 = samples.iter().map(|sample| sample.cpu_permille).sum();
        let cpu_permille = all / u64::try_from(samples.len()).unwrap_or(1).max(1);
        let violations = violations(&load, &odd, findings);
        Self {
            ledger,
            samples,
            warm_kib,
            most_kib,
            growth_permille,
            cpu_permille,
            is_flat: growth_permille <= ENDURE_GROWTH_PERMILLE_MAX,
            load,
            violations,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec!["    second  resident KiB  of a core".to_owned()];
        lines.extend(self.samples.iter().map(|one| {
            let cpu = thousandths(one.cpu_permille);
            format!("{:10}  {:12}  {cpu}", one.second, one.resident_kib)
        }));
        let (warm, most, growth) = (self.warm_kib, self.most_kib, self.growth_permille);
        let goal = if self.is_flat { "met" } else { "MISSED" };
        lines.push(format!(
            "{}: {} requests, {}/s, p99 {} us; {warm} KiB when warm, {most} at most: {growth} thousandths more, goal \
             {ENDURE_GROWTH_PERMILLE_MAX}: {goal}",
            self.ledger, self.load.sent, self.load.rate_per_s, self.load.latency_us.p99,
        ));
        let violations = self.violations.iter();
        lines.extend(violations.map(|violation| format!("VIOLATION: {violation}")));
        lines.join("\n")
    }
}

fn violations(load: &LoadReport, odd: &Odd, findings: usize) -> Vec<String> {
    let odd = odd.lock().unwrap_or_else(PoisonError::into_inner);
    let at_steps = odd.iter();
    let at_steps = at_steps
        .map(|((step, status), count)| format!("{count} answers of status {status} to {step:?}"));
    let found = (findings > 0).then(|| format!("verify has {findings} findings"));
    let missed = load.missed;
    let missed = (missed > 0).then(|| format!("{missed} planned requests were never sent"));
    let all = at_steps.chain(load.odd_answers(&EXPECTED));
    all.chain(missed).chain(found).collect()
}
