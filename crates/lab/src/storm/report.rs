//! The report of a storm: winners, answers, latencies, violations.

use std::time::Duration;

use serde::Serialize;

use super::Size;
use super::fixture::{Fixture, Users};
use crate::kit::{Bound, LoadReport, Verdict, median_ratio, table, thousandths};
use crate::load::Transport;

/// The status of a new hold.
pub(super) const CREATED: u16 = 201;
/// What a storm expects: won, won before, taken, or beyond the rate limit.
const EXPECTED: [u16; 4] = [CREATED, 200, 409, 429];

#[derive(Debug, Serialize)]
pub(super) struct StormReport {
    transport: Transport,
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
    /// CPU time of this program, which shares the cores with the server.
    generator_cpu_ns_per_request: u64,
    /// Empty when the server did as it promises.
    pub(super) violations: Vec<String>,
}

/// Finds violations: winners other than seats, and requests without an expected answer.
fn violations(
    (transport, size): (Transport, Size),
    fixture: &Fixture,
    load: &LoadReport,
    (winners, held, unaccounted): (u64, u64, u64),
) -> Vec<String> {
    // The storm's own event has no other users, and its holds outlast the storm.
    let is_own = matches!(fixture.users, Users::Holders(_));
    let seats = u64::from(size.seats);
    let most = seats * holds_in_turn(load.took_ms, fixture.hold_ms);
    let mut violations = Vec::new();
    if winners > most || is_own && winners < seats {
        violations.push(format!("{winners} winners of {seats} seats"));
    }
    if is_own && held < winners {
        violations.push(format!(
            "{winners} holds were acknowledged, {held} are there"
        ));
    }
    violations.extend(load.odd_answers(&EXPECTED.map(|status| transport.status(status))));
    if unaccounted > 0 {
        violations.push(format!("{unaccounted} requests are not accounted for"));
    }
    violations
}

/// Counts the holds of one seat that may begin in a storm, each after the end of the one before.
fn holds_in_turn(storm_ms: u64, hold_ms: u64) -> u64 {
    1 + storm_ms / hold_ms.max(1)
}

impl StormReport {
    pub(super) fn new(
        (transport, size): (Transport, Size),
        fixture: &Fixture,
        (load, generator_cpu): (LoadReport, Duration),
        held: u64,
    ) -> Self {
        let winners = load.count(transport.status(CREATED));
        let answered: u64 = load.statuses.values().sum();
        let failed: u64 = load.errors.values().sum();
        let unaccounted = load.sent.abs_diff(answered + failed);
        let generator_cpu = u64::try_from(generator_cpu.as_nanos()).unwrap_or(u64::MAX);
        let counts = (winners, held, unaccounted);
        let violations = violations((transport, size), fixture, &load, counts);
        Self {
            transport,
            users: size.users,
            seconds: size.seconds,
            seats: size.seats,
            event: fixture.event.clone(),
            winners,
            held,
            unaccounted,
            generator_cpu_ns_per_request: generator_cpu / load.sent.max(1),
            load,
            violations,
        }
    }

    pub(super) fn text(&self) -> String {
        let statuses = self.load.statuses.iter();
        let statuses = statuses
            .map(|(code, count)| (format!("{code} {}", meaning(self.transport, *code)), *count));
        let errors = self.load.errors.iter();
        let errors = errors.map(|(error, count)| (format!("no answer: {error:?}"), *count));
        let all = [("all".to_owned(), self.load.sent)];
        let rows = statuses.chain(errors).chain(all);
        let rows = rows.map(|(answer, count)| [answer, count.to_string()]);
        let table = table(["answer", "requests"], rows, &[0]);
        let latency = self.load.latency_us;
        let over = match self.transport {
            Transport::Http => "HTTP",
            Transport::Grpc => "gRPC",
        };
        let text = format!(
            "{} users over {over}, {} s, {} seats of {}\n{table}\nwinners {}, held {}; {} answers/s; latency in \
             us: avg {}, p50 {}, p90 {}, p99 {}, p99.9 {}, max {}; generator CPU in us per request: {}",
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
            thousandths(self.generator_cpu_ns_per_request),
        );
        let violations = self.violations.iter();
        let violations = violations.map(|violation| format!("\nVIOLATION: {violation}"));
        text + &violations.collect::<String>()
    }
}

fn meaning(transport: Transport, status: u16) -> &'static str {
    let meanings = [
        (CREATED, "won"),
        (200, "own hold again"),
        (409, "taken by another"),
        (429, "beyond the rate limit"),
        (503, "overloaded"),
    ];
    let mut meanings = meanings.into_iter();
    let found = meanings.find(|(http, _)| transport.status(*http) == status);
    found.map_or("", |(_, meaning)| meaning)
}

/// One storm, or several and how they compare.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum StormReports {
    One(Box<StormReport>),
    Compared {
        storms: Vec<StormReport>,
        goals: Vec<Verdict>,
    },
}

impl StormReports {
    pub(super) fn new(storms: Vec<StormReport>) -> Self {
        match <[StormReport; 1]>::try_from(storms) {
            Ok([only]) => Self::One(Box::new(only)),
            Err(storms) => Self::Compared {
                goals: of_transports(&storms).into_iter().collect(),
                storms,
            },
        }
    }

    fn all(&self) -> &[StormReport] {
        match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Compared { storms, .. } => storms,
        }
    }

    /// Counts the violations of all storms.
    pub(super) fn violations(&self) -> usize {
        self.all().iter().map(|storm| storm.violations.len()).sum()
    }

    pub(super) fn text(&self) -> String {
        let storms = self.all().iter().map(StormReport::text);
        let goals = match self {
            Self::One(_) => &[][..],
            Self::Compared { goals, .. } => goals,
        };
        let goals = goals.iter().map(Verdict::line);
        storms.chain(goals).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
#[test]
fn a_seat_may_have_another_winner_once_a_hold_has_ended() {
    let ten_seconds = [10_000, 40_000].map(|hold_ms| holds_in_turn(10_000, hold_ms));
    assert_eq!(ten_seconds, [2, 1]);
    assert_eq!(holds_in_turn(60_000, 40_000), 2);
}

/// Compares the rate over gRPC with that over HTTP.
fn of_transports(storms: &[StormReport]) -> Option<Verdict> {
    let rates = |transport| {
        let storms = storms.iter();
        let storms = storms.filter(move |storm| storm.transport == transport);
        storms.map(|storm| storm.load.rate_per_s)
    };
    let ratio = median_ratio(rates(Transport::Grpc), rates(Transport::Http))?;
    let name = ("P22", "storm, answers a second: gRPC / HTTP");
    Some(Verdict::single(name, ratio, Bound::AtLeast, 700))
}
