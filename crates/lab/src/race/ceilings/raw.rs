//! The bare ceilings: PostgreSQL and Redis without any decision. One narrow row a commit; the rows of a
//! hold, many holds a commit, behind the same gathering as `queue`; one script.

use std::sync::{Arc, LazyLock};

use anyhow::Context;
use soldonce_clock::{Entropy, SystemEntropy};
use soldonce_lease::Namespace;
use soldonce_lease::backend::redis::{RedisConfig, RedisScript, RedisScripts};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::pool::Pool;
use super::Rate;
use crate::kit::{Load, closed};
use crate::limits::{CEILING_BATCH_MAX, CEILING_GATHER_TURNS_MAX, CEILING_SCRIPT_WAIT};

/// The ledger's own tables, without its guards and its rules.
const MAKE: &str = "-- lab_raw_make
CREATE TABLE lab_raw_narrow (n bigint PRIMARY KEY, owner bytea NOT NULL);
CREATE TABLE lab_raw_units (LIKE units INCLUDING ALL);
CREATE TABLE lab_raw_holds (LIKE holds INCLUDING ALL);
CREATE TABLE lab_raw_holders (LIKE holders INCLUDING ALL);
CREATE TABLE lab_raw_audit (LIKE audit INCLUDING ALL);
CREATE TABLE lab_raw_batches (LIKE batches INCLUDING ALL) WITH (toast_tuple_target = 8160)";

const INSERT: &str = "-- lab_raw_insert
INSERT INTO lab_raw_narrow (n, owner) VALUES ($1, $2)";

const BATCH: &str = include_str!("batch.sql");

/// What SET NX PX of a seat's key costs, as a script.
static TAKE: LazyLock<RedisScript> = LazyLock::new(|| {
    RedisScript::new(
        "#!lua\nlocal set = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 10000)\n\
         return {set and 1 or 0}",
    )
});

/// Draws sixteen random bytes.
fn id() -> Vec<u8> {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    bytes.to_vec()
}

pub(super) async fn make(pool: &Pool) -> anyhow::Result<()> {
    pool.get().await?.batch_execute(MAKE).await?;
    pool.warm().await
}

pub(super) async fn inserts(pool: &Pool, load: Load, run: u32) -> anyhow::Result<Rate> {
    let pool = pool.clone();
    let request = move |n: u64| {
        let pool = pool.clone();
        async move {
            let n = i64::from(run) << 40 | i64::try_from(n).map_err(|error| error.to_string())?;
            let connection = pool.get().await.map_err(|error| error.to_string())?;
            let insert = connection.prepare_cached(INSERT).await;
            let insert = insert.map_err(|error| error.to_string())?;
            let done = connection.execute(&insert, &[&n, &id()]).await;
            done.map(drop).map_err(|error| error.to_string())
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}

/// A row that waits for its commit.
type Waiter = (i32, oneshot::Sender<()>);

/// Measures commits of the rows of holds, each commit with as many holds as wait for it.
pub(super) async fn batches(pool: &Pool, load: Load, run: u32) -> anyhow::Result<Rate> {
    let (jobs, queue) = mpsc::channel(CEILING_BATCH_MAX * 4);
    let request = move |n: u64| {
        let jobs = jobs.clone();
        async move {
            let unit = i32::try_from(n).map_err(|error| error.to_string())?;
            let (reply, durable) = oneshot::channel();
            let sent = jobs.send((unit, reply)).await;
            sent.map_err(|error| error.to_string())?;
            durable.await.map_err(|error| error.to_string())
        }
    };
    // A task among the buyers, as that of `queue` is: only so do they run before it.
    let mut storing = JoinSet::new();
    storing.spawn(store(pool.clone(), queue, run));
    let loaded = closed(load, request).await;
    for stored in storing.join_all().await {
        stored?;
    }
    Ok(Rate::of(&loaded?))
}

/// Takes further rows that come while other tasks run: the same gathering as that of `queue`, so that
/// both commit as many rows at once.
async fn gather(queue: &mut mpsc::Receiver<Waiter>, waiting: &mut Vec<Waiter>) {
    for _ in 0..CEILING_GATHER_TURNS_MAX {
        let before = waiting.len();
        tokio::task::yield_now().await;
        while waiting.len() < CEILING_BATCH_MAX
            && let Ok(waiter) = queue.try_recv()
        {
            waiting.push(waiter);
        }
        if waiting.len() == before {
            return;
        }
    }
}

/// Stores the waiting rows, until no more come.
async fn store(pool: Pool, mut queue: mpsc::Receiver<Waiter>, run: u32) -> anyhow::Result<()> {
    let connection = pool.get().await?;
    let statement = connection.prepare_cached(BATCH).await?;
    let (event, caller, until) = (i32::try_from(run)?, id(), 1_i64 << 40);
    let mut waiting = Vec::with_capacity(CEILING_BATCH_MAX);
    let mut place = 0_i64;
    while queue.recv_many(&mut waiting, CEILING_BATCH_MAX).await > 0 {
        gather(&mut queue, &mut waiting).await;
        place += 1;
        let units: Vec<i32> = waiting.iter().map(|(unit, _)| *unit).collect();
        let holds: Vec<Vec<u8>> = units.iter().map(|unit| rising(run, *unit)).collect();
        let keys: Vec<Vec<u8>> = units.iter().map(|_| id()).collect();
        let batch = id();
        connection
            .execute(
                &statement,
                &[
                    &event, &until, &units, &holds, &caller, &keys, &batch, &place,
                ],
            )
            .await?;
        for (_, waiter) in waiting.drain(..) {
            // A waiter that is gone needs no answer.
            waiter.send(()).unwrap_or_default();
        }
    }
    Ok(())
}

/// Builds an id that is above all before, as the product's are.
fn rising(run: u32, unit: i32) -> Vec<u8> {
    let mut bytes = id();
    let rising = (u64::from(run) << 32) | u64::try_from(unit).unwrap_or_default();
    for (byte, high) in bytes.iter_mut().zip(rising.to_be_bytes()) {
        *byte = high;
    }
    bytes
}

/// Measures a bare script: each request runs it once, on one seat.
pub(super) async fn scripts(url: &str, load: Load) -> anyhow::Result<Rate> {
    let namespace = Namespace::new("soldonce-lab").context("the name of the lab is legal")?;
    let scripts = RedisScripts::server(&RedisConfig::from(url), &namespace)?;
    scripts.ping(CEILING_SCRIPT_WAIT).await?;
    let tag = scripts.tag(b"race");
    let keys = Arc::new([format!("lab:{}:seat", tag.as_str())]);
    let (scripts, tag) = (Arc::new(scripts), Arc::new(tag));
    let request = move |_| {
        let (scripts, tag, keys) = (Arc::clone(&scripts), Arc::clone(&tag), Arc::clone(&keys));
        async move {
            let asked = scripts.run(&TAKE, (&tag, &*keys), &[1], CEILING_SCRIPT_WAIT);
            asked.await.map(drop).map_err(|error| error.to_string())
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}
