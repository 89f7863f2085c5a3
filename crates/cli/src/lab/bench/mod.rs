//! `soldonce lab bench`: each scenario is run beside its ceiling, the bare echo, in the same run;
//! what counts is the ratio. The machine's own speed drifts, so that rates of different days do not
//! compare.

mod echo;
mod process;
mod report;
mod scenario;
mod server;

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use tokio::runtime::{Builder, Runtime};

pub(crate) use self::server::BenchServerArgs;

use self::process::{CpuTime, pin_to_core};
use self::report::{BenchReport, Measured};
use self::scenario::{Scenario, Setting, find, names};
use self::server::{ServerProcess, serve_scenario};
use super::load::{self, LoadPlan, LoadReport, Pace, Until};
use crate::exit::Exit;
use crate::limits::{
    BENCH_RUNS_MAX, BENCH_WARMUP_MS, LOAD_CONNECTIONS_MAX, LOAD_RATE_MAX, LOAD_SECONDS_MAX,
};

/// Arguments of `soldonce lab bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What to measure, separated by commas: echo
    #[arg(long, value_delimiter = ',', default_value = "echo")]
    scenarios: Vec<String>,
    /// Connections, each with one request in flight
    #[arg(long, default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(LOAD_CONNECTIONS_MAX)))]
    connections: u32,
    /// Seconds of load per run and scenario
    #[arg(long, default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LOAD_SECONDS_MAX))]
    seconds: u64,
    /// Requests per run and scenario, in place of seconds: for counting instructions and calls
    #[arg(long, conflicts_with = "seconds")]
    requests: Option<u64>,
    /// Runs; the report gives medians
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Open loop: requests per second, at equal distances; latency counts from the planned time.
    /// Without it the loop is closed
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=LOAD_RATE_MAX))]
    rate: Option<u64>,
    /// Core of the load generator; the server gets the next one. Without it the kernel decides
    #[arg(long)]
    pin: Option<usize>,
    /// Where the server runs. In one process the CPU times cannot be told apart
    #[arg(long, value_enum, default_value_t = ServerPlace::Child)]
    server: ServerPlace,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where the server under test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServerPlace {
    /// In a process of its own.
    Child,
    /// In the generator's process and thread, for profilers.
    Here,
}

/// Runs the benchmark and prints its report. Refused if an answer was not what its scenario expects.
///
/// # Errors
/// Unknown scenarios, bounds, and whatever keeps a server from starting.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    if !(1..=BENCH_RUNS_MAX).contains(&args.runs) {
        bail!("--runs {}: must be 1 to {BENCH_RUNS_MAX}", args.runs);
    }
    let scenarios = args
        .scenarios
        .iter()
        .map(|name| find(name))
        .collect::<Option<Vec<_>>>();
    let scenarios = scenarios.with_context(|| {
        format!(
            "--scenarios {}: known are {}",
            args.scenarios.join(","),
            names().join(", ")
        )
    })?;
    if let Some(core) = args.pin {
        pin_to_core(core)?;
    }
    let mut report = BenchReport::new(args.connections, args.seconds, args.rate);
    for _ in 0..args.runs {
        for scenario in &scenarios {
            let measured = measure(*scenario, args)
                .with_context(|| format!("scenario {} could not be measured", scenario.name()))?;
            report.add(*scenario, measured);
        }
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report.summary())?);
    } else {
        println!("{}", report.table());
    }
    Ok(if report.is_as_expected() {
        Exit::Done
    } else {
        Exit::Refused
    })
}

/// Arguments of the server under test, given by the benchmark itself.
///
/// # Errors
/// When it cannot listen.
pub(crate) fn run_server(args: &BenchServerArgs) -> anyhow::Result<Exit> {
    server::run(args)
}

/// One run of one scenario, on a server of its own.
fn measure(scenario: &'static dyn Scenario, args: &BenchArgs) -> anyhow::Result<Measured> {
    let runtime = generator_runtime()?;
    runtime.block_on(async {
        if args.server == ServerPlace::Here {
            let server = serve_scenario(scenario).await?;
            let setting = Setting {
                address: server.address,
                connections: args.connections,
            };
            let report = put_load(scenario, &setting, args, None).await?.0;
            server.stop().await?;
            return Ok(Measured {
                load: report,
                server_cpu: None,
                generator_cpu: None,
            });
        }
        let server = ServerProcess::start(scenario, args.pin.map(|core| core + 1)).await?;
        let setting = Setting {
            address: server.address,
            connections: args.connections,
        };
        let (load, cpu) = put_load(scenario, &setting, args, Some(server.id)).await?;
        server.stop().await?;
        let (server_cpu, generator_cpu) = cpu.unzip();
        Ok(Measured {
            load,
            server_cpu,
            generator_cpu,
        })
    })
}

/// Warms the server up, measures, and gives the CPU time of server and generator meanwhile.
async fn put_load(
    scenario: &dyn Scenario,
    setting: &Setting,
    args: &BenchArgs,
    server: Option<u32>,
) -> anyhow::Result<(LoadReport, Option<(Duration, Duration)>)> {
    let makers = scenario.set_up(setting).await?;
    let pace = args.rate.map_or(Pace::Closed, Pace::Open);
    let plan = |pace, until| LoadPlan {
        address: setting.address,
        connections: setting.connections,
        pace,
        until,
    };
    let warmup = Until::Elapsed(Duration::from_millis(BENCH_WARMUP_MS));
    let timed = Until::Elapsed(Duration::from_secs(args.seconds));
    let until = args.requests.map_or(timed, Until::Requests);
    load::run(plan(Pace::Closed, warmup), &makers).await?;
    let cpu = |server| CpuTime::of(server).and_then(|used| Ok((used, CpuTime::own()?)));
    let before = server.map(cpu).transpose()?;
    let report = load::run(plan(pace, until), &makers).await?;
    let after = server.map(cpu).transpose()?;
    let used = after
        .zip(before)
        .map(|(after, before)| (after.0.since(before.0), after.1.since(before.1)));
    Ok((report, used))
}

/// One thread: on few cores a second one would only take from the server.
fn generator_runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the load generator")
}
