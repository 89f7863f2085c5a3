//! The viewers of a server that is killed and started again: how soon all have their streams again, and how long
//! buyers wait meanwhile. A viewer does as the page does: it waits for the time that the server gave it, asks for
//! what it lacks, and takes a new snapshot where it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use soldonce_clock::{BootTime, Clock, SystemClock};
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::halls::millis;
use super::ledger::Ledger;
use super::product::{Product, make_event};
use super::rounds::with_viewers;
use super::viewers::{HALL, sell};
use super::watching::{EVENT, ask, lock, number_after, read_messages};
use crate::exit::Exit;
use crate::kit::{ANY_PORT, Bound, Series, Verdict, load_average, print_report};
use crate::limits::{COMEBACK_MS_MAX, VIEWERS_CHANGES_PER_S};
use crate::load::Pace;

/// Seconds of load after the start, in which all must be back.
const GOAL_S: u64 = 10;

#[derive(Debug, Serialize)]
struct Comeback {
    viewers: u32,
    load_average: String,
    runs: Vec<Run>,
    goals: Vec<Verdict>,
    violations: usize,
}

#[derive(Debug, Serialize)]
struct Run {
    /// From the start of the new process until it serves, milliseconds.
    start_ms: u64,
    /// From then until the last viewer has its stream, milliseconds.
    back_ms: u64,
    /// Snapshots that were fetched, and their bytes.
    snapshots: u64,
    snapshot_bytes: u64,
    /// p99 of a buyer's request, microseconds: with all viewers before, and while they come back.
    before_p99: u64,
    back_p99: u64,
    violations: usize,
}

pub(super) fn run(args: &BenchArgs, viewers: u32) -> anyhow::Result<Exit> {
    let load_average = load_average();
    let one = async |crowd: &Handle| Box::pin(measure(args, viewers, crowd)).await;
    let runs = with_viewers(args.runs, &one)?;
    let violations = runs.iter().map(|run| run.violations).sum();
    let report = Comeback {
        viewers,
        load_average,
        goals: goals(&runs),
        runs,
        violations,
    };
    print_report(args.json, &report, || text(&report), violations)
}

async fn measure(args: &BenchArgs, viewers: u32, runtime: &Handle) -> anyhow::Result<Run> {
    let ledger = Ledger::folder(args.data.as_deref())?;
    let product = Product::start_for(viewers, ANY_PORT, &ledger).await?;
    make_event(&product.setting.admin, EVENT, HALL).await?;
    // Its key is in the ledger, and what it holds with it.
    let setting = product.setting;
    let address = product.served.address;
    let crowd = Crowd::gather((address, &setting.key), viewers, runtime);
    crowd.all_here().await?;
    let pace = Pace::Open(args.rate.unwrap_or(VIEWERS_CHANGES_PER_S));
    let before = sell(&setting, (pace, Duration::from_secs(args.seconds)), &[]).await?;
    product.served.kill().await?;
    *lock(&crowd.state) = State::default();
    let product = Product::start_for(viewers, address, &ledger).await?;
    let serves = SystemClock.boot();
    let load = (pace, Duration::from_secs(GOAL_S));
    let (meanwhile, last) = tokio::join!(sell(&setting, load, &[]), crowd.all_here());
    let run = Run {
        start_ms: millis(serves.since(product.served.began)),
        back_ms: millis(last?.since(serves)),
        before_p99: before.load.latency_us.p99,
        back_p99: meanwhile?.load.latency_us.p99,
        snapshots: crowd.state().snapshots,
        snapshot_bytes: crowd.state().snapshot_bytes,
        violations: 0,
    };
    drop(crowd);
    product.served.stop().await?;
    Ok(Run {
        violations: ledger.violations().await?,
        ..run
    })
}

/// Viewers that connect again when their stream breaks. Dropping it ends them.
struct Crowd {
    viewers: u32,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

/// Counts over all viewers since the server was started or killed.
#[derive(Clone, Copy, Default)]
struct State {
    streams: u32,
    snapshots: u64,
    snapshot_bytes: u64,
    last: BootTime,
}

impl Crowd {
    fn gather((address, key): (SocketAddr, &str), viewers: u32, runtime: &Handle) -> Self {
        let state: Arc<Mutex<State>> = Arc::default();
        let mut tasks = JoinSet::new();
        for _ in 0..viewers {
            let viewer = Viewer {
                address,
                key: key.to_owned(),
                state: Arc::clone(&state),
                seq: None,
                retry_ms: 1_000,
            };
            tasks.spawn_on(viewer.stay(), runtime);
        }
        Self {
            viewers,
            state,
            _tasks: tasks,
        }
    }

    fn state(&self) -> State {
        *lock(&self.state)
    }

    /// Waits until each viewer has its stream, and returns when the last one had.
    async fn all_here(&self) -> anyhow::Result<BootTime> {
        let until = SystemClock.boot().plus_ms(COMEBACK_MS_MAX);
        loop {
            let State { streams, last, .. } = self.state();
            if streams >= self.viewers {
                return Ok(last);
            }
            let now = SystemClock.boot();
            anyhow::ensure!(
                now < until,
                "{streams} of {} viewers have their stream after {COMEBACK_MS_MAX} ms",
                self.viewers
            );
            SystemClock.sleep_until(now.plus_ms(10)).await;
        }
    }
}

struct Viewer {
    address: SocketAddr,
    key: String,
    state: Arc<Mutex<State>>,
    /// The last commit it knows.
    seq: Option<u64>,
    retry_ms: u64,
}

impl Viewer {
    async fn stay(mut self) {
        loop {
            // A stream that breaks is opened again; so is one that was refused.
            if self.follow().await.is_ok_and(|is_reset| is_reset) && self.snapshot().await.is_ok() {
                continue;
            }
            let wait = Duration::from_millis(self.retry_ms);
            SystemClock.sleep_until(SystemClock.boot().plus(wait)).await;
        }
    }

    /// Reads the feed to its end; true if the server asked for a new snapshot.
    async fn follow(&mut self) -> std::io::Result<bool> {
        let known = self.seq.map(|seq| format!("last-event-id: {seq}\r\n"));
        let more = known.unwrap_or_default();
        let stream = ask((self.address, &self.key), "feed", &more).await?;
        let (mut is_counted, mut is_reset) = (false, false);
        let note = |message: &str| {
            self.note(message);
            is_reset = message.contains("event: reset");
            if !is_reset && !std::mem::replace(&mut is_counted, true) {
                let mut state = lock(&self.state);
                state.streams += 1;
                state.last = SystemClock.boot();
            }
            !is_reset
        };
        read_messages(stream, note).await?;
        Ok(is_reset)
    }

    fn note(&mut self, message: &str) {
        self.retry_ms = number_after(message, "retry: ").unwrap_or(self.retry_ms);
        self.seq = number_after(message, "\"seq\":").or(self.seq);
    }

    /// Fetches the seats as a browser does, compressed.
    async fn snapshot(&self) -> std::io::Result<()> {
        let more = "accept-encoding: gzip, br\r\nconnection: close\r\n";
        let mut answer = Vec::new();
        let mut stream = ask((self.address, &self.key), "seats", more).await?;
        stream.read_to_end(&mut answer).await?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(std::io::Error::other("no snapshot"));
        }
        let mut state = lock(&self.state);
        state.snapshots += 1;
        state.snapshot_bytes += u64::try_from(answer.len()).unwrap_or(0);
        Ok(())
    }
}

fn goals(runs: &[Run]) -> Vec<Verdict> {
    let runs = Series(runs);
    vec![
        Verdict::single(
            ("P19", "all viewers are back after, s"),
            runs.median(|run| run.back_ms),
            Bound::AtMost,
            GOAL_S * 1_000,
        ),
        Verdict::single(
            ("P19", "p99 of a buyer while they come back / before"),
            runs.ratio(|run| run.back_p99, |run| run.before_p99),
            Bound::AtMost,
            3_000,
        ),
    ]
}

fn text(report: &Comeback) -> String {
    let mut lines = vec![format!(
        "{} viewers of a server that is killed, load average {} before, violations {}",
        report.viewers, report.load_average, report.violations
    )];
    for run in &report.runs {
        lines.push(format!(
            "serves again after {} ms, all viewers are back {} ms later with {} snapshots of {} bytes; p99 of a buyer \
             {} us before, {} us meanwhile",
            run.start_ms,
            run.back_ms,
            run.snapshots,
            run.snapshot_bytes / run.snapshots.max(1),
            run.before_p99,
            run.back_p99,
        ));
    }
    lines.extend(report.goals.iter().map(Verdict::line));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_remembers_what_the_feed_says() {
        let mut viewer = Viewer {
            address: ANY_PORT,
            key: String::new(),
            state: Arc::default(),
            seq: None,
            retry_ms: 1_000,
        };
        viewer.note("retry: 2345\nevent: event\ndata: {\"id\":\"hall\"}\n\n");
        viewer.note("id: 8\ndata: {\"from\":7,\"seq\":8,\"changes\":[]}\n\n");
        assert_eq!((viewer.seq, viewer.retry_ms), (Some(8), 2_345));
        viewer.note("event: reset\ndata: {\"seq\":11}\n\n");
        assert_eq!(viewer.seq, Some(11));
    }
}
