//! `soldonce clock`: the ledger's clock, where it is ahead of the machine's.

use std::sync::Arc;

use clap::{Args, Subcommand};
use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_engine::ledger::postgres::{Durability, PostgresOptions};
use soldonce_engine::ledger::{ClockCorrected, postgres, sqlite};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;

use crate::block_on;
use crate::exit::Exit;
use crate::output::report;
use crate::serve::{LedgerArgs, LedgerPlace};

/// Arguments of `soldonce clock`.
#[derive(Debug, Args)]
pub(crate) struct ClockArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sets the clock of a stopped ledger back to the machine's, if it is ahead
    Correct(CorrectArgs),
}

/// Arguments of `soldonce clock correct`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce clock correct --data /var/lib/soldonce
  soldonce clock correct --database-url postgres://soldonce@db/soldonce --json

For a ledger that was written while the machine's clock was wrong, and is hours ahead since (`doctor`,
`/readyz` and the metric soldonce_ledger_clock_ahead_seconds say so). See that the clock is right now, and
stop every server and pool first. Every hold keeps the time it has left, and the history of every event
says by how much the clock went back. Nothing is done where the ledger is not ahead.")]
struct CorrectArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
}

pub(crate) fn run(args: &ClockArgs) -> anyhow::Result<Exit> {
    let Command::Correct(args) = &args.command;
    let place = args.ledger.place()?;
    let corrected = match &place {
        LedgerPlace::Folder(options) => {
            sqlite::correct_clock(options, &SystemClock, &SystemEntropy)
                .map_err(LedgerPlace::unread)?
        }
        LedgerPlace::Database(options) => {
            // Nothing is acknowledged to a buyer.
            let options = &PostgresOptions {
                durability: Durability::Waived,
                ..options.clone()
            };
            let live = Arc::new(Live::new(Arc::new(Metrics::default())));
            let clock = Arc::new(SystemClock);
            let correcting = postgres::correct_clock(options, clock, &SystemEntropy, live);
            block_on(correcting)??
        }
    };
    report(args.ledger.json, &corrected, || {
        describe(&place, &corrected)
    })?;
    Ok(Exit::Done)
}

fn describe(place: &LedgerPlace, corrected: &ClockCorrected) -> String {
    let (set_back_ms, events, holds) = (corrected.set_back_ms, corrected.events, corrected.holds);
    if set_back_ms == 0 {
        return format!("the clock of the ledger in {place} is not ahead: nothing to correct\n");
    }
    format!(
        "the clock of the ledger in {place} is set back by {set_back_ms} ms: {events} events say so, \
         {holds} holds keep the time they have left\n"
    )
}
