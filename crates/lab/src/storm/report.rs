//! What a storm found: who won, how everybody was answered, and how long it took.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::Size;
use super::fixture::{Fixture, Users};
use crate::load::LoadReport;

/// The status of a new hold.
const CREATED: u16 = 201;

/// A finished storm.
#[derive(Debug, Serialize)]
pub(super) struct StormReport {
    users: u32,
    seconds: u64,
    seats: u32,
    event: String,
    /// New holds that were acknowledged.
    pub(super) winners: u64,
    /// Wanted seats that the server shows as held afterwards.
    held: u64,
    /// Requests that have neither a status nor a kind of error: always none.
    pub(super) unaccounted: u64,
    #[serde(flatten)]
    pub(super) load: LoadReport,
    /// What must not be.
    pub(super) violations: Vec<String>,
}

/// How many holds were acknowledged.
pub(super) fn winners(load: &LoadReport) -> u64 {
    load.statuses.get(&CREATED).copied().unwrap_or_default()
}

/// What must not be: winners other than seats, and a request without an answer that says why.
fn violations(
    size: Size,
    fixture: &Fixture,
    load: &LoadReport,
    (winners, held, unaccounted): (u64, u64, u64),
) -> Vec<String> {
    // Nobody else is in an event of its own, and its holds outlast the storm.
    let is_alone = matches!(fixture.users, Users::Holders(_));
    let seats = u64::from(size.seats);
    let mut violations = Vec::new();
    if winners > seats || is_alone && winners < seats {
        violations.push(format!("{winners} winners of {seats} seats"));
    }
    if is_alone && held < winners {
        violations.push(format!(
            "{winners} holds were acknowledged, {held} are there"
        ));
    }
    let odd = load
        .statuses
        .iter()
        .filter(|(status, _)| !is_expected(**status));
    violations.extend(odd.map(|(status, count)| format!("{count} answers of status {status}")));
    let failed = load.errors.iter();
    violations.extend(failed.map(|(error, count)| format!("{count} without an answer: {error:?}")));
    if unaccounted > 0 {
        violations.push(format!("{unaccounted} requests are not accounted for"));
    }
    violations
}

/// Won, won before, taken, or asked too often: all that a storm has to hear.
const fn is_expected(status: u16) -> bool {
    matches!(status, CREATED | 200 | 409 | 429)
}

impl StormReport {
    pub(super) fn new(size: Size, fixture: &Fixture, load: LoadReport, held: u64) -> Self {
        let winners = winners(&load);
        let answered: u64 = load.statuses.values().sum();
        let failed: u64 = load.errors.values().sum();
        let unaccounted = load.sent.abs_diff(answered + failed);
        let violations = violations(size, fixture, &load, (winners, held, unaccounted));
        Self {
            users: size.users,
            seconds: size.seconds,
            seats: size.seats,
            event: fixture.event.clone(),
            winners,
            held,
            unaccounted,
            load,
            violations,
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header(["answer", "requests"]);
        for (status, count) in &self.load.statuses {
            table.add_row([format!("{status} {}", meaning(*status)), count.to_string()]);
        }
        for (error, count) in &self.load.errors {
            table.add_row([format!("no answer: {error:?}"), count.to_string()]);
        }
        table.add_row(["all".to_owned(), self.load.sent.to_string()]);
        if let Some(counts) = table.column_mut(1) {
            counts.set_cell_alignment(CellAlignment::Right);
        }
        let latency = self.load.latency_us;
        let mut text = format!(
            "{} users, {} s, {} seats of {}\n{table}\nwinners {}, held {}; {} answers/s; latency in \
             us: avg {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}\n",
            self.users,
            self.seconds,
            self.seats,
            self.event,
            self.winners,
            self.held,
            self.load.rate_per_s,
            latency.avg,
            latency.p50,
            latency.p90,
            latency.p99,
            latency.p99_9,
            latency.max,
        );
        for violation in &self.violations {
            // Writing to memory does not fail.
            writeln!(text, "VIOLATION: {violation}").unwrap_or_default();
        }
        text
    }
}

fn meaning(status: u16) -> &'static str {
    match status {
        CREATED => "won",
        200 => "own hold again",
        409 => "somebody else was faster",
        429 => "asked too often",
        503 => "overloaded",
        _ => "",
    }
}
