//! `soldonce chart check`: reads a seat plan and prints what it holds or where it is wrong.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use soldonce_engine::chart::{ChartSummary, read, read_pretix_plan, summary};

use crate::exit::Exit;
use crate::output::{print_json, report};

/// Arguments of `soldonce chart`.
#[derive(Debug, Args)]
pub(crate) struct ChartArgs {
    #[command(subcommand)]
    command: ChartCommand,
}

#[derive(Debug, Subcommand)]
enum ChartCommand {
    /// Reads a seat plan and prints what it holds or where it is wrong
    #[command(after_help = "Examples:
  soldonce chart check charts/playhouse.json
  soldonce chart check plan.json --format pretix --json

Exit code 1 when the plan is wrong, 3 when the file cannot be read.")]
    Check {
        /// The seat plan, a JSON file
        file: PathBuf,
        /// Of which format the file is, if it does not say so itself
        #[arg(long, value_enum)]
        format: Option<PlanFormat>,
        /// Print the summary as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PlanFormat {
    /// A bare plan as the pretix seating editor exports it
    Pretix,
}

pub(crate) fn run(args: &ChartArgs) -> anyhow::Result<Exit> {
    let ChartCommand::Check { file, format, json } = &args.command;
    let text = std::fs::read(file)
        .with_context(|| format!("the seat plan {} cannot be read", file.display()))?;
    let plan = match format {
        Some(PlanFormat::Pretix) => read_pretix_plan(&text),
        None => read(&text),
    };
    let plan = match plan {
        Ok(plan) => summary(&plan),
        Err(invalid) => {
            let is_bare = format.is_none() && read_pretix_plan(&text).is_ok();
            let hint = if is_bare {
                "; it is a plan as pretix exports it: give --format pretix, and in an event write \
                 {\"format\":\"pretix\",\"plan\":..}"
            } else {
                ""
            };
            let wrong = format!("{}: {invalid}{hint}", file.display());
            if *json {
                print_json(&json!({ "error": wrong }))?;
            } else {
                eprintln!("{wrong}");
            }
            return Ok(Exit::Refused);
        }
    };
    report(*json, &plan, || describe(&plan))?;
    Ok(Exit::Done)
}

fn describe(plan: &ChartSummary) -> String {
    let name = match plan.name.as_str() {
        "" => "the chart",
        name => name,
    };
    let mut lines = vec![format!(
        "{name}: {} in {} of {}, {} in all",
        counted(plan.seats, "seat"),
        counted(plan.rows, "row"),
        counted(plan.zones, "zone"),
        counted(plan.units, "unit"),
    )];
    lines.extend(plan.categories.iter().map(|category| {
        let (seats, places) = (category.seats, category.places);
        format!(
            "  category {}: {}, {}",
            category.category,
            counted(seats, "seat"),
            counted(places, "place"),
        )
    }));
    lines.extend(plan.areas.iter().map(|area| {
        let places = counted(area.capacity, "place");
        format!("  area {}: {places} of {}", area.area, area.category)
    }));
    if !plan.positions {
        lines.push("  no positions: the map lays the rows out itself".to_owned());
    }
    lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
    lines.join("\n") + "\n"
}

/// Formats a count with its noun: `1 zone`, `2 zones`.
fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, one: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {one}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_without_a_name_is_called_the_chart_and_one_zone_is_no_zones() {
        let grid = br#"{"format":"grid","rows":3,"seats_per_row":6,"category":"Standard"}"#;
        let said = describe(&summary(&read(grid).unwrap()));
        let first = said.lines().next().unwrap();
        assert_eq!(
            first,
            "the chart: 18 seats in 3 rows of 1 zone, 18 units in all"
        );
        assert!(
            said.contains("category Standard: 18 seats, 0 places"),
            "{said}"
        );
    }
}
