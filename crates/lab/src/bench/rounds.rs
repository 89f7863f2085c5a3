//! Runs of scenarios: each on a server of its own, all of them once in every round, so that a change on
//! the machine affects all.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;
use tokio::runtime::{Builder, Handle};

use super::ledger::{Ledger, run_folder};
use super::product::Product;
use super::report::{BenchReport, Measured};
use super::scenario::{Scenario, SetUp, Target};
use super::{BenchArgs, echo, group_commit};
use crate::kit::{CpuTime, Load, Served};
use crate::limits::{BENCH_RATE_EXPECTED_MAX, BENCH_WARMUP_MS};
use crate::load::{self, LoadPlan, Makers, Pace, Until};

/// Measures every scenario `args.runs` times.
pub(super) fn measure_all(
    args: &BenchArgs,
    scenarios: &[&'static Scenario],
    pace: Pace,
) -> anyhow::Result<BenchReport> {
    let mut report = BenchReport::new(args, pace);
    for _ in 0..args.runs {
        for &scenario in scenarios {
            let measured = load::block_on(measure(scenario, args, pace));
            let name = scenario.name;
            report.add(
                scenario,
                measured.with_context(|| format!("scenario {name} could not be measured"))?,
            );
        }
    }
    Ok(report)
}

async fn measure(scenario: &Scenario, args: &BenchArgs, pace: Pace) -> anyhow::Result<Measured> {
    match scenario.target {
        Target::Sqlite => on_sqlite(args).await,
        Target::Product(set_up) => {
            let ledger = Ledger::folder(args.data.as_deref())?;
            put_load_on(&ledger, set_up, args, pace).await
        }
        Target::Postgres(set_up) => {
            put_load_on(&Ledger::database().await?, set_up, args, pace).await
        }
        Target::Echo => {
            let mut command = Command::new(std::env::current_exe()?);
            let server = Served::start(command.arg("bench-server")).await?;
            let makers = echo::makers(args.transport, server.address);
            let measured = put_load((server.address, server.id), &makers, args, pace).await?;
            server.stop().await?;
            Ok(measured)
        }
    }
}

async fn on_sqlite(args: &BenchArgs) -> anyhow::Result<Measured> {
    let folder = run_folder(args.data.as_deref())?;
    let before = CpuTime::own()?;
    let load = Load {
        tasks: args.connections,
        span: args.until().longest(),
        requests: args.requests().unwrap_or(u64::MAX),
    };
    let load = group_commit::measure(folder.path(), load).await?;
    Ok(Measured {
        load,
        server_cpu: None,
        generator_cpu: Some(CpuTime::own()?.since(before)),
        violations: None,
    })
}

async fn put_load_on(
    ledger: &Ledger,
    set_up: SetUp,
    args: &BenchArgs,
    pace: Pace,
) -> anyhow::Result<Measured> {
    let product = Product::start(ledger).await?;
    let (served, mut setting) = (product.served, product.setting);
    setting.requests_max = requests_max(args, pace);
    setting.transport = args.transport;
    let makers = set_up(&setting).await?;
    let measured = put_load((served.address, served.id), &makers, args, pace).await?;
    served.stop().await?;
    Ok(Measured {
        violations: Some(ledger.violations().await?),
        ..measured
    })
}

/// Returns the most requests that may come, warm-up included.
fn requests_max(args: &BenchArgs, pace: Pace) -> u64 {
    let per_second = match pace {
        Pace::Closed => BENCH_RATE_EXPECTED_MAX,
        Pace::Open(rate) => rate,
    };
    let timed = per_second * args.seconds + BENCH_RATE_EXPECTED_MAX * BENCH_WARMUP_MS / 1_000;
    let counted = |requests| requests + warmup_of(requests);
    args.requests().map_or(timed, counted)
}

/// Returns how many requests warm up before a counted number of requests.
fn warmup_of(requests: u64) -> u64 {
    requests / 10 + 1
}

/// Warms the server up, and measures the load.
async fn put_load(
    (address, server): (SocketAddr, u32),
    makers: &Makers,
    args: &BenchArgs,
    pace: Pace,
) -> anyhow::Result<Measured> {
    let plan = |pace, until| LoadPlan {
        address,
        transport: args.transport,
        connections: args.connections,
        pace,
        until,
    };
    let warmup = match args.requests() {
        Some(requests) => Until::Requests(warmup_of(requests)),
        None => Until::Elapsed(Duration::from_millis(BENCH_WARMUP_MS)),
    };
    load::run(plan(Pace::Closed, warmup), makers).await?;
    measured(plan(pace, args.until()), makers, &[server]).await
}

/// Puts one load on a server and takes the CPU times around it: of `servers` their sum.
pub(super) async fn measured(
    plan: LoadPlan,
    makers: &Makers,
    servers: &[u32],
) -> anyhow::Result<Measured> {
    let cpu = || -> anyhow::Result<(Vec<CpuTime>, CpuTime)> {
        let of_servers = servers.iter().map(|server| CpuTime::of(*server));
        Ok((of_servers.collect::<Result<_, _>>()?, CpuTime::own()?))
    };
    let before = cpu()?;
    let load = load::run(plan, makers).await?;
    let after = cpu()?;
    let pairs = after.0.into_iter().zip(before.0);
    let server_cpu = pairs.map(|(after, before)| after.since(before)).sum();
    Ok(Measured {
        load,
        server_cpu: Some(server_cpu),
        generator_cpu: Some(after.1.since(before.1)),
        violations: None,
    })
}

/// Measures `runs` times, with viewers on a thread of their own: what they read delays no buyer in the generator.
pub(super) fn with_viewers<T>(
    runs: usize,
    measure: &impl AsyncFn(&Handle) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut crowd = Builder::new_multi_thread();
    let crowd = crowd.worker_threads(1).enable_all().build();
    let crowd = crowd.context("cannot start the viewers")?;
    (0..runs)
        .map(|_| load::block_on(measure(crowd.handle())))
        .collect()
}
