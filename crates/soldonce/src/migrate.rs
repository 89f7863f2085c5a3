//! `soldonce migrate`: brings a ledger's schema up to date without serving. On a folder `serve` does
//! it too; a database that many servers share is migrated by this alone, once.

use clap::Args;
use soldonce_engine::ledger::Migrated;

use crate::block_on;
use crate::exit::Exit;
use crate::output::report;
use crate::serve::{LedgerArgs, LedgerPlace};

/// Arguments of `soldonce migrate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce migrate --data /var/lib/soldonce
  soldonce migrate --database-url postgres://soldonce@db/soldonce --json
  soldonce migrate --database-url postgres://soldonce@db/soldonce --dry-run

A folder must not be in use: stop its server first; one that is not there is made. A database may be in
use: the tables are locked while they change. Give its direct address, not that of a pool in transaction
mode. Several may migrate one database at the same moment: one of them takes the steps, the others wait
for it. A ledger that is newer than this program is left alone: exit code 3.")]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Only say which steps would be taken; exit code 1 if there are any
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<Exit> {
    let place = args.ledger.place()?;
    let migrated = if args.dry_run {
        block_on(place.migration())??
    } else {
        block_on(place.migrate())??
    };
    let is_open = args.dry_run && !migrated.steps.is_empty();
    let described = if is_open { describe_open } else { describe };
    report(args.ledger.json, &migrated, || described(&place, &migrated))?;
    Ok(Exit::done_if(!is_open))
}

fn describe_open(place: &LedgerPlace, open: &Migrated) -> String {
    let (before, then, steps) = (open.schema_before, open.schema, open.steps.join(", "));
    format!("the ledger in {place} has schema {before}; to {then} it takes: {steps}\n")
}

fn describe(place: &LedgerPlace, migrated: &Migrated) -> String {
    let (before, now) = (migrated.schema_before, migrated.schema);
    let taken = match migrated.steps.as_slice() {
        [] => String::new(),
        steps => format!(", it was {before}: {}", steps.join(", ")),
    };
    format!("the ledger in {place} is up to date: schema {now}{taken}\n")
}
