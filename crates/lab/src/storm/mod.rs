//! `soldonce lab storm`: many users want few seats of any running server, over and over. Every
//! request is accounted for by its status, and nobody may win who has no seat. With `--peer` the same
//! storm is sent at the product and at a server of another make, by turns.

mod callers;
mod fixture;
mod peer;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use self::callers::makers;
use self::fixture::Fixture;
use self::report::StormReport;
use super::load::{self, LoadPlan, Pace, Until};
use crate::client::Client;
use crate::exit::{Exit, usage};
use crate::limits::{LOAD_CONNECTIONS_MAX, LOAD_SECONDS_MAX, STORM_RUNS_MAX, STORM_SEATS_MAX};
use crate::output::{print, print_json};

/// Arguments of `soldonce lab storm`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = "Examples:
  soldonce lab storm --url http://127.0.0.1:8080 --admin-key sk_..
  soldonce lab storm --url http://127.0.0.1:8080 --users 500 --seconds 30 --seats 1 --json
  soldonce lab storm --peer deploy/peer                    both beside each other, on private servers

With an admin key the storm makes an event of its own, which it cancels at the end, and each request
comes from another holder. Without one the server must be open to shoppers, as `soldonce demo` is: each user is
one session, wants seats of the first event that has enough of them free, and meets the server's rate
limits: 429 counts as an answer. What was won is given back at the end.

With --peer no server needs to run. A private PostgreSQL and a Redis are started in temporary folders;
then, in every run, one after the other: this program on its own ledger, this program on
both of them, and the server of that folder on both of them, once for each of its flows. Each is warmed up
by a short storm that does not count. `npm ci` in the folder comes first.

Exit codes: 0 every seat had its one winner and everybody else a refusal (409 or 429), 1 more winners
than seats, fewer in an event of its own, winners without a hold, another answer or none, 3 the server is
not there. A goal that is missed is told and is no failure.")]
pub(crate) struct StormArgs {
    /// The server
    #[arg(long, env = "SOLDONCE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A key with the scope admin, to make an event
    #[arg(long, env = "SOLDONCE_ADMIN_KEY", hide_env_values = true)]
    admin_key: Option<String>,
    #[command(flatten)]
    size: Size,
    /// In place of a running server: the folder of a Node server of the same routes, `deploy/peer`
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["url", "admin_key"])]
    peer: Option<PathBuf>,
    /// Runs of --peer; the report gives medians
    #[arg(long, default_value_t = 3, requires = "peer")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=STORM_RUNS_MAX))]
    runs: u32,
    /// A Redis Cluster of six nodes for --peer, in place of one Redis
    #[arg(long, requires = "peer")]
    cluster: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How large a storm is.
#[derive(Clone, Copy, Debug, Args)]
struct Size {
    /// Users, each on a connection with one request in flight
    #[arg(long, default_value_t = 200)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LOAD_CONNECTIONS_MAX)))]
    users: u32,
    /// Seconds of storm
    #[arg(long, default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LOAD_SECONDS_MAX))]
    seconds: u64,
    /// Seats that everybody wants
    #[arg(long, default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(STORM_SEATS_MAX)))]
    seats: u32,
}

/// Runs the storm and prints its report. Refused if the server gave a seat twice.
///
/// # Errors
/// When the server cannot be reached, has no event for it, or does not take back what was won.
pub(crate) fn run(args: &StormArgs) -> anyhow::Result<Exit> {
    if let Some(folder) = &args.peer {
        return peer::run(args, folder);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the storm")?;
    let (report, given_back) = runtime.block_on(storm(args))?;
    if args.json {
        print_json(&report)?;
    } else {
        print(&report.text())?;
    }
    if !report.violations.is_empty() {
        return Ok(Exit::Refused);
    }
    given_back.map(|()| Exit::Done)
}

/// The whole storm, and whether what was won is given back: the report is told either way.
///
/// # Errors
/// As [`run`].
async fn storm(args: &StormArgs) -> anyhow::Result<(StormReport, anyhow::Result<()>)> {
    let client = Client::new(&args.url, args.admin_key.as_deref().unwrap_or_default());
    send_storm(client.map_err(usage)?, args.admin_key.as_deref(), args.size).await
}

/// A storm of this size at this server.
///
/// # Errors
/// As [`run`].
async fn send_storm(
    client: Client,
    admin_key: Option<&str>,
    size: Size,
) -> anyhow::Result<(StormReport, anyhow::Result<()>)> {
    let address = client.address().await?;
    let fixture = match admin_key {
        Some(key) => Fixture::make(client, key, size.seats).await?,
        None => Fixture::find(client, size.users, size.seats).await?,
    };
    let plan = LoadPlan {
        address,
        connections: size.users,
        pace: Pace::Closed,
        until: Until::Elapsed(Duration::from_secs(size.seconds)),
    };
    let load = load::run(plan, &makers(address, &fixture)).await?;
    let held = fixture.held_in_the_end(report::winners(&load)).await?;
    let given_back = fixture.give_back().await;
    Ok((StormReport::new(size, &fixture, load, held), given_back))
}
