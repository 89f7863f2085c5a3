//! Reports for a terminal: tables, numbers, and the lines that end every report.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::goal::Verdict;
use crate::exit::Exit;
use crate::output::print;

/// A report as JSON, and what every reader of its figures must know.
#[derive(Serialize)]
struct PrintedReport<'a, T> {
    #[serde(flatten)]
    report: &'a T,
    debug_build: bool,
}

/// Prints a report, with a warning in a debug build. Refused if `faults` is not 0.
#[expect(clippy::fn_params_excessive_bools, reason = "the flag `--json`")]
pub(crate) fn print_report(
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
    faults: usize,
) -> anyhow::Result<Exit> {
    let debug_build = cfg!(debug_assertions);
    let printed = if json {
        serde_json::to_string_pretty(&PrintedReport {
            report,
            debug_build,
        })?
    } else if debug_build {
        text() + "\nA debug build: the figures say little."
    } else {
        text()
    };
    print(&(printed + "\n"))?;
    Ok(if faults == 0 {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// Formats the lines below a table of measurements: goals, violations.
pub(crate) fn closing_lines(goals: &[Verdict], faults: &[String]) -> Vec<String> {
    let goals = goals.iter().map(Verdict::line);
    let faults = faults.iter().map(|fault| format!("VIOLATION {fault}"));
    goals.chain(faults).collect()
}

/// Draws a table: columns of `left` begin on the left, all others end on the right.
pub(crate) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    left: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(header);
    table.add_rows(rows);
    for (at, column) in table.column_iter_mut().enumerate() {
        if !left.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// Shows progress where standard error is a terminal.
pub(crate) fn progress_bar(steps: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len}, {eta} left  {msg}")?;
    Ok(ProgressBar::new(u64::try_from(steps)?).with_style(style))
}

/// Lists how many there are of each kind, such as `3 deadlock 40P01, 1 overloaded`; `0` if none.
pub(crate) fn kinds(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "0".to_owned();
    }
    list(counts, |kind, count| format!("{count} {kind}"))
}

/// Joins the entries of a map by commas.
pub(crate) fn list<K, V>(map: &BTreeMap<K, V>, entry: impl Fn(&K, &V) -> String) -> String {
    let entries: Vec<_> = map.iter().map(|(key, value)| entry(key, value)).collect();
    entries.join(", ")
}

/// Writes 1,234 microseconds as `1.2`.
pub(crate) fn millis(micros: u64) -> String {
    let tenths = micros.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Writes 1234567 as `1,234,567`.
pub(crate) fn number(value: impl Into<u64>) -> String {
    HumanCount(value.into()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(
            [0, 49, 50, 1_234, 99_960].map(millis),
            ["0.0", "0.0", "0.1", "1.2", "100.0"]
        );
        assert_eq!(
            [0_u64, 999, 1_000, 1_234_567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(super::super::stats::thousandths(12_005), "12.005");
    }

    #[test]
    fn kinds_of_errors_are_named() {
        assert_eq!(kinds(&BTreeMap::new()), "0");
        let counts = [
            ("deadlock 40P01".to_owned(), 3),
            ("overloaded".to_owned(), 1),
        ];
        assert_eq!(
            kinds(&BTreeMap::from(counts)),
            "3 deadlock 40P01, 1 overloaded"
        );
    }
}
