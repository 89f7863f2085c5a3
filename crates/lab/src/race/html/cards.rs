//! How each strategy works, why it holds or breaks, and what it sends.

use super::super::judge::Promise;
use super::super::report::{CellReport, RaceReport, StrategyReport};
use super::escape;
use super::plots::{drawn, time};
use crate::race::table::number;

/// A statement longer than this is shown on demand.
const LINES_SHOWN: usize = 12;

/// A section with a card for each strategy.
pub(super) fn section(report: &RaceReport) -> String {
    let cards: String = report.strategies.iter().map(card).collect();
    format!(
        "<section>\n<h2>How each of them works</h2>\n<div class=\"cards\">\n{cards}</div>\n</section>\n"
    )
}

fn card(strategy: &StrategyReport) -> String {
    let (class, badge) = match (strategy.promise, strategy.double_sales) {
        (Promise::SoldOnce, 0) => ("good", "sold nothing twice"),
        (Promise::SoldOnce | Promise::Broken, 1..) => ("bad", "sold units twice"),
        (Promise::Broken, 0) => ("bad", "not put to the test"),
    };
    let name = escape(strategy.name);
    let (mechanism, why) = (escape(strategy.mechanism), escape(strategy.why));
    format!(
        "<article class=\"card {name}\">\n<h3><span class=\"dot\"></span>{name} <small \
         class=\"badge {class}\">{badge}</small></h3>\n<p class=\"mechanism\">{mechanism}</p>\n\
         <p>{why}</p>\n{}{}</article>\n",
        statements(strategy.statements),
        largest(strategy)
    )
}

/// What it sends; the same one sent again is only counted.
fn statements(statements: &[&str]) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for statement in statements {
        match counted.last_mut() {
            Some((last, count)) if last == statement => *count += 1,
            _ => counted.push((statement, 1)),
        }
    }
    let is_alone = counted.len() == 1;
    let (mut shown, mut hidden) = (Vec::new(), String::new());
    for (statement, count) in counted {
        let statement = statement.trim_end();
        let lines = statement.lines().count();
        let times = if count > 1 {
            format!("  /* {count} times, seat by seat */")
        } else {
            String::new()
        };
        if lines <= LINES_SHOWN {
            shown.push(escape(&format!("{statement};{times}")));
            continue;
        }
        let name = statement.lines().next().unwrap_or_default();
        shown.push(escape(&format!(
            "{name}: one statement, {lines} lines, below"
        )));
        hidden = format!(
            "<details><summary>{}, the statement that stores</summary><pre>{}</pre></details>\n",
            escape(name.trim_start_matches(['-', ' '])),
            escape(statement)
        );
    }
    // A statement that is alone needs no word that it follows.
    if is_alone && !hidden.is_empty() {
        return hidden;
    }
    format!("<pre>{}</pre>\n{hidden}", shown.join("\n"))
}

/// How it did with the largest crowd, in each shape.
fn largest(strategy: &StrategyReport) -> String {
    let most = strategy.cells.iter().map(|cell| cell.buyers).max();
    let largest = strategy
        .cells
        .iter()
        .filter(|cell| Some(cell.buyers) == most);
    let line = |cell: &CellReport| {
        let figures = &cell.figures;
        let [p50, p99] = [figures.p50_us, figures.p99_us].map(|micros| time(drawn(micros)));
        let (shape, rate) = (escape(&cell.shape_name), number(figures.answers_per_s));
        format!("<tr><td>{shape}</td><td>{p50}</td><td>{p99}</td><td>{rate}</td></tr>\n")
    };
    let lines: String = largest.map(line).collect();
    format!(
        "<table class=\"small\">\n<thead><tr><th>{} buyers</th><th>p50</th><th>p99</th>\
         <th>answers/s</th></tr></thead>\n<tbody>\n{lines}</tbody>\n</table>\n",
        number(u64::from(most.unwrap_or_default()))
    )
}
