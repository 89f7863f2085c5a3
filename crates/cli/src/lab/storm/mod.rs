//! `soldonce lab storm`: many users want few seats of any running server, over and over. Every
//! request is accounted for by its status, and nobody may win who has no seat.

mod callers;
mod ground;
mod report;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::Context;
use clap::Args;

use self::callers::makers;
use self::ground::Ground;
use self::report::StormReport;
use super::load::{self, LoadPlan, Pace, Until};
use crate::client::Client;
use crate::exit::{Exit, usage};
use crate::limits::{LOAD_CONNECTIONS_MAX, LOAD_SECONDS_MAX, STORM_SEATS_MAX};
use crate::output::{print, print_json};

/// Arguments of `soldonce lab storm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  soldonce lab storm --url http://127.0.0.1:8080 --admin-key sk_..
  soldonce lab storm --url http://127.0.0.1:8080 --users 500 --seconds 30 --seats 1 --json

With an admin key the storm makes an event of its own, which it cancels at the end, and each request
comes from another holder. Without one the server must be open to shoppers, as `soldonce demo` is: each user is
one session, wants seats of the first event that has enough of them free, and meets the server's rate
limits: 429 counts as an answer. What was won is given back at the end.

Exit codes: 0 no more winners than seats, 1 more winners than seats or winners without a hold, 3 the
server is not there.")]
pub(crate) struct StormArgs {
    /// The server
    #[arg(long, env = "SOLDONCE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A key with the scope admin, to make an event
    #[arg(long, env = "SOLDONCE_ADMIN_KEY", hide_env_values = true)]
    admin_key: Option<String>,
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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the storm and prints its report. Refused if the server gave a seat twice.
///
/// # Errors
/// When the server cannot be reached, has no ground for a storm, or does not take back what was won.
pub(crate) fn run(args: &StormArgs) -> anyhow::Result<Exit> {
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
    let client = client.map_err(usage)?;
    let address = client.address().await?;
    let ground = match &args.admin_key {
        Some(key) => Ground::make(client, key, args.seats).await?,
        None => Ground::find(client, args.users, args.seats).await?,
    };
    let plan = LoadPlan {
        address,
        connections: args.users,
        pace: Pace::Closed,
        until: Until::Elapsed(Duration::from_secs(args.seconds)),
    };
    let load = load::run(plan, &makers(address, &ground)).await?;
    let held = ground.held_in_the_end(report::winners(&load)).await?;
    let given_back = ground.give_back().await;
    Ok((StormReport::new(args, &ground, load, held), given_back))
}
