//! The plots of one shape: how much is answered, and how long the slowest wait, by buyers.

use super::super::report::{CellReport, RaceReport};
use super::escape;
use super::lines::{Line, Plot};
use super::scale::Scale;
use crate::race::table::number;

const ALONG: &str = "buyers";

/// A section with both plots.
pub(super) fn section(report: &RaceReport, shape: &str) -> String {
    let rates = |cell: &CellReport| drawn(cell.figures.answers_per_s);
    let p99s = |cell: &CellReport| drawn(cell.figures.p99_us);
    let plots = [
        plot(report, shape, ("Answers per second", rates, false)),
        plot(
            report,
            shape,
            ("Slowest of a hundred answers (p99)", p99s, true),
        ),
    ];
    let title = escape(shape);
    let about = match shape {
        _ if shape.ends_with("crossed") => {
            "Everybody wants neighbouring seats that overlap with everybody else's; every second \
             buyer names them from right to left."
        }
        "1 seat" => "Everybody wants the same seat.",
        _ => "Everybody wants the same seats, named from left to right.",
    };
    format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"about\">{about}</p>\n<div class=\"plots\">\n{}</div>\n\
         </section>\n",
        plots.concat()
    )
}

type Figure = (&'static str, fn(&CellReport) -> f64, bool);

fn plot(report: &RaceReport, shape: &str, (title, figure, is_time): Figure) -> String {
    let mut places: Vec<u32> = Vec::new();
    let mut lines = Vec::new();
    for strategy in &report.strategies {
        let of_shape = strategy
            .cells
            .iter()
            .filter(|cell| cell.shape_name == shape);
        let cells: Vec<_> = of_shape.collect();
        places = cells.iter().map(|cell| cell.buyers).collect();
        let values = cells.iter().map(|cell| figure(cell)).collect();
        let name = strategy.name;
        lines.push(Line { name, values });
    }
    let all: Vec<f64> = lines
        .iter()
        .flat_map(|line| &line.values)
        .copied()
        .collect();
    let (scale, shown): (_, fn(f64) -> String) = if is_time {
        (Scale::log(&all), time)
    } else {
        (Scale::linear(&all), rate)
    };
    let plot = Plot {
        title,
        along: ALONG,
        places: places.iter().map(ToString::to_string).collect(),
        lines,
        scale,
        shown,
    };
    plot.figure()
}

/// A count to draw with: nothing here is beyond four thousand millions.
pub(super) fn drawn(value: u64) -> f64 {
    f64::from(u32::try_from(value).unwrap_or(u32::MAX))
}

/// A rate in words.
fn rate(value: f64) -> String {
    let text = format!("{value:.0}");
    text.parse().map_or(text, number)
}

/// Microseconds in words.
#[expect(clippy::float_arithmetic, reason = "units of time")]
pub(super) fn time(micros: f64) -> String {
    let short = |value: f64, unit: &str| {
        let text = if value < 10.0 && value.fract() > 0.0 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        };
        format!("{text} {unit}")
    };
    if micros >= 1e6 {
        short(micros / 1e6, "s")
    } else if micros >= 1e3 {
        short(micros / 1e3, "ms")
    } else {
        short(micros, "µs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_told_in_their_units() {
        let times = [100.0, 1_000.0, 4_440.0, 24_000.0, 5_046_000.0].map(time);
        assert_eq!(times, ["100 µs", "1 ms", "4.4 ms", "24 ms", "5.0 s"]);
        assert_eq!([0.0, 16_600.0].map(rate), ["0", "16,600"]);
    }
}
