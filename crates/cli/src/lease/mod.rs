//! `soldonce lease run`: runs a command only while a lease is held, and ends it before the lease
//! ends. `lease.md` 9.

mod args;
mod backend;
mod child;
mod outcome;
mod report;
mod run;
mod signals;
mod status;
mod supervise;

#[cfg(test)]
mod tests;

use clap::{Args, Subcommand};

use crate::exit::Exit;

/// Arguments of `soldonce lease`.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    #[command(subcommand)]
    command: LeaseCommand,
}

#[derive(Debug, Subcommand)]
enum LeaseCommand {
    /// Runs CMD only while holding the lease NAME, and ends it before the lease ends
    #[command(
        after_help = "Exit codes: those of CMD; else 110 refused or wait timed out, \
        111 unknown, 112 lease lost (CMD was ended), 113 backend or configuration, 2 usage, \
        126 CMD cannot run, 127 CMD not found, 128+n CMD or this command ended by signal n.

Examples:
  soldonce lease run nightly --redis-url redis://10.0.0.5 -- ./report.sh
  soldonce lease run nightly --database-url postgres://app@db/app --at-least 1m -- ./report.sh"
    )]
    Run(Box<args::RunArgs>),
    /// Becomes CMD, and dies with the process that started this
    #[command(hide = true)]
    Become(child::BecomeArgs),
}

/// Runs `soldonce lease`.
pub(crate) fn run(args: &LeaseArgs) -> anyhow::Result<Exit> {
    match &args.command {
        LeaseCommand::Run(args) => run::run(args),
        LeaseCommand::Become(args) => Ok(child::become_command(args)),
    }
}
