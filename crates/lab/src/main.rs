//! `soldonce-lab`: measures Soldonce and races it with other ways to sell a seat. `soldonce lab` runs it.

#![expect(clippy::print_stderr, reason = "a command line tool prints its errors")]

mod bench;
mod exit;
mod kit;
mod limits;
mod load;
mod output;
mod race;
mod storm;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{Exit, code_of};

/// Measures and proves Soldonce.
#[derive(Debug, Parser)]
#[command(
    name = "soldonce-lab",
    bin_name = "soldonce lab",
    version,
    arg_required_else_help = true
)]
struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Rates and latencies compared with their ceiling, measured in the same run
    Bench(bench::BenchArgs),
    /// A steady load for minutes, and what the server takes of memory meanwhile
    Endure(bench::EndureArgs),
    /// Many users want few seats of a running server: every answer counted, no seat given twice
    Storm(storm::StormArgs),
    /// Every way to sell a seat, side by side on one database: which sells it twice, what it costs
    Race(Box<race::RaceArgs>),
    /// The ceiling of `bench`, served in a process of its own
    #[command(hide = true)]
    BenchServer,
    /// The ceiling of its viewers
    #[command(hide = true)]
    BenchFanOut(bench::FanOutPlan),
}

fn main() -> ExitCode {
    let done: anyhow::Result<Exit> = match Lab::parse().command {
        LabCommand::Bench(args) => bench::run(&args),
        LabCommand::Endure(args) => bench::endure(&args),
        LabCommand::Storm(args) => storm::run(&args),
        LabCommand::Race(args) => race::run(&args),
        LabCommand::BenchServer => bench::run_server(),
        LabCommand::BenchFanOut(plan) => bench::run_fan_out(&plan),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("soldonce lab: {error:#}");
            code_of(&error)
        }
    }
}
