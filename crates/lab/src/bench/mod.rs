//! `soldonce lab bench`: each scenario is compared with its ceiling, the bare echo, in the same run. Only
//! the ratio counts: the machine's own speed drifts, so that rates of different days do not compare.

mod comeback;
mod echo;
mod endure;
mod fan_out;
mod fill;
mod fresh;
mod group_commit;
mod halls;
mod hot;
mod ledger;
mod look;
mod product;
mod report;
mod rounds;
mod scenario;
mod viewers;
mod watching;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;

pub(crate) use self::echo::run_server;
pub(crate) use self::endure::{EndureArgs, run as endure};
pub(crate) use self::fan_out::{Plan as FanOutPlan, run_server as run_fan_out};

use self::report::{BenchReport, Outcome};
use self::rounds::measure_all;
use self::scenario::{ALL, CEILING, Scenario};
use crate::exit::{Exit, usage};
use crate::kit::print_report;
use crate::limits::{
    BENCH_QUICK_REQUESTS, BENCH_RUNS_MAX, LOAD_CONNECTIONS_MAX, LOAD_RATE_MAX, LOAD_SECONDS_MAX,
    VIEWED_SERVERS_MAX, VIEWERS_MAX,
};
use crate::load::{Pace, Transport, Until};

/// The scenario whose open loop is compared with the ceiling's.
const OPEN: &str = "holds";

/// Arguments of `soldonce lab bench`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(crate) struct BenchArgs {
    /// What to measure, separated by commas [default: all but halls]; `halls` alone compares halls
    /// of a million seats with small ones and takes minutes
    #[arg(long, value_delimiter = ',')]
    scenarios: Vec<String>,
    /// What requests are sent as: over gRPC the ceiling is a bare tonic echo, and `echo`, `refusals` and `holds`
    /// are measured
    #[arg(long, value_enum, default_value_t)]
    transport: Transport,
    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LOAD_CONNECTIONS_MAX)))]
    connections: u32,
    /// Seconds of load per run and scenario
    #[arg(long, default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LOAD_SECONDS_MAX))]
    seconds: u64,
    /// Requests per run and scenario, in place of seconds: for counting instructions and calls
    #[arg(long, conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Runs; the report gives medians
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Open loop: requests per second, at equal distances; latency counts from the planned time.
    /// Without it the loop is closed
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=LOAD_RATE_MAX))]
    rate: Option<u64>,
    /// Viewers of one event, during its sale: what they cost it, and how late they see a change. Nothing else
    /// is measured then; --rate is the changes per second
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(VIEWERS_MAX)))]
    #[arg(conflicts_with_all = ["scenarios", "transport", "connections", "requests", "quick"])]
    viewers: Option<u32>,
    /// Servers on a private PostgreSQL, in place of one on a folder: the viewers are spread over them, and the
    /// sale is at the first
    #[arg(long, requires = "viewers", conflicts_with = "data")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=VIEWED_SERVERS_MAX))]
    servers: Option<u32>,
    /// Kill the server under its viewers and start it again: how soon all of them are back, and what buyers
    /// notice
    #[arg(long, requires = "viewers", conflicts_with = "servers")]
    restart: bool,
    /// Where the ledgers under test are made and removed [default: the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// A few hundred requests of each, to see that all is well; the figures say little
    #[arg(long, conflicts_with_all = ["seconds", "requests"])]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BenchArgs {
    /// Returns how many requests are sent, if that is set in place of seconds.
    fn requests(&self) -> Option<u64> {
        self.requests.or(self.quick.then_some(BENCH_QUICK_REQUESTS))
    }

    /// Returns when a measured load ends.
    fn until(&self) -> Until {
        let span = Duration::from_secs(self.seconds);
        self.requests()
            .map_or(Until::Elapsed(span), Until::Requests)
    }
}

/// Runs the benchmark and prints its report. Refused if a run was not as its scenario expects.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    if !(1..=BENCH_RUNS_MAX).contains(&args.runs) {
        let wrong = anyhow!("--runs {}: must be 1 to {BENCH_RUNS_MAX}", args.runs);
        return Err(usage(wrong));
    }
    match args.viewers {
        Some(count) if args.restart => return comeback::run(args, count),
        Some(count) => return viewers::run(args, count),
        None => {}
    }
    if args.scenarios == [halls::NAME] {
        halls::check(args).map_err(usage)?;
        return halls::run(args);
    }
    let scenarios = chosen(args).map_err(usage)?;
    let pace = args.rate.map_or(Pace::Closed, Pace::Open);
    let report = measure_all(args, &scenarios, pace)?;
    let open = match pace {
        Pace::Closed if args.transport == Transport::Http => {
            measure_open(args, &scenarios, &report)?
        }
        Pace::Closed | Pace::Open(_) => None,
    };
    let outcome = Outcome::new(&report, open.as_ref());
    let reports = [Some(&report), open.as_ref()].into_iter().flatten();
    let unexpected = reports.filter(|report| !report.is_as_expected()).count();
    print_report(args.json, &outcome, || outcome.text(), unexpected)
}

fn chosen(args: &BenchArgs) -> anyhow::Result<Vec<&'static Scenario>> {
    let names = &args.scenarios;
    let known = ALL.iter().filter(|scenario| scenario.suits(args));
    if names.is_empty() {
        return Ok(known.collect());
    }
    let found = names.iter();
    let found = found.map(|name| known.clone().find(|scenario| scenario.name == name));
    let found: Option<Vec<_>> = found.collect();
    found.with_context(|| {
        let known: Vec<_> = known.map(|scenario| scenario.name).collect();
        let (asked, known) = (names.join(","), known.join(", "));
        let with = match (args.transport, args.rate) {
            (Transport::Grpc, _) => " with --transport grpc",
            (Transport::Http, Some(_)) => " with --rate",
            (Transport::Http, None) => "",
        };
        format!(
            "--scenarios {asked}: known{with} are {known}; {} alone",
            halls::NAME
        )
    })
}

/// Measures the open loop of holds and of the echo, at half the peak of holds. None unless both
/// were measured in the closed loop.
fn measure_open(
    args: &BenchArgs,
    scenarios: &[&'static Scenario],
    closed: &BenchReport,
) -> anyhow::Result<Option<BenchReport>> {
    let mut both = scenarios.to_vec();
    both.retain(|scenario| [CEILING, OPEN].contains(&scenario.name));
    match (both.len(), closed.rate_of(OPEN)) {
        (2, Some(peak)) => {
            let pace = Pace::Open((peak / 2).clamp(1, LOAD_RATE_MAX));
            Ok(Some(measure_all(args, &both, pace)?))
        }
        _ => Ok(None),
    }
}
