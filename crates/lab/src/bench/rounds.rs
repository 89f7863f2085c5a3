//! Runs of scenarios: each on a server of its own, all of them once in every round, so that what
//! changes on the machine changes for all.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use soldonce_engine::ledger::postgres::{self, PostgresOptions};
use soldonce_engine::ledger::sqlite::verify::verify;
use tokio::runtime::{Builder, Runtime};

use super::folder::RunFolder;
use super::process::{Cores, CpuTime};
use super::product::Product;
use super::report::{BenchReport, Measured};
use super::scenario::{Dose, Scenario, Setting, Target};
use super::server::{ServerProcess, serve_scenario};
use super::{BenchArgs, ServerPlace};
use crate::limits::{BENCH_DATABASE_CONNECTIONS, BENCH_RATE_EXPECTED_MAX, BENCH_WARMUP_MS};
use crate::load::{self, LoadPlan, LoadReport, Makers, Pace, Until};
use crate::race::private_database;

/// Measures every scenario `args.runs` times.
///
/// # Errors
/// Whatever keeps a server from starting or a scenario from being set up.
pub(super) fn measure_all(
    args: &BenchArgs,
    scenarios: &[&'static dyn Scenario],
    pace: Pace,
) -> anyhow::Result<BenchReport> {
    let mut report = BenchReport::new(args, pace);
    for _ in 0..args.runs {
        for scenario in scenarios {
            let runtime = generator_runtime()?;
            let measured = runtime
                .block_on(measure(*scenario, args, pace))
                .with_context(|| format!("scenario {} could not be measured", scenario.name()))?;
            report.add(*scenario, measured);
        }
    }
    Ok(report)
}

/// One run of one scenario.
async fn measure(
    scenario: &'static dyn Scenario,
    args: &BenchArgs,
    pace: Pace,
) -> anyhow::Result<Measured> {
    match (scenario.target(), args.server) {
        (Target::Within, _) => within(scenario, args).await,
        (Target::Product, ServerPlace::Child) => on_product(scenario, args, pace).await,
        (Target::Database, ServerPlace::Child) => on_database(scenario, args, pace).await,
        (Target::Product | Target::Database, ServerPlace::Here) => {
            bail!("--server here: only for the echo")
        }
        (Target::Router, ServerPlace::Child) => {
            let core = args.pin.map(|core| core + 1);
            let server = ServerProcess::start(scenario, core).await?;
            let setting = setting_of(args, pace, server.address);
            let makers = scenario.set_up(&setting).await?;
            let measured = put_load(&setting, &makers, args, pace, Some(server.id)).await?;
            server.stop().await?;
            Ok(measured)
        }
        (Target::Router, ServerPlace::Here) => {
            let server = serve_scenario(scenario).await?;
            let setting = setting_of(args, pace, server.address);
            let makers = scenario.set_up(&setting).await?;
            let measured = put_load(&setting, &makers, args, pace, None).await?;
            server.stop().await?;
            Ok(measured)
        }
    }
}

async fn within(scenario: &dyn Scenario, args: &BenchArgs) -> anyhow::Result<Measured> {
    let folder = RunFolder::make(args.data.as_deref())?;
    let before = CpuTime::own()?;
    let dose = Dose {
        folder: folder.path(),
        waiters: args.connections,
        seconds: args.seconds,
        requests: args.requests(),
    };
    let load = scenario.within(dose).await?;
    let generator_cpu = Some(CpuTime::own()?.since(before));
    Ok(Measured {
        load,
        server_cpu: None,
        generator_cpu,
        violations: None,
    })
}

async fn on_product(
    scenario: &dyn Scenario,
    args: &BenchArgs,
    pace: Pace,
) -> anyhow::Result<Measured> {
    let folder = RunFolder::make(args.data.as_deref())?;
    let server = Product::start(folder.path(), Cores(args.pin)).await?;
    let mut setting = setting_of(args, pace, server.address);
    setting.admin = Some(server.admin.clone());
    let makers = scenario.set_up(&setting).await?;
    let mut measured = put_load(&setting, &makers, args, pace, Some(server.id)).await?;
    server.stop().await?;
    measured.violations = Some(violations(folder.path())?);
    Ok(measured)
}

async fn on_database(
    scenario: &dyn Scenario,
    args: &BenchArgs,
    pace: Pace,
) -> anyhow::Result<Measured> {
    let database = private_database(BENCH_DATABASE_CONNECTIONS)?;
    let server = Product::start_on(&database.url(), Cores(args.pin)).await?;
    let mut setting = setting_of(args, pace, server.address);
    setting.admin = Some(server.admin.clone());
    let makers = scenario.set_up(&setting).await?;
    let mut measured = put_load(&setting, &makers, args, pace, Some(server.id)).await?;
    server.stop().await?;
    let options = PostgresOptions::new(database.url());
    let report = postgres::verify(&options, &mut |_| {}).await;
    measured.violations = Some(
        report
            .context("the ledger was not verified")?
            .findings
            .len(),
    );
    Ok(measured)
}

/// What `verify` finds wrong in the ledger that a server left.
///
/// # Errors
/// When there is no ledger to read.
pub(super) fn violations(folder: &Path) -> anyhow::Result<usize> {
    let report = verify(folder, &mut |_| {}).context("the ledger was not verified")?;
    Ok(report.findings.len())
}

fn setting_of(args: &BenchArgs, pace: Pace, address: std::net::SocketAddr) -> Setting {
    let per_second = match pace {
        Pace::Closed => BENCH_RATE_EXPECTED_MAX,
        Pace::Open(rate) => rate,
    };
    let timed = per_second * args.seconds + BENCH_RATE_EXPECTED_MAX * BENCH_WARMUP_MS / 1_000;
    let requests_max = args
        .requests()
        .map_or(timed, |requests| requests + warmup_of(requests));
    let connections = args.connections;
    Setting {
        address,
        connections,
        requests_max,
        admin: None,
    }
}

/// Requests before a counted number of requests.
fn warmup_of(requests: u64) -> u64 {
    requests / 10 + 1
}

/// Warms the server up, measures, and gives the CPU time of server and generator meanwhile.
async fn put_load(
    setting: &Setting,
    makers: &Makers,
    args: &BenchArgs,
    pace: Pace,
    server: Option<u32>,
) -> anyhow::Result<Measured> {
    let plan = |pace, until| LoadPlan {
        address: setting.address,
        connections: setting.connections,
        pace,
        until,
    };
    let (warmup, until) = match args.requests() {
        Some(requests) => (
            Until::Requests(warmup_of(requests)),
            Until::Requests(requests),
        ),
        None => (
            Until::Elapsed(Duration::from_millis(BENCH_WARMUP_MS)),
            Until::Elapsed(Duration::from_secs(args.seconds)),
        ),
    };
    load::run(plan(Pace::Closed, warmup), makers).await?;
    measured(plan(pace, until), makers, server).await
}

/// Puts one load on a server and takes the CPU times around it.
///
/// # Errors
/// As [`load::run`], and when the server is gone.
pub(super) async fn measured(
    plan: LoadPlan,
    makers: &Makers,
    server: Option<u32>,
) -> anyhow::Result<Measured> {
    let cpu = |server| CpuTime::of(server).and_then(|used| Ok((used, CpuTime::own()?)));
    let before = server.map(cpu).transpose()?;
    let load: LoadReport = load::run(plan, makers).await?;
    let after = server.map(cpu).transpose()?;
    let used = after
        .zip(before)
        .map(|(after, before)| (after.0.since(before.0), after.1.since(before.1)));
    let (server_cpu, generator_cpu) = used.unzip();
    Ok(Measured {
        load,
        server_cpu,
        generator_cpu,
        violations: None,
    })
}

/// One thread: on few cores a second one would only take from the server.
///
/// # Errors
/// When the system has none to give.
pub(super) fn generator_runtime() -> anyhow::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the load generator")
}
