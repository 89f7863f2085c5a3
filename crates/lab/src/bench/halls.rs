//! A hall of a million seats compared with small ones: the cost of a hold, the memory of a seat, the time
//! of a restart when every seat is held or sold.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use axum::http::Method;
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};

use super::fill::fill;
use super::fresh::{FreshSeats, holds};
use super::ledger::Ledger;
use super::product::Product;
use super::rounds::measured;
use super::{BenchArgs, Pace};
use crate::exit::Exit;
use crate::kit::{Bound, Verdict, load_average, median_ratio, print_report, resident_bytes};
use crate::limits::{HALLS_HOLDS, HALLS_HOLDS_QUICK};
use crate::load::{LoadPlan, Makers, Transport, Until, block_on};

/// Its name among the scenarios; it runs alone.
pub(super) const NAME: &str = "halls";

/// Rows and seats of a row of the small halls.
const SMALL: (u64, u64) = (10, 10);
/// Rows and seats of a row of the large hall.
const LARGE: (u64, u64) = (1_000, 1_000);
/// Rows and seats of a row of the large hall of a quick run.
const LARGE_QUICK: (u64, u64) = (100, 100);

#[derive(Debug, Default, Serialize)]
struct Halls {
    seats: u64,
    load_average: String,
    /// Each run: CPU time of the server per hold in small halls, in the large one, nanoseconds.
    small_cpu_ns: Vec<u64>,
    large_cpu_ns: Vec<u64>,
    small_per_s: Vec<u64>,
    large_per_s: Vec<u64>,
    /// More memory in RAM once the large hall is there.
    hall_bytes: u64,
    /// Memory in RAM after the restart on a full hall.
    full_bytes: u64,
    file_bytes: u64,
    /// Time to hold or sell every seat.
    fill_ms: u64,
    /// Time from the start of the process until it is ready.
    restart_ms: u64,
    /// Found by `verify` in the full hall.
    violations: usize,
    goals: Vec<Verdict>,
}

/// Refuses options that say nothing about halls.
pub(super) fn check(args: &BenchArgs) -> anyhow::Result<()> {
    let grpc = (args.transport == Transport::Grpc).then(|| "--transport grpc".to_owned());
    let requests = args.requests.map(|count| format!("--requests {count}"));
    let rate = args.rate.map(|rate| format!("--rate {rate}"));
    match grpc.or(requests).or(rate) {
        Some(given) => bail!(
            "{given}: --scenarios {NAME} sends its own number of holds over HTTP in a closed loop; leave it out"
        ),
        None => Ok(()),
    }
}

pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    let halls = block_on(measure(args))?;
    print_report(args.json, &halls, || text(&halls), halls.violations)
}

async fn measure(args: &BenchArgs) -> anyhow::Result<Halls> {
    let large = if args.quick { LARGE_QUICK } else { LARGE };
    let seats = large.0 * large.1;
    let mut halls = Halls {
        seats,
        load_average: load_average(),
        ..Halls::default()
    };
    compare(args, large, &mut halls).await?;
    restart(args, large, &mut halls).await?;
    let (large, small) = (halls.large_cpu_ns.clone(), halls.small_cpu_ns.clone());
    let cost = median_ratio(large, small);
    let goal = |what, measured, most| Verdict::single(("P5", what), measured, Bound::AtMost, most);
    let bytes = halls.hall_bytes * 1_000 / seats;
    halls.goals = vec![
        goal(
            "CPU of a hold in the large hall / in halls of 100 seats",
            cost.unwrap_or_default(),
            1_500,
        ),
        goal("memory of an empty hall, bytes a seat", bytes, 100_000),
        goal(
            "start with every seat held or sold, seconds",
            halls.restart_ms,
            2_000,
        ),
    ];
    Ok(halls)
}

/// Measures holds in small halls and in the large one, by turns, on one server.
async fn compare(args: &BenchArgs, large: (u64, u64), halls: &mut Halls) -> anyhow::Result<()> {
    let requests = if args.quick {
        HALLS_HOLDS_QUICK
    } else {
        HALLS_HOLDS
    };
    let ledger = Ledger::folder(args.data.as_deref())?;
    let product = Product::start(&ledger).await?;
    let (id, setting) = (product.served.id, &product.setting);
    let runs = u64::try_from(args.runs)? + 1;
    let small = (runs * requests).div_ceil(SMALL.0 * SMALL.1);
    let small = FreshSeats::make_events(&setting.admin, "small", small, SMALL).await?;
    let small = holds(setting, small);
    // The first turn warms up code, connections and the allocator.
    hold(&product, args, requests, &small).await?;
    let before = resident_bytes(id)?;
    let one = FreshSeats::make_events(&setting.admin, "large", 1, large).await?;
    halls.hall_bytes = resident_bytes(id)?.saturating_sub(before);
    let one = holds(setting, one);
    for _ in 0..args.runs {
        let (cpu, rate) = hold(&product, args, requests, &small).await?;
        halls.small_cpu_ns.push(cpu);
        halls.small_per_s.push(rate);
        let (cpu, rate) = hold(&product, args, requests, &one).await?;
        halls.large_cpu_ns.push(cpu);
        halls.large_per_s.push(rate);
    }
    product.served.stop().await
}

/// Measures holds: CPU time of the server per hold in nanoseconds, and holds per second.
async fn hold(
    product: &Product,
    args: &BenchArgs,
    holds: u64,
    makers: &Makers,
) -> anyhow::Result<(u64, u64)> {
    let (address, until) = (product.setting.address, Until::Requests(holds));
    let plan = LoadPlan::http(address, args.connections, Pace::Closed, until);
    let run = measured(plan, makers, &[product.served.id]).await?;
    let answered = run.load.count(201);
    anyhow::ensure!(
        answered == holds,
        "of {holds} holds {answered} were made: {:?}",
        run.load
    );
    let cpu = run.server_cpu.unwrap_or_default().as_nanos();
    Ok((u64::try_from(cpu)? / holds.max(1), run.load.rate_per_s))
}

/// Fills a hall, ends the server, and starts it again on that ledger.
async fn restart(args: &BenchArgs, large: (u64, u64), halls: &mut Halls) -> anyhow::Result<()> {
    let ledger = Ledger::folder(args.data.as_deref())?;
    let Product { served, setting } = Product::start(&ledger).await?;
    let began = SystemClock.boot();
    fill(&setting, args.connections, large).await?;
    halls.fill_ms = millis(SystemClock.boot().since(began));
    served.stop().await?;
    if let Ledger::Folder(folder) = &ledger {
        halls.file_bytes = bytes_in(folder.path())?;
    }
    let Product { served, setting } = Product::start(&ledger).await?;
    let answer = setting.admin.send(Method::GET, "/readyz", None).await?;
    halls.restart_ms = millis(SystemClock.boot().since(served.began));
    answer.into_success().context("the server is not ready")?;
    halls.full_bytes = resident_bytes(served.id)?;
    served.stop().await?;
    halls.violations = ledger.violations().await?;
    Ok(())
}

/// Adds up the lengths of the files in a folder.
fn bytes_in(folder: &Path) -> std::io::Result<u64> {
    let files = folder.read_dir()?.flatten();
    let lengths = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    Ok(lengths.sum())
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn text(halls: &Halls) -> String {
    let mib = |bytes: u64| bytes / 1_024 / 1_024;
    let micros = |nanos: &[u64]| nanos.iter().map(|ns| ns / 1_000).collect::<Vec<_>>();
    let goals: Vec<_> = halls.goals.iter().map(Verdict::line).collect();
    format!(
        "A hall of {} seats, load average {} before.\n\
         server CPU of a hold, us: small halls {:?}, large hall {:?}\n\
         holds/s: small halls {:?}, large hall {:?}\n\
         the empty hall takes {} MiB of memory; with every seat held or sold the whole process \
         takes {} MiB, its files {} MiB\n\
         filled in {} ms, started on it in {} ms, violations {}\n\n{}",
        halls.seats,
        halls.load_average,
        micros(&halls.small_cpu_ns),
        micros(&halls.large_cpu_ns),
        halls.small_per_s,
        halls.large_per_s,
        mib(halls.hall_bytes),
        mib(halls.full_bytes),
        mib(halls.file_bytes),
        halls.fill_ms,
        halls.restart_ms,
        halls.violations,
        goals.join("\n"),
    )
}
