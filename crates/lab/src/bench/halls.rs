//! A hall of a million seats beside small ones: what a hold costs, what a seat takes in memory, how
//! long a restart takes when every seat is held or sold.

use std::time::Duration;

use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};

use super::fill::fill;
use super::folder::RunFolder;
use super::goals::{Bound, Verdict};
use super::hall::{FreshSeats, sell_key};
use super::holds::makers_of;
use super::process::{Cores, load_average, resident_bytes};
use super::product::Product;
use super::report::median;
use super::rounds::{generator_runtime, measured, violations};
use super::scenario::Setting;
use super::{BenchArgs, Pace};
use crate::exit::Exit;
use crate::limits::{HALLS_HOLDS, HALLS_HOLDS_QUICK};
use crate::load::{LoadPlan, Makers, Until};
use crate::output::{print, print_json};

/// Its name among the scenarios; it runs alone.
pub(super) const NAME: &str = "halls";

/// Rows and seats of a row of the small halls.
const SMALL: (u64, u64) = (10, 10);
/// And of the large one.
const LARGE: (u64, u64) = (1_000, 1_000);
/// And of the large one of a quick run.
const LARGE_QUICK: (u64, u64) = (100, 100);

/// What was found.
#[derive(Debug, Serialize)]
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
    /// In RAM after the restart on a full hall.
    full_bytes: u64,
    /// Of the files.
    file_bytes: u64,
    /// To hold or sell every seat.
    fill_ms: u64,
    /// From the start of the process until it is ready.
    restart_ms: u64,
    /// Found by `verify` in the full hall.
    violations: usize,
    goals: Vec<Verdict>,
}

/// Measures and prints.
///
/// # Errors
/// Whatever keeps a server from starting or from answering as it should.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Exit> {
    let halls = generator_runtime()?.block_on(measure(args))?;
    if args.json {
        print_json(&halls)?;
    } else {
        print(&(text(&halls) + "\n"))?;
    }
    Ok(if halls.violations == 0 {
        Exit::Done
    } else {
        Exit::Refused
    })
}

async fn measure(args: &BenchArgs) -> anyhow::Result<Halls> {
    let large = if args.quick { LARGE_QUICK } else { LARGE };
    let seats = large.0 * large.1;
    let mut halls = Halls {
        seats,
        load_average: load_average(),
        small_cpu_ns: Vec::new(),
        large_cpu_ns: Vec::new(),
        small_per_s: Vec::new(),
        large_per_s: Vec::new(),
        hall_bytes: 0,
        full_bytes: 0,
        file_bytes: 0,
        fill_ms: 0,
        restart_ms: 0,
        violations: 0,
        goals: Vec::new(),
    };
    compare(args, large, &mut halls).await?;
    restart(args, large, &mut halls).await?;
    let cost = |each: &[u64]| median(each.to_vec()).unwrap_or_default();
    let cost = cost(&halls.large_cpu_ns) * 1_000 / cost(&halls.small_cpu_ns).max(1);
    let what = |text: &str| ("P5", text.to_owned());
    halls.goals = vec![
        Verdict::new(
            what("CPU of a hold in the large hall / in halls of 100 seats"),
            cost,
            Bound::AtMost,
            (1_500, 1_500),
        ),
        Verdict::new(
            what("memory of an empty hall, bytes a seat"),
            halls.hall_bytes * 1_000 / seats,
            Bound::AtMost,
            (100_000, 100_000),
        ),
        Verdict::new(
            what("start with every seat held or sold, seconds"),
            halls.restart_ms,
            Bound::AtMost,
            (2_000, 2_000),
        ),
    ];
    Ok(halls)
}

/// Holds in small halls and in the large one, in turns, on one server.
async fn compare(args: &BenchArgs, large: (u64, u64), halls: &mut Halls) -> anyhow::Result<()> {
    let holds = if args.quick {
        HALLS_HOLDS_QUICK
    } else {
        HALLS_HOLDS
    };
    let folder = RunFolder::make(args.data.as_deref())?;
    let server = Product::start(folder.path(), Cores(args.pin)).await?;
    let setting = setting(args, &server);
    let key = sell_key(&server.admin).await?;
    let runs = u64::try_from(args.runs)? + 1;
    let small = (runs * holds).div_ceil(SMALL.0 * SMALL.1);
    let small = FreshSeats::make_events(&server.admin, "small", small, SMALL).await?;
    let small = makers_of(&setting, &key, small);
    // The first turn warms up: code, connections and the allocator have what they need.
    hold(&server, &setting, holds, &small).await?;
    let before = resident_bytes(server.id)?;
    let one = FreshSeats::make_events(&server.admin, "large", 1, large).await?;
    halls.hall_bytes = resident_bytes(server.id)?.saturating_sub(before);
    let one = makers_of(&setting, &key, one);
    for _ in 0..args.runs {
        let (cpu, rate) = hold(&server, &setting, holds, &small).await?;
        halls.small_cpu_ns.push(cpu);
        halls.small_per_s.push(rate);
        let (cpu, rate) = hold(&server, &setting, holds, &one).await?;
        halls.large_cpu_ns.push(cpu);
        halls.large_per_s.push(rate);
    }
    server.stop().await
}

/// CPU time of the server per hold in nanoseconds, and holds per second.
async fn hold(
    server: &Product,
    setting: &Setting,
    holds: u64,
    makers: &Makers,
) -> anyhow::Result<(u64, u64)> {
    let plan = LoadPlan {
        address: setting.address,
        connections: setting.connections,
        pace: Pace::Closed,
        until: Until::Requests(holds),
    };
    let run = measured(plan, makers, Some(server.id)).await?;
    let answered = run.load.statuses.get(&201).copied().unwrap_or_default();
    anyhow::ensure!(
        answered == holds,
        "of {holds} holds {answered} were made: {:?}",
        run.load
    );
    let cpu = run.server_cpu.unwrap_or_default().as_nanos();
    Ok((u64::try_from(cpu)? / holds.max(1), run.load.rate_per_s))
}

/// Fills a hall, ends the server, and starts it again on what it left.
async fn restart(args: &BenchArgs, large: (u64, u64), halls: &mut Halls) -> anyhow::Result<()> {
    let folder = RunFolder::make(args.data.as_deref())?;
    let server = Product::start(folder.path(), Cores(args.pin)).await?;
    let setting = setting(args, &server);
    let began = SystemClock.boot();
    fill(&server, &setting, large).await?;
    halls.fill_ms = millis(SystemClock.boot().since(began));
    server.stop().await?;
    halls.file_bytes = folder.bytes();
    let server = Product::start(folder.path(), Cores(args.pin)).await?;
    halls.restart_ms = millis(server.ready().await?);
    halls.full_bytes = resident_bytes(server.id)?;
    server.stop().await?;
    halls.violations = violations(folder.path())?;
    Ok(())
}

fn setting(args: &BenchArgs, server: &Product) -> Setting {
    Setting {
        address: server.address,
        connections: args.connections,
        requests_max: 0,
        admin: Some(server.admin.clone()),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn text(halls: &Halls) -> String {
    let Halls {
        seats,
        load_average,
        fill_ms,
        restart_ms,
        violations,
        ..
    } = halls;
    let mib = |bytes: u64| bytes / 1_024 / 1_024;
    let (hall, full, file) = (
        mib(halls.hall_bytes),
        mib(halls.full_bytes),
        mib(halls.file_bytes),
    );
    let goals: Vec<_> = halls.goals.iter().map(Verdict::line).collect();
    format!(
        "A hall of {seats} seats, load average {load_average} before.\n\
         server CPU of a hold, us: small halls {:?}, large hall {:?}\n\
         holds/s: small halls {:?}, large hall {:?}\n\
         the empty hall takes {hall} MiB of memory; with every seat held or sold the whole process \
         takes {full} MiB, its files {file} MiB\n\
         filled in {fill_ms} ms, started on it in {restart_ms} ms, violations {violations}\n\n{}",
        halls
            .small_cpu_ns
            .iter()
            .map(|ns| ns / 1_000)
            .collect::<Vec<_>>(),
        halls
            .large_cpu_ns
            .iter()
            .map(|ns| ns / 1_000)
            .collect::<Vec<_>>(),
        halls.small_per_s,
        halls.large_per_s,
        goals.join("\n"),
    )
}
