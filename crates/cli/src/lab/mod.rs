//! `soldonce lab`: what measures and proves the engine.

mod bench;
mod load;
mod race;
mod storm;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Arguments of `soldonce lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
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
    /// The server under test of `lab bench`, in a process of its own
    #[command(hide = true)]
    BenchServer(bench::BenchServerArgs),
}

/// Runs one command of the lab.
pub(crate) fn run(args: LabArgs) -> anyhow::Result<Exit> {
    match args.command {
        LabCommand::Bench(args) => bench::run(&args),
        LabCommand::Storm(args) => storm::run(&args),
        LabCommand::Race(args) => race::run(&args),
        LabCommand::BenchServer(args) => bench::run_server(&args),
    }
}
