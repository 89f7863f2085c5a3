//! The ledger that `soldonce events` and `soldonce keys` work on: that of a running server, or the data of a
//! stopped one.

use std::path::PathBuf;

use clap::Args;
use hyper::StatusCode;
use serde_json::Value;
use soldonce_engine::Engine;
use soldonce_server::{Client, Response};

use crate::exit::usage;
use crate::serve::{DatabaseArgs, LedgerPlace};

/// Which ledger, and how the answer is printed.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The folder of a ledger whose server is stopped [default: ./data]
    #[arg(long, global = true, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// A running server, as http://HOST:PORT or https://HOST:PORT
    #[arg(
        long,
        global = true,
        value_name = "URL",
        requires = "admin_key",
        conflicts_with = "data"
    )]
    url: Option<String>,
    /// The admin key for `--url`
    #[arg(
        long,
        global = true,
        env = "SOLDONCE_ADMIN_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    admin_key: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl TargetArgs {
    /// Returns a client of the running server, if one is named.
    pub(crate) fn client(&self) -> anyhow::Result<Option<Client>> {
        let (Some(url), Some(key)) = (&self.url, &self.admin_key) else {
            return Ok(None);
        };
        let client = Client::new(url, key).map_err(|wrong| usage(wrong.into()))?;
        Ok(Some(client))
    }

    /// Opens the ledger of a stopped server. Makes none: no server would know it.
    pub(crate) async fn open(&self) -> anyhow::Result<Engine> {
        let place = LedgerPlace::new(self.data.clone(), &self.database)?;
        anyhow::ensure!(
            place.is_made(),
            "there is no ledger in {place}: name --data, or --url of a running server"
        );
        place.open().await
    }
}

/// Returns the body of a success.
pub(crate) fn success(response: Response) -> anyhow::Result<Value> {
    anyhow::ensure!(
        response.status != StatusCode::UNAUTHORIZED,
        "--admin-key: the server does not know this key"
    );
    Ok(response.into_success()?)
}
