//! The report as one page: plots, explanations, every figure. It stands alone: no script, nothing from
//! the net, light and dark by what the reader prefers, and fit for paper.

mod bars;
mod cards;
mod lines;
mod plots;
mod scale;
mod tiles;

#[cfg(test)]
mod tests;

use super::report::RaceReport;
use super::table::{HEADER, number, row, stopped, verdict};

const STYLE: &str = include_str!("style.css");

/// The page.
pub(super) fn page(report: &RaceReport) -> String {
    let buyers = report.cells().map(|(_, cell)| cell.buyers).max();
    let buyers = number(u64::from(buyers.unwrap_or_default()));
    let title = format!("{buyers} buyers want the same seat");
    let sections: Vec<String> = report
        .shapes()
        .iter()
        .map(|shape| plots::section(report, shape))
        .collect();
    let lede = lede(report);
    [
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\" />\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\" />\n\
         <meta name=\"color-scheme\" content=\"light dark\" />\n"
            .to_owned(),
        format!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"),
        format!(
            "<header>\n<p class=\"eyebrow\">soldonce lab race</p>\n<h1>{title}</h1>\n{lede}</header>\n"
        ),
        tiles::section(report),
        bars::section(report),
        sections.concat(),
        cards::section(report),
        scenes(report),
        figures(report),
        footer(report),
        "</main>\n</body>\n</html>\n".to_owned(),
    ]
    .concat()
}

/// What came out, or what must not be.
fn lede(report: &RaceReport) -> String {
    if report.faults.is_empty() {
        let count = report.strategies.len();
        return format!(
            "<p class=\"lede\">{count} ways to sell it, side by side on one database. {}.</p>\n",
            escape(&capitalised(&verdict(report)))
        );
    }
    let faults = report.faults.iter();
    let faults = faults.map(|fault| format!("<li>{}</li>\n", escape(fault)));
    let faults: String = faults.collect();
    format!("<ul class=\"faults\">\n{faults}</ul>\n")
}

/// What became of holders that were stopped for longer than their lease.
fn scenes(report: &RaceReport) -> String {
    if report.stopped.is_empty() {
        return String::new();
    }
    let scenes = report.stopped.iter();
    let scenes: Vec<_> = scenes
        .map(|scene| format!("<li>{}</li>\n", escape(&stopped(scene))))
        .collect();
    format!(
        "<section>\n<h2>A holder that is stopped</h2>\n<p>It takes a lease of 200 ms, looks at the \
         seat, and is stopped. Another buyer gets the lease and buys the seat. Then the first goes \
         on.</p>\n<ul>\n{}</ul>\n</section>\n",
        scenes.concat()
    )
}

/// Every cell, in the words of the terminal's table.
fn figures(report: &RaceReport) -> String {
    let head: String = HEADER.map(|name| format!("<th>{name}</th>")).concat();
    let shapes = report.shapes();
    let bodies: Vec<String> = shapes.iter().map(|shape| body(report, shape)).collect();
    let bodies = bodies.concat();
    format!(
        "<section>\n<h2>Every figure</h2>\n<div class=\"wide\">\n<table>\n<thead><tr>{head}</tr></thead>\n\
         {bodies}</table>\n</div>\n</section>\n"
    )
}

/// The rows of one shape, those of equally many buyers together.
fn body(report: &RaceReport, shape: &str) -> String {
    let of_shape = report.cells().filter(|(_, cell)| cell.shape_name == shape);
    let mut cells: Vec<_> = of_shape.collect();
    cells.sort_by_key(|(_, cell)| cell.buyers);
    let line = |(strategy, cell)| {
        let cells = row(strategy, cell).map(|text| format!("<td>{}</td>", escape(&text)));
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let rows: Vec<String> = cells.into_iter().map(line).collect();
    let count = HEADER.len();
    let (rows, shape) = (rows.concat(), escape(shape));
    format!(
        "<tbody>\n<tr class=\"shape\"><th colspan=\"{count}\">{shape}</th></tr>\n{rows}</tbody>\n"
    )
}

/// What a reader must know to believe any of it.
fn footer(report: &RaceReport) -> String {
    let machine = &report.machine;
    let facts = [
        (
            "command",
            format!("<code>{}</code>", escape(&report.command)),
        ),
        ("version", format!("soldonce {}", report.version)),
        (
            "machine",
            escape(&format!(
                "{} cores of {}; {}; load average {} at the end",
                machine.cores, machine.processor, machine.system, machine.load_average
            )),
        ),
        ("servers", escape(&report.servers.join("; "))),
    ];
    let facts = facts.map(|(name, fact)| format!("<dt>{name}</dt><dd>{fact}</dd>\n"));
    format!(
        "<footer>\n<dl>\n{}</dl>\n<p>Latency counts from a buyer's question to the answer, whatever it \
         was, waiting for a connection included. Buyers, server and database shared the machine. These are figures of one run: their \
         ratios mean something, their absolute values do not. All but <em>queue</em> sell at once and \
         write thinner rows than the product, without audit, timed holds or money. Each history was read back from the database and judged by the auditor of \
         soldonce, which shares no code with what it judges.</p>\n</footer>\n",
        facts.concat()
    )
}

/// Text as HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}
