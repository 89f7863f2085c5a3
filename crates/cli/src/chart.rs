//! `soldonce chart check`: reads a seat plan and prints what it holds or where it is wrong.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use soldonce_engine::chart::{ChartSummary, read, read_pretix_plan, summary};

use crate::exit::Exit;
use crate::output::{print, print_json};

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
  soldonce chart check plan.json --format pretix --json")]
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

/// Runs `soldonce chart`.
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
            eprintln!("{}: {invalid}", file.display());
            return Ok(Exit::Refused);
        }
    };
    if *json {
        print_json(&plan)?;
    } else {
        print(&describe(&plan))?;
    }
    Ok(Exit::Done)
}

fn describe(plan: &ChartSummary) -> String {
    let mut lines = vec![format!(
        "{}: {} seats in {} rows of {} zones, {} units in all",
        plan.name, plan.seats, plan.rows, plan.zones, plan.units
    )];
    lines.extend(plan.categories.iter().map(|category| {
        let (seats, places) = (category.seats, category.places);
        format!(
            "  category {}: {seats} seats, {places} places",
            category.category
        )
    }));
    lines.extend(plan.areas.iter().map(|area| {
        format!(
            "  area {}: {} places of {}",
            area.area, area.capacity, area.category
        )
    }));
    if !plan.positions {
        lines.push("  no positions: the map lays the rows out itself".to_owned());
    }
    lines.extend(plan.notes.iter().map(|note| format!("  note: {note}")));
    lines.join("\n") + "\n"
}
