//! `soldonce migrate`: brings a ledger's schema up to date without serving. `serve` does it too;
//! this is for whoever wants to see it done first.

use std::path::PathBuf;

use clap::Args;

use soldonce_engine::ledger::sqlite::SqliteOptions;

use crate::exit::Exit;
use crate::output::print;
use crate::serve::open_engine;

/// Arguments of `soldonce migrate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  soldonce migrate --data /var/lib/soldonce

Needs the ledger to itself: stop the server first. A ledger that is newer than this program is left
alone and told so.")]
pub(crate) struct MigrateArgs {
    /// The folder of the embedded ledger; made if it is not there
    #[arg(
        long,
        env = "SOLDONCE_DATA",
        value_name = "FOLDER",
        default_value = "./data"
    )]
    data: PathBuf,
}

/// Runs `soldonce migrate`.
pub(crate) fn run(args: &MigrateArgs) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let engine = open_engine(&SqliteOptions::new(&args.data)).await?;
        engine.close().await;
        print(&format!(
            "the ledger in {} is up to date\n",
            args.data.display()
        ))?;
        Ok(Exit::Done)
    })
}
