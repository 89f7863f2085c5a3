//! The plot that matters most: how many units each strategy sold more than once.
#![expect(clippy::float_arithmetic, reason = "places in a drawing")]

use super::super::report::{RaceReport, StrategyReport};
use super::escape;
use super::plots::drawn;
use crate::race::table::number;

const WIDTH: f64 = 1_120.0;
const ROW: f64 = 34.0;
const BAR: f64 = 20.0;
/// Where bars begin, and the room behind the longest for its number.
const LEFT: f64 = 110.0;
const RIGHT: f64 = 250.0;

/// A section with a bar for each strategy.
pub(super) fn section(report: &RaceReport) -> String {
    let most = report.strategies.iter().map(|one| one.double_sales).max();
    let most = drawn(most.unwrap_or_default()).max(1.0);
    let rows: String = (0_u32..)
        .zip(&report.strategies)
        .map(|(at, strategy)| row(f64::from(at) * ROW, strategy, most))
        .collect();
    let count = u32::try_from(report.strategies.len()).unwrap_or_default();
    let height = f64::from(count) * ROW;
    format!(
        "<section>\n<h2>Double sales</h2>\n<p class=\"about\">Sales of a seat that \
         another buyer already had, by what the buyers were told, over all rounds.</p>\n<figure>\n<svg viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"Double sales by strategy\">\n{rows}</svg>\n</figure>\n\
         </section>\n"
    )
}

fn row(top: f64, strategy: &StrategyReport, most: f64) -> String {
    let name = escape(strategy.name);
    let width = (WIDTH - LEFT - RIGHT) * drawn(strategy.double_sales) / most;
    let requests: u64 = strategy
        .cells
        .iter()
        .map(|cell| cell.figures.requests)
        .sum();
    let (count, requests) = (number(strategy.double_sales), number(requests));
    let (middle, text) = (top + ROW / 2.0, top + ROW / 2.0 + 5.0);
    let bar = if strategy.double_sales > 0 {
        let y = middle - BAR / 2.0;
        format!(
            "<rect class=\"bar {name}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{BAR}\" rx=\"3\" />\n"
        )
    } else {
        format!(
            "<circle class=\"bar {name}\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4\" />\n",
            LEFT + 4.0
        )
    };
    let behind = LEFT + width.max(8.0) + 12.0;
    format!(
        "<text class=\"name {name}\" x=\"{:.1}\" y=\"{text:.1}\" text-anchor=\"end\">{name}</text>\n{bar}\
         <text class=\"count\" x=\"{behind:.1}\" y=\"{text:.1}\">{count} <tspan class=\"tick\">in \
         {requests} requests</tspan></text>\n",
        LEFT - 14.0
    )
}
