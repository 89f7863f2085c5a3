//! Viewers of an event that is sold: holds a second with and without them, how late a change reaches the
//! last of them, and what a delivered frame costs compared with a bare fan-out of as many bytes to as many sockets.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};
use tokio::runtime::Handle;

use super::ledger::Ledger;
use super::look::own_seats;
use super::product::{Product, Setting, make_event};
use super::report::Measured;
use super::rounds::{measured, with_viewers};
use super::watching::{EVENT, FeedCounts, Watching};
use super::{BenchArgs, fan_out};
use crate::exit::Exit;
use crate::kit::{
    ANY_PORT, Bound, CpuTime, Series, Served, Verdict, load_average, per_second, print_report,
    resident_bytes, thousandths,
};
use crate::limits::{VIEWERS_BUYERS, VIEWERS_CHANGES_PER_S};
use crate::load::{LoadPlan, Pace, Until};

/// Rows and seats of a row.
pub(super) const HALL: (u64, u64) = (250, 200);

#[derive(Debug, Serialize)]
struct ViewersBench {
    viewers: u32,
    /// On one PostgreSQL; without it one server on a folder.
    servers: Option<u32>,
    load_average: String,
    runs: Vec<Run>,
    goals: Vec<Verdict>,
    /// Found by `verify` in all ledgers.
    violations: usize,
}

/// One run on a server of its own. Times are microseconds.
#[derive(Debug, Default, Serialize)]
struct Run {
    /// Holds and releases a second in a closed loop, without viewers and with them.
    alone_per_s: u64,
    watched_per_s: u64,
    /// From a connection's first packet to its first byte, all connections at once; and of the bare listener.
    first_byte_p99: u64,
    bare_first_byte_p99: u64,
    /// Connections that the kernel dropped because the queue was full.
    listen_overflows: u64,
    bytes_a_viewer: u64,
    /// At a steady rate of changes: CPU of the server without viewers and with them, thousandths of a core.
    quiet_cpu: u64,
    watched_cpu: u64,
    generator_cpu: u64,
    frames_a_second: u64,
    bytes_a_frame: u64,
    /// From the commit to the last viewer, of the oldest commit of each frame.
    delay_p50: u64,
    delay_p99: u64,
    /// CPU of one delivered frame, nanoseconds; and of a bare fan-out.
    frame_cpu_ns: u64,
    bare_frame_cpu_ns: u64,
    violations: usize,
}

pub(super) fn run(args: &BenchArgs, viewers: u32) -> anyhow::Result<Exit> {
    let load_average = load_average();
    let one = async |crowd: &Handle| Box::pin(measure(args, viewers, crowd)).await;
    let runs = with_viewers(args.runs, &one)?;
    let violations = runs.iter().map(|run| run.violations).sum();
    let report = ViewersBench {
        viewers,
        servers: args.servers,
        load_average,
        goals: goals(&runs, (viewers, args.servers)),
        runs,
        violations,
    };
    print_report(args.json, &report, || text(&report), violations)
}

/// The servers of a run, and their ledger.
struct Fleet {
    products: Vec<Product>,
    ledger: Ledger,
}

impl Fleet {
    async fn start(args: &BenchArgs, viewers: u32) -> anyhow::Result<Self> {
        let (ledger, count) = match args.servers {
            None => (Ledger::folder(args.data.as_deref())?, 1),
            Some(count) => (Ledger::database().await?, count),
        };
        let mut products = Vec::new();
        for _ in 0..count {
            products.push(Product::start_for(viewers, ANY_PORT, &ledger).await?);
        }
        Ok(Self { products, ledger })
    }

    fn ids(&self) -> Vec<u32> {
        self.products.iter().map(|one| one.served.id).collect()
    }

    fn resident_bytes(&self) -> anyhow::Result<u64> {
        self.ids().into_iter().map(resident_bytes).sum()
    }

    async fn watch(&self, viewers: u32, runtime: &Handle) -> anyhow::Result<Watching> {
        let servers = self.products.iter();
        let servers = servers.map(|one| (one.served.address, one.setting.key.as_str()));
        Watching::open(&servers.collect::<Vec<_>>(), viewers, runtime).await
    }

    /// Sends holds and releases of seats to the first server.
    async fn sell(&self, args: &BenchArgs, pace: Pace) -> anyhow::Result<Measured> {
        let first = self.products.first().context("no server")?;
        let span = Duration::from_secs(args.seconds);
        sell(&first.setting, (pace, span), &self.ids()).await
    }

    /// Ends all servers, and counts what `verify` finds wrong then.
    async fn stop(self) -> anyhow::Result<usize> {
        for product in self.products {
            product.served.stop().await?;
        }
        self.ledger.violations().await
    }
}

async fn measure(args: &BenchArgs, viewers: u32, runtime: &Handle) -> anyhow::Result<Run> {
    let fleet = Fleet::start(args, viewers).await?;
    let first = fleet.products.first().context("no server")?;
    make_event(&first.setting.admin, EVENT, HALL).await?;
    let mut run = Run::default();
    let rate = Pace::Open(args.rate.unwrap_or(VIEWERS_CHANGES_PER_S));
    fleet.sell(args, Pace::Closed).await?;
    run.alone_per_s = fleet.sell(args, Pace::Closed).await?.load.rate_per_s;
    run.quiet_cpu = share(&fleet.sell(args, rate).await?).0;
    let (before, dropped) = (fleet.resident_bytes()?, listen_overflows()?);
    let mut watching = fleet.watch(viewers, runtime).await?;
    run.listen_overflows = listen_overflows()?.saturating_sub(dropped);
    run.first_byte_p99 = watching.first_bytes.p99;
    let more = fleet.resident_bytes()?.saturating_sub(before);
    run.bytes_a_viewer = more / u64::from(viewers.max(1));
    run.watched_per_s = fleet.sell(args, Pace::Closed).await?.load.rate_per_s;
    watching.take()?;
    let watched = fleet.sell(args, rate).await?;
    let seen = watching.take()?;
    (run.watched_cpu, run.generator_cpu) = share(&watched);
    run.note(&seen, Duration::from_millis(watched.load.took_ms));
    drop(watching);
    run.violations = fleet.stop().await?;
    bare(args, viewers, runtime, &mut run).await?;
    Ok(run)
}

/// Sends holds and releases of seats for `span`; `servers` are those whose CPU counts.
pub(super) async fn sell(
    setting: &Setting,
    (pace, span): (Pace, Duration),
    servers: &[u32],
) -> anyhow::Result<Measured> {
    let plan = LoadPlan::http(setting.address, VIEWERS_BUYERS, pace, Until::Elapsed(span));
    let sold = measured(plan, &own_seats(setting, EVENT), servers).await?;
    let is_good = sold.load.is_answered_with(&[200, 201]);
    anyhow::ensure!(is_good, "a hold failed: {:?}", sold.load);
    Ok(sold)
}

/// Returns the CPU of the server and of the generator, thousandths of a core.
fn share(measured: &Measured) -> (u64, u64) {
    let took = u128::from(measured.load.took_ms.max(1)) * 1_000_000;
    let share = |used: Option<Duration>| {
        let used = used.unwrap_or_default().as_nanos();
        u64::try_from(used * 1_000 / took).unwrap_or(u64::MAX)
    };
    (share(measured.server_cpu), share(measured.generator_cpu))
}

impl Run {
    fn note(&mut self, seen: &FeedCounts, took: Duration) {
        let delays = seen.delays();
        self.frames_a_second = per_second(seen.frames, took);
        self.bytes_a_frame = seen.bytes / seen.frames.max(1);
        (self.delay_p50, self.delay_p99) = (delays.p50, delays.p99);
        // Thousandths of a core are microseconds in a millisecond.
        let cpu = self.watched_cpu.saturating_sub(self.quiet_cpu) * 1_000_000;
        self.frame_cpu_ns = cpu / self.frames_a_second.max(1);
    }
}

/// Measures a bare fan-out of as many bytes, as often, to as many sockets.
async fn bare(
    args: &BenchArgs,
    viewers: u32,
    runtime: &Handle,
    run: &mut Run,
) -> anyhow::Result<()> {
    let ticks = (run.frames_a_second / u64::from(viewers.max(1))).max(1);
    let plan = fan_out::Plan {
        bytes: run.bytes_a_frame,
        period_ms: (1_000 / ticks).max(1),
    };
    let served = Served::start(&mut fan_out::command(plan)?).await?;
    let mut watching = Watching::open(&[(served.address, "none")], viewers, runtime).await?;
    run.bare_first_byte_p99 = watching.first_bytes.p99;
    watching.take()?;
    let before = CpuTime::of(served.id)?;
    let until = SystemClock.boot().plus(Duration::from_secs(args.seconds));
    SystemClock.sleep_until(until).await;
    let (used, seen) = (CpuTime::of(served.id)?.since(before), watching.take()?);
    let nanos = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
    run.bare_frame_cpu_ns = nanos / seen.frames.max(1);
    drop(watching);
    served.stop().await
}

/// Reads how many connections the kernel has dropped so far: `ListenOverflows` of proc(5).
fn listen_overflows() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/netstat").context("no /proc/net/netstat")?;
    let lines = text.lines();
    let mut lines = lines.filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = lines.next().zip(lines.next()).context("no TcpExt there")?;
    let mut found = names.split(' ').zip(values.split(' '));
    let found = found.find(|(name, _)| *name == "ListenOverflows");
    let (_, value) = found.context("no ListenOverflows there")?;
    Ok(value.parse()?)
}

fn goals(runs: &[Run], (viewers, servers): (u32, Option<u32>)) -> Vec<Verdict> {
    let runs = Series(runs);
    let delay = if servers.is_some() { 350_000 } else { 250_000 };
    let sale = if viewers > 1_000 { 500 } else { 800 };
    let goal =
        |id, what, measured, (bound, goal)| Verdict::single((id, what), measured, bound, goal);
    vec![
        goal(
            "P12",
            "holds/s with viewers / without",
            runs.ratio(|run| run.watched_per_s, |run| run.alone_per_s),
            (Bound::AtLeast, sale),
        ),
        goal(
            "P17",
            "CPU of the feed, cores",
            runs.median(|run| run.watched_cpu.saturating_sub(run.quiet_cpu)),
            (Bound::AtMost, 500),
        ),
        goal(
            "P17",
            "commit to last viewer, p99, ms",
            runs.median(|run| run.delay_p99),
            (Bound::AtMost, delay),
        ),
        goal(
            "P17",
            "memory of a viewer, kB",
            runs.median(|run| run.bytes_a_viewer),
            (Bound::AtMost, 16_000),
        ),
        goal(
            "P17",
            "CPU of a delivered frame / bare fan-out",
            runs.ratio(|run| run.frame_cpu_ns, |run| run.bare_frame_cpu_ns),
            (Bound::AtMost, 1_500),
        ),
        goal(
            "P18",
            "connections dropped by a full queue",
            runs.median(|run| run.listen_overflows * 1_000),
            (Bound::AtMost, 0),
        ),
        goal(
            "P18",
            "p99 of the first byte / bare listener",
            runs.ratio(|run| run.first_byte_p99, |run| run.bare_first_byte_p99),
            (Bound::AtMost, 2_000),
        ),
    ]
}

fn text(report: &ViewersBench) -> String {
    let servers = match report.servers {
        None => "one server on a folder".to_owned(),
        Some(count) => format!("servers on one PostgreSQL: {count}"),
    };
    let mut lines = vec![format!(
        "{} viewers of a hall of 50,000 seats, {servers}, load average {} before, violations {}",
        report.viewers, report.load_average, report.violations
    )];
    for run in &report.runs {
        lines.push(format!(
            "changes/s in a closed loop: {} alone, {} watched; a viewer takes {} bytes; all connected with a \
             first byte after {} us at p99 (bare {}), overflows {}\n\
             at a steady rate: server {} of a core alone, {} watched, generator {}; {} frames/s of {} bytes, \
             {} ns each (bare {}); commit to last viewer p50 {} us, p99 {} us",
            run.alone_per_s,
            run.watched_per_s,
            run.bytes_a_viewer,
            run.first_byte_p99,
            run.bare_first_byte_p99,
            run.listen_overflows,
            thousandths(run.quiet_cpu),
            thousandths(run.watched_cpu),
            thousandths(run.generator_cpu),
            run.frames_a_second,
            run.bytes_a_frame,
            run.frame_cpu_ns,
            run.bare_frame_cpu_ns,
            run.delay_p50,
            run.delay_p99,
        ));
    }
    lines.extend(report.goals.iter().map(Verdict::line));
    lines.join("\n")
}
