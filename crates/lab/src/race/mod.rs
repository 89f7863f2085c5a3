//! `soldonce lab race`: every way to sell a seat, side by side on one database. Buyers meet at a
//! barrier and want the same seats; the report counts winners, refusals, double sales and latencies.

mod outcome;
mod plan;
mod pool;
mod strategies;
mod textbook;

mod contender;
mod environment;
mod schema;

mod judge;
mod run;
mod tally;

mod html;
mod report;

mod ceilings;

use std::fs::OpenOptions;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
use clap::Args;

use self::ceilings::CeilingsReport;
use self::environment::{Environment, Servers};
use self::judge::Promise;
use self::plan::Cell;
use self::report::RaceReport;
use self::strategies::Strategy;
use crate::exit::{Exit, usage};
use crate::kit::{print_report, progress_bar, unless_stopped};
use crate::limits::{
    CEILING_RUNS_MAX, CEILING_SECONDS_MAX, RACE_BUYERS_MAX, RACE_CONNECTIONS_MAX, RACE_ROUNDS_MAX,
    RACE_SEATS_MAX,
};

/// Arguments of `soldonce lab race`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
#[command(after_help = "Examples:
  soldonce lab race                                        everything, on private servers
  soldonce lab race --strategies naive,queue --buyers 10 --seats 1
  soldonce lab race --report race.html                     the same with plots and explanations
  soldonce lab race --ceilings                             rates compared with bare PostgreSQL and Redis
  soldonce lab race --database-url postgres://me@db/test --redis-url redis://cache --json

Servers that are not named are started in temporary folders, if their programs are on this machine, and
ended with the race. In a database that is named, the race makes a schema soldonce_lab_.. of its own and
drops it at the end; nothing else is touched, but the server is kept busy: do not name one in production.

In a round all buyers meet at a barrier and want the same seats. With 3 seats there are two shapes:
every buyer names them from left to right, or (crossed) every second one from right to left and each begins
elsewhere. A cell is a strategy, a number of buyers and a shape; rounds that begin later than 5 s after
the first are left out. At the end the holder of a lease is stopped for longer than the lease lives.

Exit codes: 0 every strategy did as it promises, 1 one that should sell once sold a seat twice, or naive never
did, 2 usage, 3 a server is missing or the report cannot be written.")]
pub(crate) struct RaceArgs {
    /// Strategies, separated by commas, or all
    #[arg(long, value_delimiter = ',', default_value = "all")]
    strategies: Vec<String>,
    /// Numbers of buyers, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 20, 50, 200])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(RACE_BUYERS_MAX)))]
    buyers: Vec<u32>,
    /// Numbers of seats that each buyer wants, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 3])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(RACE_SEATS_MAX)))]
    seats: Vec<u32>,
    /// Rounds of each cell, each over fresh seats
    #[arg(long, default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(RACE_ROUNDS_MAX)))]
    rounds: u32,
    /// Connections to the database, for each strategy
    #[arg(long, default_value_t = 32)]
    connections: usize,
    /// PostgreSQL; without it a private one is started
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Redis of `lease`; without it a private one is started
    #[arg(long, value_name = "URL")]
    redis_url: Option<String>,
    /// Independent Redis servers of `redlock`, separated by commas; without them five are started
    #[arg(long, value_name = "URLS", value_delimiter = ',')]
    redlock_urls: Vec<String>,
    /// In place of the race: the rates of each strategy with 64 buyers on one event, compared with bare
    /// PostgreSQL and Redis, and whether the goals are met
    #[arg(long, conflicts_with_all = ["buyers", "seats", "rounds", "report"])]
    ceilings: bool,
    /// Seconds of each load of --ceilings
    #[arg(long, default_value_t = 2, requires = "ceilings")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CEILING_SECONDS_MAX)))]
    seconds: u32,
    /// Runs of --ceilings; the report gives medians
    #[arg(long, default_value_t = 3, requires = "ceilings")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=CEILING_RUNS_MAX))]
    runs: u32,
    /// Write a page with plots and explanations to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the race and prints its report. Refused if a strategy did not do as it promises.
pub(crate) fn run(args: &RaceArgs) -> anyhow::Result<Exit> {
    if !(2..=RACE_CONNECTIONS_MAX).contains(&args.connections) {
        let given = args.connections;
        let wrong = anyhow!("--connections {given}: must be 2 to {RACE_CONNECTIONS_MAX}");
        return Err(usage(wrong));
    }
    let mut strategies = Strategy::chosen(&args.strategies).map_err(usage)?;
    if args.ceilings {
        // The one without guards has no ceiling.
        strategies.retain(|one| one.promise == Promise::SoldOnce);
    }
    if let Some(file) = &args.report {
        // Known before the race, which takes minutes; one of an earlier race stays until this one has ended.
        let opened = OpenOptions::new().create(true).append(true).open(file);
        opened.with_context(|| format!("--report {}", file.display()))?;
    }
    let servers = Servers::start(args, &strategies)?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start the race")?;
    if args.ceilings {
        let report = runtime.block_on(measure_ceilings(args, &strategies, servers))?;
        return print_report(args.json, &report, || report.text(), report.faults.len());
    }
    let report = runtime.block_on(race(args, &strategies, servers))?;
    if let Some(file) = &args.report {
        let written = std::fs::write(file, html::page(&report));
        written.with_context(|| format!("--report {}", file.display()))?;
    }
    print_report(args.json, &report, || report.text(), report.faults.len())
}

async fn race(
    args: &RaceArgs,
    strategies: &[&'static Strategy],
    servers: Servers,
) -> anyhow::Result<RaceReport> {
    let environment = Environment::make(servers, args.connections).await?;
    let cells = Cell::all(&args.buyers, &args.seats);
    let bar = progress_bar(strategies.len() * cells.len())?;
    let raced = async {
        let raced = run::race_all(&environment, strategies, (&cells, args.rounds), &bar).await?;
        anyhow::Ok((raced, run::stop_holders(&environment, strategies).await?))
    };
    let raced = unless_stopped(raced).await;
    bar.finish_and_clear();
    let described = environment.described.clone();
    environment.clear().await?;
    let (raced, scenes) = raced?;
    Ok(RaceReport::new(args, described, (raced, scenes)))
}

/// Measures the ceilings in place of the race.
async fn measure_ceilings(
    args: &RaceArgs,
    strategies: &[&'static Strategy],
    servers: Servers,
) -> anyhow::Result<CeilingsReport> {
    let environment = Environment::make(servers, args.connections).await?;
    let bar = progress_bar((strategies.len() + 1) * usize::try_from(args.runs)?)?;
    let measured = Box::pin(ceilings::measure(&environment, strategies, args, &bar));
    let measured = unless_stopped(measured).await;
    bar.finish_and_clear();
    environment.clear().await?;
    measured
}
