//! `soldonce-lab`: what measures and proves the engine. `soldonce lab` runs it.

#![expect(
    clippy::print_stdout,
    reason = "a command line tool prints its reports"
)]
#![expect(clippy::print_stderr, reason = "and its errors")]

mod bench;
mod client;
mod exit;
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
    /// Rates and latencies beside their ceiling, measured in the same run
    Bench(bench::BenchArgs),
    /// Many users want few seats of a running server: every answer counted, no seat given twice
    Storm(storm::StormArgs),
    /// Every way to sell a seat, side by side on one database: who sells it twice, what it costs
    Race(Box<race::RaceArgs>),
    /// The server under test of `bench`, in a process of its own
    #[command(hide = true)]
    BenchServer(bench::BenchServerArgs),
}

fn main() -> ExitCode {
    let done: anyhow::Result<Exit> = match Lab::parse().command {
        LabCommand::Bench(args) => bench::run(&args),
        LabCommand::Storm(args) => storm::run(&args),
        LabCommand::Race(args) => race::run(&args),
        LabCommand::BenchServer(args) => bench::run_server(&args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("soldonce lab: {error:#}");
            code_of(&error)
        }
    }
}
