//! `soldonce lab storm`: many users want few seats of any running server, over and over. Counts every
//! request by its status and checks that no seat has two winners. With `--peer` the same storm is sent to
//! the product and to a Node server of the same routes, by turns.

mod callers;
mod fixture;
mod peer;
mod report;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use soldonce_server::Client;

use self::callers::makers;
use self::fixture::Fixture;
use self::report::{StormReport, StormReports};
use super::load::{self, LoadPlan, Pace, Transport, Until};
use crate::exit::{Exit, usage};
use crate::kit::{CpuTime, print_report};
use crate::limits::{
    LOAD_CONNECTIONS_MAX, LOAD_SECONDS_MAX, STORM_RUNS_MAX, STORM_SEATS_MAX,
    STORM_WARMUP_SECONDS_MAX,
};

/// Arguments of `soldonce lab storm`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = "Examples:
  soldonce lab storm --url http://127.0.0.1:8080 --admin-key sk_..
  soldonce lab storm --url http://127.0.0.1:8080 --users 500 --seconds 30 --seats 1 --json
  soldonce lab storm --url http://127.0.0.1:8080 --admin-key sk_.. --transport http,grpc
  soldonce lab storm --peer deploy/peer                    both compared, on private servers

With an admin key the storm makes an event of its own, which it cancels at the end, and each request
comes from another holder. Without one the server must be open to shoppers, as `soldonce demo` is: each user is
one session, wants seats of the first event that has enough of them free, and meets the server's rate
limits: 429 counts as an answer. The holds are released at the end.

With --peer no server needs to run. A private PostgreSQL and a Redis are started in temporary folders;
then, in every run, one after the other: this program on its own ledger, this program on
both of them, and the server of that folder on both of them, once for each of its flows. Each is warmed up
by a short storm that does not count. `npm ci` in the folder comes first.

Exit codes: 0 every seat had its one winner and every other request a refusal (409 or 429), 1 more winners
than seats, fewer in an event of its own, winners without a hold, another answer or none, 3 the server
cannot be reached. A missed goal is printed and is no failure.")]
pub(crate) struct StormArgs {
    /// The server
    #[arg(long, env = "SOLDONCE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A key with the scope admin, to make an event
    #[arg(long, env = "SOLDONCE_ADMIN_KEY", hide_env_values = true)]
    admin_key: Option<String>,
    /// What the holds are sent as; of several the storms come one after the other, each at an event of its own, after
    /// a short one of each that does not count. gRPC needs an admin key
    #[arg(long, value_enum, value_delimiter = ',', default_value = "http")]
    #[arg(conflicts_with = "peer")]
    transport: Vec<Transport>,
    #[command(flatten)]
    size: Size,
    /// In place of a running server, whose address and key are not used then: the folder of a Node server of the same
    /// routes, `deploy/peer`
    #[arg(long, value_name = "FOLDER")]
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
    /// Seats that every user wants
    #[arg(long, default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(STORM_SEATS_MAX)))]
    seats: u32,
}

impl Size {
    /// Returns the size of a storm that warms a server up: shorter.
    fn of_warm_up(self) -> Self {
        let seconds = self.seconds.min(STORM_WARMUP_SECONDS_MAX);
        Self { seconds, ..self }
    }
}

/// Runs the storm and prints its report. Refused after a violation, such as a seat given twice.
pub(crate) fn run(args: &StormArgs) -> anyhow::Result<Exit> {
    if let Some(folder) = &args.peer {
        return peer::run(args, folder);
    }
    if args.transport.contains(&Transport::Grpc) && args.admin_key.is_none() {
        return Err(usage(anyhow!("--transport grpc: give --admin-key")));
    }
    let (reports, all_given_back) = load::block_on(storms(args))?;
    let reports = StormReports::new(reports);
    match print_report(args.json, &reports, || reports.text(), reports.violations())? {
        Exit::Done => all_given_back.map(|()| Exit::Done),
        Exit::Refused => Ok(Exit::Refused),
    }
}

/// Sends a storm over each transport; the second result says whether all holds were released.
async fn storms(args: &StormArgs) -> anyhow::Result<(Vec<StormReport>, anyhow::Result<()>)> {
    let mut reports: Vec<StormReport> = Vec::new();
    let mut all_given_back = Ok(());
    // The second of two that are compared must find the server no warmer than the first.
    let warm_up = (args.transport.len() > 1).then(|| args.size.of_warm_up());
    for size in warm_up.into_iter().chain([args.size]) {
        let mut stormed = Vec::new();
        for transport in &args.transport {
            let (report, given_back) = storm(args, (*transport, size)).await?;
            stormed.push(report);
            all_given_back = all_given_back.and(given_back);
        }
        for (report, before) in stormed.iter_mut().zip(reports) {
            report.violations.extend(before.violations);
        }
        reports = stormed;
    }
    Ok((reports, all_given_back))
}

/// Sends the storm; the second result says whether its holds were released.
async fn storm(
    args: &StormArgs,
    load: (Transport, Size),
) -> anyhow::Result<(StormReport, anyhow::Result<()>)> {
    let key = args.admin_key.as_deref();
    let client = Client::new(&args.url, key.unwrap_or_default());
    send_storm(client.map_err(|wrong| usage(wrong.into()))?, key, load).await
}

/// Sends a storm of this size to this server.
async fn send_storm(
    client: Client,
    admin_key: Option<&str>,
    (transport, size): (Transport, Size),
) -> anyhow::Result<(StormReport, anyhow::Result<()>)> {
    let address = client.address().await?;
    let fixture = match admin_key {
        Some(key) => Fixture::make(client, key, size.seats).await?,
        None => Fixture::find(client, size.users, size.seats).await?,
    };
    let plan = LoadPlan {
        address,
        transport,
        connections: size.users,
        pace: Pace::Closed,
        until: Until::Elapsed(Duration::from_secs(size.seconds)),
    };
    let before = CpuTime::own()?;
    let load = load::run(plan, &makers(transport, address, &fixture)).await?;
    let cpu = CpuTime::own()?.since(before);
    let winners = load.count(transport.status(report::CREATED));
    let held = fixture.held_in_the_end(winners).await?;
    let given_back = fixture.give_back().await;
    let report = StormReport::new((transport, size), &fixture, (load, cpu), held);
    Ok((report, given_back))
}
