//! The few numbers to remember.

use super::super::judge::Promise;
use super::super::report::{CellReport, RaceReport, StrategyReport};
use super::escape;
use crate::race::table::number;

/// A section with a tile for each of them.
pub(super) fn section(report: &RaceReport) -> String {
    let tiles = [
        broken(report),
        guarded(report),
        pace(report),
        deadlocks(report),
    ];
    let tiles: String = tiles.into_iter().flatten().collect();
    format!("<section class=\"tiles\">\n{tiles}</section>\n")
}

fn tile(class: &str, value: &str, about: &str) -> String {
    format!("<div class=\"tile {class}\"><strong>{value}</strong><span>{about}</span></div>\n")
}

fn of_promise(report: &RaceReport, promise: Promise) -> Vec<&StrategyReport> {
    let all = report.strategies.iter();
    all.filter(|strategy| strategy.promise == promise).collect()
}

fn double_sales(strategies: &[&StrategyReport]) -> u64 {
    strategies.iter().map(|one| one.double_sales).sum()
}

fn broken(report: &RaceReport) -> Option<String> {
    let broken = of_promise(report, Promise::Broken);
    let name = broken.first()?.name;
    let cells = broken.iter().flat_map(|one| &one.cells);
    let requests: u64 = cells.map(|cell| cell.figures.requests).sum();
    let requests = number(requests);
    let about = format!("double sales by <em>{name}</em>, in {requests} requests");
    Some(tile("bad", &number(double_sales(&broken)), &about))
}

fn guarded(report: &RaceReport) -> Option<String> {
    let guarded = of_promise(report, Promise::SoldOnce);
    let twice = double_sales(&guarded);
    let class = if twice == 0 { "good" } else { "bad" };
    let about = match guarded.as_slice() {
        [] => return None,
        [one] => format!("double sales by <em>{}</em>", one.name),
        all => format!("double sales by the {} guarded strategies", all.len()),
    };
    let requests = number(report.guarded_requests());
    let about = format!("{about}, in {requests} requests");
    Some(tile(class, &number(twice), &about))
}

/// How much more the default answers than a row lock does, where most buyers want one thing.
fn pace(report: &RaceReport) -> Option<String> {
    let shape = report.shapes().first().copied()?;
    let largest = |name: &str| -> Option<&CellReport> {
        let cells = report.cells();
        let own = cells.filter(|(one, cell)| one.name == name && cell.shape_name == shape);
        own.map(|(_, cell)| cell).max_by_key(|cell| cell.buyers)
    };
    let (queue, pessimistic) = (largest("queue")?, largest("pessimistic")?);
    let tenths = queue.figures.answers_per_s * 10 / pessimistic.figures.answers_per_s.max(1);
    let times = if tenths >= 100 {
        format!("{}×", tenths / 10)
    } else {
        format!("{}.{}×", tenths / 10, tenths % 10)
    };
    let buyers = number(u64::from(queue.buyers));
    let about = format!(
        "as many answers a second from <em>queue</em> as from <em>pessimistic</em>, {buyers} buyers on {}",
        escape(shape)
    );
    Some(tile("plain", &times, &about))
}

fn deadlocks(report: &RaceReport) -> Option<String> {
    let unsorted = report
        .strategies
        .iter()
        .find(|one| one.name == "unsorted")?;
    let errors = unsorted.cells.iter().flat_map(|cell| &cell.figures.errors);
    let deadlocks = errors.filter(|(kind, _)| kind.starts_with("deadlock"));
    let deadlocks: u64 = deadlocks.map(|(_, count)| count).sum();
    let about = "deadlocks when rows are locked as they come, none when they are sorted";
    Some(tile("warn", &number(deadlocks), about))
}
