//! A summary as a table for people.

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

use super::report::{ScenarioSummary, Summary};

/// The summary as a table with its legend.
pub(super) fn table(summary: &Summary) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "scenario",
        "requests/s",
        "lowest..highest",
        "/ echo",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
        "server CPU",
        "generator CPU",
        "answers",
        "violations",
    ]);
    for scenario in &summary.scenarios {
        table.add_row(row(scenario));
    }
    for column in table.column_iter_mut().skip(1).take(10) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let setting = &summary.setting;
    let pace = setting.rate_per_s.map_or("closed loop".to_owned(), |rate| {
        format!("open loop at {rate}/s, latency from the planned time")
    });
    let abouts = summary.scenarios.iter();
    let abouts: Vec<_> = abouts
        .map(|one| format!("{}: {}", one.name, one.about))
        .collect();
    format!(
        "{table}\n{} connections, {} s, {pace}, {} cores shared by server and generator, load \
         average {} before. Latencies in us; CPU in us per request.\n{}",
        setting.connections,
        setting.seconds,
        setting.cores,
        setting.load_average,
        abouts.join("\n"),
    )
}

fn row(scenario: &ScenarioSummary) -> Vec<String> {
    let lowest = scenario
        .rates_per_s
        .iter()
        .min()
        .copied()
        .unwrap_or_default();
    let highest = scenario
        .rates_per_s
        .iter()
        .max()
        .copied()
        .unwrap_or_default();
    let latency = scenario.latency_us;
    let mut cells = vec![
        scenario.name.to_owned(),
        scenario.rate_per_s.to_string(),
        format!("{lowest}..{highest}"),
        scenario.ratio_permille.map_or("-".to_owned(), thousandths),
    ];
    let latencies = [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.max,
    ];
    cells.extend(latencies.map(|micros| micros.to_string()));
    let cpu = [
        scenario.server_cpu_ns_per_request,
        scenario.generator_cpu_ns_per_request,
    ];
    cells.extend(cpu.map(|nanos| nanos.map_or("-".to_owned(), thousandths)));
    let statuses = scenario
        .statuses
        .iter()
        .map(|(status, count)| format!("{status}: {count}"));
    let errors = scenario
        .errors
        .iter()
        .map(|(error, count)| format!("{error:?}: {count}"));
    let missed = (scenario.missed > 0).then(|| format!("never sent: {}", scenario.missed));
    let refused = (!scenario.as_expected).then(|| "NOT AS EXPECTED".to_owned());
    let answers: Vec<_> = statuses
        .chain(errors)
        .chain(missed)
        .chain(refused)
        .collect();
    cells.push(answers.join("\n"));
    cells.push(
        scenario
            .violations
            .map_or("-".to_owned(), |found| found.to_string()),
    );
    cells
}

/// 1,234 thousandths as `1.234`.
pub(crate) fn thousandths(value: u64) -> String {
    format!("{}.{:03}", value / 1_000, value % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_keep_their_zeros() {
        assert_eq!(thousandths(12_005), "12.005");
    }
}
