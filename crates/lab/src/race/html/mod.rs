//! The report as one page: plots, explanations, every figure. Contains no script and requests nothing;
//! light and dark by the reader's preference, and fit for paper.

mod plot;
#[cfg(test)]
mod tests;

use super::judge::Promise;
use super::report::{CellReport, HEADER, RaceReport, StrategyReport, sentence};
use crate::kit::number;

use self::plot::{Plot, bars};

const STYLE: &str = include_str!("style.css");

pub(super) fn page(report: &RaceReport) -> String {
    let buyers = report.cells().map(|(_, cell)| cell.buyers).max();
    let buyers = number(buyers.unwrap_or_default());
    let shapes = report.shapes();
    let plots: String = shapes.iter().map(|shape| plots(report, shape)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <meta name=\"color-scheme\" content=\"light dark\" />\n\
         <title>{buyers} buyers want the same seat</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <main>\n<header>\n<p class=\"eyebrow\">soldonce lab race</p>\n\
         <h1>{buyers} buyers want the same seat</h1>\n{}</header>\n{}{}{plots}{}{}{}{}</main>\n\
         </body>\n</html>\n",
        result(report),
        tiles(report),
        double_sales(report),
        cards(report),
        scenes(report),
        figures(report),
        footer(report),
    )
}

fn section(title: &str, body: &str) -> String {
    format!("<section>\n<h2>{title}</h2>\n{body}</section>\n")
}

fn each<T>(all: impl IntoIterator<Item = T>, html: impl Fn(T) -> String) -> String {
    all.into_iter().map(html).collect()
}

/// Writes the result as a sentence, or the faults.
fn result(report: &RaceReport) -> String {
    if report.faults.is_empty() {
        let (count, verdict) = (report.strategies.len(), report.verdict());
        let verdict = escape(&verdict);
        return format!(
            "<p class=\"lede\">{count} ways to sell it, side by side on one database: {verdict}.</p>\n"
        );
    }
    let faults = each(&report.faults, |fault| {
        format!("<li>{}</li>\n", escape(fault))
    });
    format!("<ul class=\"faults\">\n{faults}</ul>\n")
}

/// Writes the few numbers to remember.
fn tiles(report: &RaceReport) -> String {
    let tile = |(class, value, about): (&str, String, String)| {
        format!("<div class=\"tile {class}\"><strong>{value}</strong><span>{about}</span></div>\n")
    };
    let promises = [Promise::Broken, Promise::SoldOnce].map(|promise| {
        let (strategies, double_sales, requests) = report.of_promise(promise);
        let name = match strategies.as_slice() {
            [] => return None,
            [one] => format!("<em>{}</em>", escape(one.name)),
            all => format!("the {} that should sell once", all.len()),
        };
        let is_good = promise == Promise::SoldOnce && double_sales == 0;
        let class = if is_good { "good" } else { "bad" };
        let about = format!("double sales by {name}, in {} requests", number(requests));
        Some((class, number(double_sales), about))
    });
    let [broken, sold_once] = promises;
    let tiles = [broken, sold_once, pace(report), deadlocks(report)];
    let tiles = each(tiles.into_iter().flatten(), tile);
    format!("<section class=\"tiles\">\n{tiles}</section>\n")
}

/// Compares the product with a row lock, where most buyers want one thing.
fn pace(report: &RaceReport) -> Option<(&'static str, String, String)> {
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
    let (buyers, shape) = (number(queue.buyers), escape(shape));
    let about = format!(
        "as many answers a second from <em>queue</em> as from <em>pessimistic</em>, {buyers} buyers on \
         {shape}"
    );
    Some(("plain", times, about))
}

fn deadlocks(report: &RaceReport) -> Option<(&'static str, String, String)> {
    let mut all = report.strategies.iter();
    let unsorted = all.find(|one| one.name == "unsorted")?;
    let errors = unsorted.cells.iter().flat_map(|cell| &cell.figures.errors);
    let deadlocks = errors.filter(|(kind, _)| kind.starts_with("deadlock"));
    let deadlocks: u64 = deadlocks.map(|(_, count)| count).sum();
    let about = "deadlocks when rows are locked as they come, none when they are sorted";
    Some(("warn", number(deadlocks), about.to_owned()))
}

fn double_sales(report: &RaceReport) -> String {
    let rows = report.strategies.iter().map(|one| {
        let (count, requests) = (number(one.double_sales), number(one.requests()));
        let note = format!("{count} <tspan class=\"tick\">in {requests} requests</tspan>");
        (one.name, one.double_sales, note)
    });
    let bars = bars("Double sales by strategy", &rows.collect::<Vec<_>>());
    section(
        "Double sales",
        &format!(
            "<p class=\"about\">Sales of a seat that another buyer already had, counted by the answers \
             to the buyers, over all rounds.</p>\n<figure>\n{bars}</figure>\n"
        ),
    )
}

/// Draws the plots of one shape, by buyers: answers per second, and p99 latency.
fn plots(report: &RaceReport, shape: &str) -> String {
    let about = match shape {
        _ if shape.ends_with("crossed") => {
            "Every buyer wants neighbouring seats that overlap with those of all others; every second \
             buyer names them from right to left."
        }
        "1 seat" => "Every buyer wants the same seat.",
        _ => "Every buyer wants the same seats, named from left to right.",
    };
    let plot = |title, figure: fn(&CellReport) -> u64, shown| {
        let of_shape = |one: &StrategyReport, of: fn(&CellReport) -> u64| {
            let cells = one.cells.iter().filter(|cell| cell.shape_name == shape);
            cells.map(of).collect::<Vec<u64>>()
        };
        let lines = report.strategies.iter();
        let lines = lines.map(|one| (one.name, of_shape(one, figure)));
        let first = report.strategies.first();
        let cells = first.into_iter().flat_map(|one| &one.cells);
        let cells = cells.filter(|cell| cell.shape_name == shape);
        let plot = Plot {
            title,
            buyers: cells.map(|cell| cell.buyers).collect(),
            lines: lines.collect(),
            shown,
        };
        plot.figure()
    };
    let plots = [
        plot(
            "Answers per second",
            |cell| cell.figures.answers_per_s,
            number,
        ),
        plot(
            "Slowest of a hundred answers (p99)",
            |cell| cell.figures.p99_us,
            time,
        ),
    ];
    let plots = plots.concat();
    section(
        &escape(shape),
        &format!("<p class=\"about\">{about}</p>\n<div class=\"plots\">\n{plots}</div>\n"),
    )
}

/// Explains how each strategy works, why it holds or breaks, and what it sends.
fn cards(report: &RaceReport) -> String {
    let stopped = |name: &str| {
        let mut scenes = report.stopped.iter();
        scenes.any(|scene| scene.strategy == name && scene.sold_twice)
    };
    let card = |one: &StrategyReport| {
        let (badge_class, badge) = match (one.promise, one.double_sales) {
            (Promise::SoldOnce, 0) if stopped(one.name) => {
                ("bad", "sold twice once its holder was stopped")
            }
            (Promise::SoldOnce, 0) => ("good", "sold nothing twice"),
            (Promise::SoldOnce | Promise::Broken, 1..) => ("bad", "sold units twice"),
            (Promise::Broken, 0) => ("bad", "not put to the test"),
        };
        format!(
            "<article class=\"card {}\">\n<h3><span class=\"dot\"></span>{} <small \
             class=\"badge {badge_class}\">{badge}</small></h3>\n<p class=\"mechanism\">{}</p>\n\
             <p>{}</p>\n<pre>{}</pre>\n{}</article>\n",
            class(one.name),
            escape(one.name),
            escape(one.mechanism),
            escape(one.why),
            escape(&statements(one.statements)),
            largest(one),
        )
    };
    let cards = each(&report.strategies, card);
    section(
        "How each of them works",
        &format!("<div class=\"cards\">\n{cards}</div>\n"),
    )
}

/// Joins statements; the same one sent again is only counted.
fn statements(statements: &[&str]) -> String {
    let chunks = statements.chunk_by(|one, next| one == next);
    let chunks = chunks.map(|chunk| match chunk {
        [one] => format!("{};", one.trim_end()),
        [one, ..] => {
            let (one, times) = (one.trim_end(), chunk.len());
            format!("{one};  /* {times} times, seat by seat */")
        }
        [] => String::new(),
    });
    chunks.collect::<Vec<_>>().join("\n")
}

/// Writes the figures of the largest number of buyers, in each shape.
fn largest(strategy: &StrategyReport) -> String {
    let most = strategy.cells.iter().map(|cell| cell.buyers).max();
    let cells = strategy.cells.iter();
    let cells = cells.filter(|cell| Some(cell.buyers) == most);
    let lines = each(cells, |cell| {
        let figures = &cell.figures;
        let [p50, p99] = [figures.p50_us, figures.p99_us].map(time);
        let (shape, rate) = (escape(&cell.shape_name), number(figures.answers_per_s));
        format!("<tr><td>{shape}</td><td>{p50}</td><td>{p99}</td><td>{rate}</td></tr>\n")
    });
    let buyers = number(most.unwrap_or_default());
    format!(
        "<table class=\"small\">\n<thead><tr><th>{buyers} buyers</th><th>p50</th><th>p99</th>\
         <th>answers/s</th></tr></thead>\n<tbody>\n{lines}</tbody>\n</table>\n"
    )
}

/// Describes the holders that were stopped for longer than their lease.
fn scenes(report: &RaceReport) -> String {
    if report.stopped.is_empty() {
        return String::new();
    }
    let scenes = each(&report.stopped, |scene| {
        format!("<li>{}</li>\n", escape(&sentence(scene)))
    });
    section(
        "A holder that is stopped",
        &format!(
            "<p>It takes a lease of 200 ms, looks at the seat, and is stopped. Another buyer gets the \
             lease and buys the seat. Then the first goes on.</p>\n<ul>\n{scenes}</ul>\n"
        ),
    )
}

/// Writes every cell, in the words of the terminal's table.
fn figures(report: &RaceReport) -> String {
    let head = each(HEADER, |name| format!("<th>{name}</th>"));
    let count = HEADER.len();
    let bodies = each(report.shapes(), |shape| {
        let rows = each(report.rows(shape), |row| {
            let cells = row.map(|text| format!("<td>{}</td>", escape(&text)));
            format!("<tr>{}</tr>\n", cells.concat())
        });
        let shape = escape(shape);
        format!(
            "<tbody>\n<tr class=\"shape\"><th colspan=\"{count}\">{shape}</th></tr>\n{rows}</tbody>\n"
        )
    });
    section(
        "Every figure",
        &format!(
            "<div class=\"wide\">\n<table>\n<thead><tr>{head}</tr></thead>\n{bodies}</table>\n</div>\n"
        ),
    )
}

/// Writes what a reader must know to believe the figures.
fn footer(report: &RaceReport) -> String {
    let machine = &report.machine;
    let machine = format!(
        "{} cores of {}; {}; load average {} at the end",
        machine.cores, machine.processor, machine.system, machine.load_average
    );
    let facts = [
        ("command", report.command.clone()),
        ("version", format!("soldonce {}", report.version)),
        ("machine", machine),
        ("servers", report.servers.join("; ")),
    ];
    let facts = each(facts, |(name, fact)| {
        format!("<dt>{name}</dt><dd>{}</dd>\n", escape(&fact))
    });
    format!(
        "<footer>\n<dl>\n{facts}</dl>\n<p>Latency counts from a buyer's request to the answer, a \
         refusal too, waiting for a connection included. Buyers, server and database shared the machine. These \
         are figures of one run: only their ratios mean something. All but <em>queue</em> sell at once and \
         write thinner rows than the product, without audit, timed holds or money. Each history was read \
         back from the database and judged by the auditor of soldonce, which shares no code with what it \
         judges.</p>\n</footer>\n"
    )
}

/// Returns the CSS class of a strategy's colour; one on guarded tables has that of its method.
fn class(name: &str) -> String {
    match name.split_once('+') {
        Some((method, _)) => format!("{} guarded", escape(method)),
        None => escape(name),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Writes microseconds in their unit, to two digits.
fn time(micros: u64) -> String {
    let (unit, name) = match micros {
        1_000_000.. => (1_000_000, "s"),
        1_000.. => (1_000, "ms"),
        _ => (1, "µs"),
    };
    let tenths = (micros * 10 + unit / 2) / unit;
    match (tenths / 10, tenths % 10) {
        (whole @ 0..=9, tenth @ 1..) => format!("{whole}.{tenth} {name}"),
        _ => format!("{} {name}", (tenths + 5) / 10),
    }
}
