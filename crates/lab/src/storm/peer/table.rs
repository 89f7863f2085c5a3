//! The report for people.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::report::{Figures, PeerReport};
use crate::bench::{Verdict, thousandths};
use crate::race::{millis, number};

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

pub(super) fn text(report: &PeerReport) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for figures in &report.contenders {
        table.add_row(row(figures));
    }
    let none = || "-".to_owned();
    table.add_row([
        "GigaScale, as published".to_owned(),
        number(report.article.rate_per_s),
        none(),
        millis(report.article.latency_avg_us),
        none(),
        none(),
        none(),
        "its own machine".to_owned(),
    ]);
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let setting = format!(
        "{} users, {} seats, {} s, medians of {} runs; times: of peer distributed in the same run; {} \
         cores for all, {}; {}",
        report.users,
        report.seats,
        report.seconds,
        report.runs,
        report.machine.cores,
        report.machine.processor,
        report.services.join("; "),
    );
    let mut lines = vec![table.to_string(), setting];
    let contenders = report.contenders.iter();
    lines.extend(contenders.map(|one| format!("{}: {}", called(one), one.about)));
    if cfg!(debug_assertions) {
        lines.push("A debug build: the figures say little.".to_owned());
    }
    lines.extend(report.goals.iter().map(Verdict::line));
    lines.extend(
        report
            .faults
            .iter()
            .map(|fault| format!("VIOLATION {fault}")),
    );
    lines.join("\n") + "\n"
}

fn row(figures: &Figures) -> [String; 8] {
    let latency = figures.latency_us;
    [
        figures.name.to_owned(),
        number(figures.rate_per_s),
        thousandths(figures.rate_times_permille),
        millis(latency.avg),
        thousandths(figures.latency_times_permille),
        millis(latency.p50),
        millis(latency.p99),
        answers(figures),
    ]
}

/// Its name, with its settings if it tells some.
fn called(figures: &Figures) -> String {
    let name = figures.name;
    match figures.setting.split_once(" (") {
        Some((_, settings)) => format!("{name} ({settings}"),
        None => name.to_owned(),
    }
}

/// `201: 9, 409: 12,345`.
fn answers(figures: &Figures) -> String {
    let statuses = figures.statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("{status}: {}", number(*count)));
    let errors = figures.errors.iter();
    let errors = errors.map(|(error, count)| format!("{error:?}: {}", number(*count)));
    statuses.chain(errors).collect::<Vec<_>>().join(", ")
}
