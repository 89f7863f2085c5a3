//! The report for a terminal: a table for each shape, and what must not be.

use std::collections::BTreeMap;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::judge::Promise;
use super::report::{CellReport, RaceReport, StrategyReport};
use super::textbook::Scene;

pub(super) const HEADER: [&str; 9] = [
    "buyers",
    "strategy",
    "winners",
    "double sales",
    "refused",
    "errors",
    "p50 ms",
    "p99 ms",
    "answers/s",
];

/// The whole report.
pub(super) fn text(report: &RaceReport) -> String {
    let mut lines = Vec::new();
    for shape in report.shapes() {
        lines.push(format!("{shape}, wanted by every buyer of a round"));
        lines.push(table(report, shape).to_string());
    }
    lines.push(format!(
        "{} cores, {}; {}",
        report.machine.cores,
        report.machine.processor,
        report.servers.join("; ")
    ));
    lines.push(
        "Latencies from a buyer's question to the answer, whatever it was. Figures of one run on one \
         machine: only their ratios mean something."
            .to_owned(),
    );
    lines.extend(report.stopped.iter().map(stopped));
    lines.extend(
        report
            .faults
            .iter()
            .map(|fault| format!("VIOLATION {fault}")),
    );
    if report.faults.is_empty() {
        lines.push(verdict(report));
    }
    lines.join("\n") + "\n"
}

/// What became of a holder that was stopped for longer than its lease, in a sentence.
pub(super) fn stopped(scene: &Scene) -> String {
    let name = scene.strategy;
    match scene.refused {
        None => format!("{name}: a holder stopped past its lease sold the seat a second time"),
        Some(why) => format!("{name}: a holder stopped past its lease was refused ({why})"),
    }
}

/// What can be said when nothing is wrong.
pub(super) fn verdict(report: &RaceReport) -> String {
    let broken = report
        .strategies
        .iter()
        .filter(|strategy| strategy.promise == Promise::Broken);
    let mut said: Vec<String> = broken
        .map(|strategy| {
            format!(
                "{} sold units twice {} times, as it must without guards",
                strategy.name,
                number(strategy.double_sales)
            )
        })
        .collect();
    let guarded = report.guarded_requests();
    if guarded > 0 {
        said.push(format!(
            "no guarded strategy sold a unit twice in {} requests, and the auditor agrees",
            number(guarded)
        ));
    }
    said.join("; ")
}

fn table(report: &RaceReport, shape: &str) -> Table {
    let of_shape = report.cells().filter(|(_, cell)| cell.shape_name == shape);
    let mut cells: Vec<_> = of_shape.collect();
    cells.sort_by_key(|(_, cell)| cell.buyers);
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for (strategy, cell) in cells {
        table.add_row(row(strategy, cell));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(names) = table.column_mut(1) {
        names.set_cell_alignment(CellAlignment::Left);
    }
    table
}

/// A cell in the words of every table.
pub(super) fn row(strategy: &StrategyReport, cell: &CellReport) -> [String; 9] {
    let figures = &cell.figures;
    [
        cell.buyers.to_string(),
        strategy.name.to_owned(),
        format!("{} in {}", figures.winners, cell.rounds),
        cell.judged.double_sales.to_string(),
        sum(&figures.refused).to_string(),
        kinds(&figures.errors),
        millis(figures.p50_us),
        millis(figures.p99_us),
        figures.answers_per_s.to_string(),
    ]
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// How many of which kind; nothing is 0.
pub(super) fn kinds(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "0".to_owned();
    }
    let kinds = counts.iter().map(|(kind, count)| format!("{count} {kind}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// 1,234 microseconds as `1.2`.
pub(crate) fn millis(micros: u64) -> String {
    let tenths = micros.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// 1234567 as `1,234,567`.
pub(crate) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut parted = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_to_a_tenth() {
        let shown = [0, 49, 50, 1_234, 99_960].map(millis);
        assert_eq!(shown, ["0.0", "0.0", "0.1", "1.2", "100.0"]);
    }

    #[test]
    fn numbers_are_parted_by_thousands() {
        let shown = [0, 999, 1_000, 12_345, 1_234_567].map(number);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    #[test]
    fn kinds_of_errors_are_named() {
        assert_eq!(kinds(&BTreeMap::new()), "0");
        let counts = BTreeMap::from([
            ("deadlock 40P01".to_owned(), 3),
            ("overloaded".to_owned(), 1),
        ]);
        assert_eq!(kinds(&counts), "3 deadlock 40P01, 1 overloaded");
    }
}
