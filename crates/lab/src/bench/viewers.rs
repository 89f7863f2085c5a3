//! Viewers during the sale of an event: holds a second with and without them, how late a change reaches the
//! last of them, and what a delivered frame costs compared with a bare fan-out of as many bytes to as many sockets.

use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use soldonce_clock::{Clock, SystemClock};

use super::BenchArgs;
use super::fan_out;
use super::look::own_seats;
use super::product::{Product, make_event};
use super::report::Measured;
use super::rounds::{generator_runtime, measured, violations};
use super::watching::{Seen, Watching};
use crate::exit::Exit;
use crate::kit::{
    Bound, Cores, CpuTime, RunFolder, Served, Verdict, load_average, median, print_report,
    resident_bytes, thousandths,
};
use crate::limits::{VIEWERS_BUYERS, VIEWERS_CHANGES_PER_S};
use crate::load::{LoadPlan, Pace, Until};

const EVENT: &str = "hall";
/// Rows and seats of a row.
const HALL: (u64, u64) = (250, 200);

#[derive(Debug, Serialize)]
struct ViewersBench {
    viewers: u32,
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

/// Measures and prints.
pub(super) fn run(args: &BenchArgs, viewers: u32) -> anyhow::Result<Exit> {
    let load_average = load_average();
    let mut runs = Vec::new();
    for _ in 0..args.runs {
        runs.push(generator_runtime()?.block_on(measure(args, viewers))?);
    }
    let violations = runs.iter().map(|run| run.violations).sum();
    let report = ViewersBench {
        viewers,
        load_average,
        goals: goals(&runs, viewers),
        runs,
        violations,
    };
    print_report(args.json.into(), &report, || text(&report), violations)
}

async fn measure(args: &BenchArgs, viewers: u32) -> anyhow::Result<Run> {
    let folder = RunFolder::make(args.data.as_deref())?;
    let product = Product::start_for(viewers, folder.path(), args.cores()).await?;
    make_event(&product.setting.admin, EVENT, HALL).await?;
    let mut run = Run::default();
    let rate = Pace::Open(args.rate.unwrap_or(VIEWERS_CHANGES_PER_S));
    sell(&product, args, Pace::Closed).await?;
    run.alone_per_s = sell(&product, args, Pace::Closed).await?.load.rate_per_s;
    run.quiet_cpu = share(&sell(&product, args, rate).await?).0;
    let (before, dropped) = (resident_bytes(product.served.id)?, listen_overflows()?);
    let key = &product.setting.key;
    let watching = Watching::open(product.served.address, key, (EVENT, viewers)).await?;
    run.listen_overflows = listen_overflows()?.saturating_sub(dropped);
    run.first_byte_p99 = watching.first_bytes().p99;
    let more = resident_bytes(product.served.id)?.saturating_sub(before);
    run.bytes_a_viewer = more / u64::from(viewers.max(1));
    run.watched_per_s = sell(&product, args, Pace::Closed).await?.load.rate_per_s;
    watching.take();
    let watched = sell(&product, args, rate).await?;
    let seen = watching.take();
    (run.watched_cpu, run.generator_cpu) = share(&watched);
    run.note(&seen, Duration::from_millis(watched.load.took_ms));
    drop(watching);
    product.served.stop().await?;
    run.violations = violations(folder.path())?;
    bare(args, viewers, &mut run).await?;
    Ok(run)
}

/// Holds and releases seats.
async fn sell(product: &Product, args: &BenchArgs, pace: Pace) -> anyhow::Result<Measured> {
    let plan = LoadPlan {
        address: product.served.address,
        connections: VIEWERS_BUYERS,
        pace,
        until: Until::Elapsed(Duration::from_secs(args.seconds)),
    };
    let makers = own_seats(&product.setting, EVENT);
    let sold = measured(plan, &makers, Some(product.served.id)).await?;
    let good = sold.load.count(200) + sold.load.count(201);
    anyhow::ensure!(good == sold.load.sent, "a hold failed: {:?}", sold.load);
    Ok(sold)
}

/// CPU of the server and of the generator, thousandths of a core.
fn share(measured: &Measured) -> (u64, u64) {
    let took = u128::from(measured.load.took_ms.max(1)) * 1_000_000;
    let share = |used: Option<Duration>| {
        let used = used.unwrap_or_default().as_nanos();
        u64::try_from(used * 1_000 / took).unwrap_or(u64::MAX)
    };
    (share(measured.server_cpu), share(measured.generator_cpu))
}

impl Run {
    fn note(&mut self, seen: &Seen, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let delays = seen.delays();
        self.frames_a_second = seen.frames * 1_000_000_000 / nanos.max(1);
        self.bytes_a_frame = seen.bytes / seen.frames.max(1);
        (self.delay_p50, self.delay_p99) = (delays.p50, delays.p99);
        // Thousandths of a core are microseconds in a millisecond.
        let cpu = self.watched_cpu.saturating_sub(self.quiet_cpu) * 1_000_000;
        self.frame_cpu_ns = cpu / self.frames_a_second.max(1);
    }
}

/// The bare fan-out of as many bytes, as often, to as many sockets.
async fn bare(args: &BenchArgs, viewers: u32, run: &mut Run) -> anyhow::Result<()> {
    let ticks = (run.frames_a_second / u64::from(viewers.max(1))).max(1);
    let plan = fan_out::Plan {
        bytes: run.bytes_a_frame,
        period_ms: (1_000 / ticks).max(1),
    };
    let served = Served::start(&mut fan_out::command(plan)?, Cores(args.pin)).await?;
    let watching = Watching::open(served.address, "none", (EVENT, viewers)).await?;
    run.bare_first_byte_p99 = watching.first_bytes().p99;
    watching.take();
    let before = CpuTime::of(served.id)?;
    let until = SystemClock.boot().plus(Duration::from_secs(args.seconds));
    SystemClock.sleep_until(until).await;
    let (used, seen) = (CpuTime::of(served.id)?.since(before), watching.take());
    let nanos = u64::try_from(used.as_nanos()).unwrap_or(u64::MAX);
    run.bare_frame_cpu_ns = nanos / seen.frames.max(1);
    drop(watching);
    served.stop().await
}

/// Dropped by the kernel of this machine so far: `ListenOverflows` of proc(5).
fn listen_overflows() -> anyhow::Result<u64> {
    let text = std::fs::read_to_string("/proc/net/netstat").context("no /proc/net/netstat")?;
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = lines.next().zip(lines.next()).context("no TcpExt there")?;
    let mut found = names.split(' ').zip(values.split(' '));
    let found = found.find(|(name, _)| *name == "ListenOverflows");
    let (_, value) = found.context("no ListenOverflows there")?;
    Ok(value.parse()?)
}

fn goals(runs: &[Run], viewers: u32) -> Vec<Verdict> {
    let middle = |figure: fn(&Run) -> u64| median(runs.iter().map(figure)).unwrap_or_default();
    let per = |part: u64, of: u64| part * 1_000 / of.max(1);
    let sale = if viewers > 1_000 { 500 } else { 800 };
    let goal =
        |id, what, measured, (bound, goal)| Verdict::single((id, what), measured, bound, goal);
    vec![
        goal(
            "P12",
            "holds/s with viewers / without",
            middle(|run| run.watched_per_s * 1_000 / run.alone_per_s.max(1)),
            (Bound::AtLeast, sale),
        ),
        goal(
            "P17",
            "CPU of the feed, cores",
            middle(|run| run.watched_cpu.saturating_sub(run.quiet_cpu)),
            (Bound::AtMost, 500),
        ),
        goal(
            "P17",
            "commit to last viewer, p99, ms",
            middle(|run| run.delay_p99),
            (Bound::AtMost, 250_000),
        ),
        goal(
            "P17",
            "memory of a viewer, kB",
            middle(|run| run.bytes_a_viewer),
            (Bound::AtMost, 16_000),
        ),
        goal(
            "P17",
            "CPU of a delivered frame / bare fan-out",
            per(
                middle(|run| run.frame_cpu_ns),
                middle(|run| run.bare_frame_cpu_ns),
            ),
            (Bound::AtMost, 1_500),
        ),
        goal(
            "P18",
            "connections dropped by a full queue",
            middle(|run| run.listen_overflows * 1_000),
            (Bound::AtMost, 0),
        ),
        goal(
            "P18",
            "p99 of the first byte / bare listener",
            per(
                middle(|run| run.first_byte_p99),
                middle(|run| run.bare_first_byte_p99),
            ),
            (Bound::AtMost, 2_000),
        ),
    ]
}

fn text(report: &ViewersBench) -> String {
    let mut lines = vec![format!(
        "{} viewers of a hall of 50,000 seats, load average {} before, violations {}",
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
