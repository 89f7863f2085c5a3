//! The `soldonce` binary: one file per subcommand, each with its arguments and a `run`.

#![expect(
    clippy::print_stdout,
    reason = "a command line tool prints its reports"
)]
#![expect(clippy::print_stderr, reason = "and its errors")]

mod exit;
mod lab;
mod limits;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{Exit, UNAVAILABLE};

/// Hold scarce things for a moment; sell each of them once.
#[derive(Debug, Parser)]
#[command(name = "soldonce", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures and proves: benchmarks, races, storms, simulation
    Lab(lab::LabArgs),
}

fn main() -> ExitCode {
    let done: anyhow::Result<Exit> = match Cli::parse().command {
        Command::Lab(args) => lab::run(args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("soldonce: {error:#}");
            ExitCode::from(UNAVAILABLE)
        }
    }
}
