//! The second ceiling of holds: SQLite alone. As many tasks as connections each wait for a narrow
//! row of their own; one thread commits whatever waits, as the ledger's writer does. No HTTP.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::Context;
use soldonce_clock::{Clock, SystemClock};
use soldonce_engine::ledger::sqlite::BareLog;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::super::load::{Arrivals, LoadPlan, LoadReport, Pace, Tally, Until};
use super::scenario::{Dose, Prepared, Scenario, Target};

/// The scenario `sqlite`.
pub(crate) struct GroupCommit;

type Waiter = oneshot::Sender<()>;

/// What a durable row counts as, so that one report fits all.
const DURABLE: u16 = 201;

impl Scenario for GroupCommit {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn about(&self) -> &'static str {
        "no HTTP, no rules: SQLite's own group commit of one narrow row a request, in this process"
    }

    fn expects(&self) -> &'static [u16] {
        &[DURABLE]
    }

    fn target(&self) -> Target {
        Target::Within
    }

    fn within<'a>(&'a self, dose: Dose<'a>) -> Prepared<'a, LoadReport> {
        Box::pin(async move {
            let log = BareLog::open(dose.folder)?;
            let (jobs, queue) = sync_channel(BareLog::BATCH_MAX * 16);
            let thread = std::thread::Builder::new()
                .name("bare-ledger".to_owned())
                .spawn(move || commit_all(log, &queue))?;
            let report = put_load(dose, &jobs).await;
            drop(jobs);
            let ended = thread
                .join()
                .map_err(|_| anyhow::anyhow!("the committing thread panicked"));
            ended??;
            report
        })
    }
}

fn commit_all(mut log: BareLog, queue: &Receiver<Waiter>) -> anyhow::Result<()> {
    let mut batch: Vec<Waiter> = Vec::with_capacity(BareLog::BATCH_MAX);
    while let Ok(first) = queue.recv() {
        batch.push(first);
        while batch.len() < BareLog::BATCH_MAX
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        log.commit(batch.len())?;
        for waiter in batch.drain(..) {
            // Whoever ended his wait is not missed.
            waiter.send(()).unwrap_or_default();
        }
    }
    Ok(())
}

async fn put_load(dose: Dose<'_>, jobs: &SyncSender<Waiter>) -> anyhow::Result<LoadReport> {
    let until = match dose.requests {
        Some(requests) => Until::Requests(requests),
        None => Until::Elapsed(Duration::from_secs(dose.seconds)),
    };
    let started = SystemClock.boot();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let plan = LoadPlan {
        address,
        connections: dose.waiters,
        pace: Pace::Closed,
        until,
    };
    let arrivals = Arc::new(Arrivals::new(plan, started));
    let mut waiters = JoinSet::new();
    for _ in 0..dose.waiters {
        waiters.spawn(wait_in_turn(jobs.clone(), Arc::clone(&arrivals)));
    }
    let mut total = Tally::new();
    while let Some(tally) = waiters.join_next().await {
        total.add(&tally.context("a waiter panicked")??);
    }
    Ok(total.report(SystemClock.boot().since(started), 0))
}

async fn wait_in_turn(jobs: SyncSender<Waiter>, arrivals: Arc<Arrivals>) -> anyhow::Result<Tally> {
    let (clock, mut tally) = (SystemClock, Tally::new());
    let mut now = clock.boot();
    while let Some(began) = arrivals.take(now) {
        let (waiter, durable) = oneshot::channel();
        tally.count_sent();
        jobs.try_send(waiter).context("the queue is full")?;
        durable.await.context("the commit failed")?;
        now = clock.boot();
        tally.count_answer(DURABLE, now.since(began));
    }
    Ok(tally)
}
