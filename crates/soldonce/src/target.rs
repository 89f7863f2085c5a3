//! The ledger that `soldonce events` and `soldonce keys` work on: that of a running server, or the data of a
//! stopped one.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use hyper::StatusCode;
use serde_json::Value;
use soldonce_engine::Engine;
use soldonce_server::{Client, Response};

use crate::env;
use crate::exit::{refused, usage};
use crate::serve::{DatabaseArgs, LedgerPlace, in_use};

/// Which ledger, and how the answer is printed.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The folder of a ledger whose server is stopped [default: ./data]
    #[arg(long, global = true, env = "SOLDONCE_DATA", value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    database: DatabaseArgs,
    /// A running server, as http://HOST:PORT or https://HOST:PORT
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// The admin key for `--url`; other users of the machine see flags, so rather as the variable
    #[arg(long, global = true, env = "SOLDONCE_ADMIN_KEY", value_name = "KEY")]
    #[arg(hide_env_values = true)]
    admin_key: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl TargetArgs {
    /// Returns a client of the running server, if one is named.
    pub(crate) fn client(&self) -> anyhow::Result<Option<Client>> {
        let Some(url) = &self.url else {
            return Ok(None);
        };
        // A variable may be meant for a server on this machine; a flag contradicts the address.
        for (flag, id) in [("--data", "data"), ("--database-url", "database_url")] {
            if env::is_flag(id) {
                let both = anyhow!("--url and {flag}: each names a ledger, leave one out");
                return Err(usage(both));
            }
        }
        let missing = || usage(anyhow!("--url needs an admin key: set SOLDONCE_ADMIN_KEY"));
        let key = self.admin_key.as_ref().ok_or_else(missing)?;
        let client = Client::new(url, key).map_err(|wrong| usage(wrong.into()))?;
        Ok(Some(client))
    }

    /// Opens the ledger of a stopped server. Creates none: no server would use it.
    pub(crate) async fn open(&self) -> anyhow::Result<Engine> {
        let place = LedgerPlace::named(self.data.as_deref(), &self.database)?;
        anyhow::ensure!(
            place.is_made()?,
            "there is no ledger in {place}: name --data, --database-url, or --url of a running server"
        );
        let meanwhile = "a running server takes --url and its admin key";
        place.open().await.map_err(|error| in_use(error, meanwhile))
    }
}

pub(crate) fn success(response: Response) -> anyhow::Result<Value> {
    anyhow::ensure!(
        response.status != StatusCode::UNAUTHORIZED,
        "--admin-key: the server does not know this key"
    );
    let detail = response.body.get("detail").and_then(Value::as_str);
    let is_elsewhere = response.status == StatusCode::METHOD_NOT_ALLOWED
        || detail.is_some_and(|detail| detail.contains("no such route"));
    anyhow::ensure!(
        !is_elsewhere,
        "--url: this address has no such route; give that of --admin-listen, if the server has one"
    );
    let is_refused = response.status.is_client_error();
    let done = response.into_success().map_err(anyhow::Error::from);
    if is_refused {
        return done.map_err(refused);
    }
    done
}
