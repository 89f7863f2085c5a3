//! The second ceiling of holds: SQLite alone, as durable as the ledger. As many tasks as connections
//! each wait for a narrow row of their own; one thread commits every waiting row, as the ledger's writer does.
//! No HTTP.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::{anyhow, ensure};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::kit::{Load, LoadReport, closed, per_second};
use crate::limits::{BENCH_SQLITE_BATCH_MAX, BENCH_SQLITE_LOG_PAGES};

type Waiter = oneshot::Sender<()>;

/// What a durable row counts as, so that one report fits all.
const DURABLE: u16 = 201;

const CREATE_BARE: &str = "-- create_bare
CREATE TABLE bare (n INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT";

const INSERT_BARE: &str = "-- insert_bare
INSERT INTO bare (value) VALUES (?1)";

/// Puts the load on a log in this folder.
pub(super) async fn measure(folder: &Path, load: Load) -> anyhow::Result<LoadReport> {
    let log = open(folder)?;
    let (jobs, queue) = sync_channel(BENCH_SQLITE_BATCH_MAX * 16);
    let thread = std::thread::Builder::new()
        .name("bare-ledger".to_owned())
        .spawn(move || commit_all(log, &queue))?;
    let request = move |_| {
        let (waiter, durable) = oneshot::channel::<()>();
        let sent = jobs.try_send(waiter).map_err(|error| error.to_string());
        async move {
            sent?;
            durable.await.map_err(|error| error.to_string())
        }
    };
    let closed = closed(load, request).await?;
    let ended = thread.join();
    ended.map_err(|_| anyhow!("the committing thread panicked"))??;
    ensure!(closed.failed.is_empty(), "no commit: {:?}", closed.failed);
    let sent = closed.latencies.count();
    Ok(LoadReport {
        rate_per_s: per_second(sent, closed.took),
        latency_us: closed.latencies.figures(),
        statuses: BTreeMap::from([(DURABLE, sent)]),
        errors: BTreeMap::new(),
        sent,
        missed: 0,
        took_ms: u64::try_from(closed.took.as_millis())?,
    })
}

fn open(folder: &Path) -> rusqlite::Result<Connection> {
    let log = Connection::open(folder.join("bare.sqlite"))?;
    log.pragma_update(None, "journal_mode", "wal")?;
    log.pragma_update(None, "synchronous", "full")?;
    log.pragma_update(None, "fullfsync", true)?;
    log.pragma_update(None, "wal_autocheckpoint", BENCH_SQLITE_LOG_PAGES)?;
    log.execute(CREATE_BARE, [])?;
    Ok(log)
}

fn commit_all(mut log: Connection, queue: &Receiver<Waiter>) -> anyhow::Result<()> {
    let mut batch: Vec<Waiter> = Vec::with_capacity(BENCH_SQLITE_BATCH_MAX);
    while let Ok(first) = queue.recv() {
        batch.push(first);
        while batch.len() < BENCH_SQLITE_BATCH_MAX
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        commit(&mut log, batch.len())?;
        for waiter in batch.drain(..) {
            // A waiter that is gone needs no answer.
            waiter.send(()).unwrap_or_default();
        }
    }
    Ok(())
}

/// Makes so many rows durable in one commit.
fn commit(log: &mut Connection, rows: usize) -> anyhow::Result<()> {
    let transaction = log.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut insert = transaction.prepare_cached(INSERT_BARE)?;
    for row in 0..rows {
        insert.execute([i64::try_from(row)?])?;
    }
    drop(insert);
    Ok(transaction.commit()?)
}
