//! Medians over the runs, ratios within each run, goals.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::StormArgs;
use super::super::report::StormReport;
use super::Run;
use super::contender::{ALL, Contender, RIVAL, SECOND_RIVAL};
use crate::kit::{
    Bound, LatencyUs, LoadError, LoadReport, Machine, Verdict, add_counts, closing_lines, median,
    median_ratio, millis, number, table, thousandths,
};

/// The figures of `GigaScale`'s article.
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
    /// Its name and its settings, as it prints them.
    pub(super) setting: String,
    pub(super) warm_up: StormReport,
    pub(super) storm: StormReport,
}

/// Finished storms.
#[derive(Serialize)]
pub(super) struct PeerReport {
    users: u32,
    seconds: u64,
    seats: u32,
    runs: u32,
    version: &'static str,
    machine: Machine,
    services: Vec<String>,
    article: Article,
    contenders: Vec<Figures>,
    goals: Vec<Verdict>,
    /// Empty when every server did as it promises.
    pub(super) faults: Vec<String>,
}

/// Figures that were published; of another machine, so that no ratio to them means anything.
#[derive(Clone, Copy, Serialize)]
struct Article {
    rate_per_s: u64,
    latency_avg_us: u64,
}

/// One contender over all runs.
#[derive(Serialize)]
struct Figures {
    name: &'static str,
    about: &'static str,
    setting: String,
    /// Medians, each figure by itself.
    rate_per_s: u64,
    latency_us: LatencyUs,
    /// Each run's rate, in order.
    rates_per_s: Vec<u64>,
    /// Its rate / that of the peer that takes locks, in the same run, in thousandths, median.
    rate_times_permille: u64,
    /// The average latency of that peer / its own, likewise.
    latency_times_permille: u64,
    winners: Vec<u64>,
    /// Sums over all runs.
    sent: u64,
    statuses: BTreeMap<u16, u64>,
    errors: BTreeMap<LoadError, u64>,
}

impl PeerReport {
    pub(super) fn new(args: &StormArgs, services: Vec<String>, runs: &[Run]) -> Self {
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
            contenders: ALL.iter().map(|one| Figures::new(runs, *one)).collect(),
            faults: faults(runs),
        }
    }

    /// Formats the report for a terminal.
    pub(super) fn text(&self) -> String {
        let none = || "-".to_owned();
        let article = [
            "GigaScale, as published".to_owned(),
            number(self.article.rate_per_s),
            none(),
            millis(self.article.latency_avg_us),
            none(),
            none(),
            none(),
            "its own machine".to_owned(),
        ];
        let rows = self.contenders.iter().map(Figures::row).chain([article]);
        let setting = format!(
            "{} users, {} seats, {} s, medians of {} runs; times: of peer distributed in the same \
             run; {} cores for all, {}; {}",
            self.users,
            self.seats,
            self.seconds,
            self.runs,
            self.machine.cores,
            self.machine.processor,
            self.services.join("; "),
        );
        let mut lines = vec![table(HEADER, rows, &[0, 7]), setting];
        let contenders = self.contenders.iter();
        lines.extend(contenders.map(|one| format!("{}: {}", one.title(), one.about)));
        lines.extend(closing_lines(&self.goals, &self.faults));
        lines.join("\n")
    }
}

const HEADER: [&str; 8] = [
    "storm",
    "answers/s",
    "times",
    "avg ms",
    "times lower",
    "p50 ms",
    "p99 ms",
    "answers of all runs",
];

impl Figures {
    fn new(runs: &[Run], contender: Contender) -> Self {
        let own: Vec<&Measured> = of(runs, contender).collect();
        let loads: Vec<&LoadReport> = own.iter().map(|one| &one.storm.load).collect();
        let rates_per_s: Vec<u64> = loads.iter().map(|load| load.rate_per_s).collect();
        let latencies: Vec<LatencyUs> = loads.iter().map(|load| load.latency_us).collect();
        let (rate_times_permille, latency_times_permille) = times(runs, (contender, RIVAL));
        let first = own.first();
        Self {
            name: contender.name(),
            about: contender.about(),
            setting: first.map(|one| one.setting.clone()).unwrap_or_default(),
            rate_per_s: median(rates_per_s.clone()).unwrap_or_default(),
            latency_us: LatencyUs::median(&latencies),
            rates_per_s,
            rate_times_permille,
            latency_times_permille,
            winners: own.iter().map(|one| one.storm.winners).collect(),
            sent: loads.iter().map(|load| load.sent).sum(),
            statuses: add_counts(loads.iter().map(|load| &load.statuses)),
            errors: add_counts(loads.iter().map(|load| &load.errors)),
        }
    }

    fn row(&self) -> [String; 8] {
        let latency = self.latency_us;
        let statuses = self.statuses.iter();
        let statuses = statuses.map(|(status, count)| format!("{status}: {}", number(*count)));
        let errors = self.errors.iter();
        let errors = errors.map(|(error, count)| format!("{error:?}: {}", number(*count)));
        [
            self.name.to_owned(),
            number(self.rate_per_s),
            thousandths(self.rate_times_permille),
            millis(latency.avg),
            thousandths(self.latency_times_permille),
            millis(latency.p50),
            millis(latency.p99),
            statuses.chain(errors).collect::<Vec<_>>().join(", "),
        ]
    }

    /// Returns its name, with its settings if it prints some.
    fn title(&self) -> String {
        let name = self.name;
        match self.setting.split_once(" (") {
            Some((_, settings)) => format!("{name} ({settings}"),
            None => name.to_owned(),
        }
    }
}

fn goals(runs: &[Run], (own, rival): (Contender, Contender)) -> [Verdict; 2] {
    let goal = |what: &str, measured, wanted| {
        let what = format!("{} / {}: {what}", own.name(), rival.name());
        Verdict::single(("P10", &what), measured, Bound::AtLeast, wanted)
    };
    let (rate, latency) = times(runs, (own, rival));
    [
        goal("times the rate", rate, RATE_WANTED),
        goal("times lower latency", latency, LATENCY_WANTED),
    ]
}

/// Computes how many times as many answers a second as the rival, and how many times lower an
/// average latency, in thousandths.
fn times(runs: &[Run], (own, rival): (Contender, Contender)) -> (u64, u64) {
    let figures = |of_whom, figure: fn(&LoadReport) -> u64| {
        of(runs, of_whom).map(move |one| figure(&one.storm.load))
    };
    let rate = |load: &LoadReport| load.rate_per_s;
    let latency = |load: &LoadReport| load.latency_us.avg;
    (
        median_ratio(figures(own, rate), figures(rival, rate)).unwrap_or_default(),
        median_ratio(figures(rival, latency), figures(own, latency)).unwrap_or_default(),
    )
}

/// Collects the violations of all storms, warm-ups too.
fn faults(runs: &[Run]) -> Vec<String> {
    let storms = runs.iter().flatten().flat_map(|(contender, one)| {
        [&one.warm_up, &one.storm].map(|storm| (contender.name(), storm))
    });
    let faults = storms.flat_map(|(name, storm)| {
        let violations = storm.violations.iter();
        violations.map(move |violation| format!("{name}: {violation}"))
    });
    faults.collect()
}

/// Finds the turns of one contender, in the order of the runs.
fn of(runs: &[Run], contender: Contender) -> impl Iterator<Item = &Measured> {
    let all = runs.iter().flatten();
    all.filter(move |(found, _)| *found == contender)
        .map(|(_, measured)| measured)
}
