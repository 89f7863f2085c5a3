//! Strategy `lease`: `SET NX PX` of an owner's name on each seat in Redis, a fenced write, and a release
//! that checks the owner.

use std::sync::LazyLock;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use redis::Script;
use redis::aio::MultiplexedConnection;

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::naive::SELL;
use super::{Purchase, TAKEN, is_taken};
use crate::kit::random_name;

/// How long a lease lives unless its scene sets another ttl.
pub(super) const TTL: Duration = Duration::from_secs(10);

/// Deletes a key of this owner; that of another stays.
pub(super) const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

static RELEASE_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(RELEASE));

const READ: &str = "-- lab_lease_read
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)";

const WRITE: &str = "-- lab_lease_write
WITH taken AS (
    UPDATE lab_seats SET buyer = $3, fence = $4 WHERE hall = $1 AND seat = ANY ($2) RETURNING seat
)
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM taken";

const SET: &str = "SET lab:hall:seat owner NX PX 10000";

pub(super) const STATEMENTS: &[&str] = &[SET, SET, SET, "INCR lab:fence", READ, WRITE, RELEASE];

/// A lease on all seats of a purchase.
pub(super) struct Lease {
    /// A random name: only its owner deletes the keys.
    pub(super) owner: String,
    /// A number that rises with every lease, where the lock gives one.
    pub(super) fence: Option<i64>,
}

pub(super) async fn buy(
    pool: &Pool,
    redis: &MultiplexedConnection,
    purchase: &Purchase,
) -> Result<Outcome, Outcome> {
    let Some(lease) = acquire(redis, purchase, TTL).await? else {
        return Ok(TAKEN);
    };
    let written = look_and_write(pool, purchase, &lease).await;
    delete(redis, purchase, (&lease.owner, purchase.seats.len())).await?;
    written
}

/// Takes the lease and the next fencing token; none when another holder has a seat.
pub(super) async fn acquire(
    redis: &MultiplexedConnection,
    purchase: &Purchase,
    ttl: Duration,
) -> Result<Option<Lease>, Outcome> {
    let owner = random_name();
    if !set(redis, purchase, (&owner, ttl)).await? {
        return Ok(None);
    }
    let mut incr = redis::cmd("INCR");
    incr.arg("lab:fence");
    let fence = incr.query_async(&mut redis.clone()).await?;
    Ok(Some(Lease {
        owner,
        fence: Some(fence),
    }))
}

/// Sets the keys of all seats, or of none.
pub(super) async fn set(
    redis: &MultiplexedConnection,
    purchase: &Purchase,
    (owner, ttl): (&str, Duration),
) -> Result<bool, Outcome> {
    let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    for (count, seat) in purchase.seats.iter().enumerate() {
        let mut set = redis::cmd("SET");
        set.arg(key(purchase.hall, *seat)).arg(owner);
        set.arg("NX").arg("PX").arg(ttl);
        let is_set: Option<String> = set.query_async(&mut redis.clone()).await?;
        if is_set.is_none() {
            delete(redis, purchase, (owner, count)).await?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes the keys of the first `count` seats, where they are still this owner's.
pub(super) async fn delete(
    redis: &MultiplexedConnection,
    purchase: &Purchase,
    (owner, count): (&str, usize),
) -> Result<(), Outcome> {
    for seat in purchase.seats.iter().take(count) {
        let mut release = RELEASE_SCRIPT.key(key(purchase.hall, *seat));
        let mut redis = redis.clone();
        let _: i64 = release.arg(owner).invoke_async(&mut redis).await?;
    }
    Ok(())
}

fn key(hall: i32, seat: i32) -> String {
    format!("lab:{hall}:{seat}")
}

/// Looks whether the seats are free, and writes.
pub(super) async fn look_and_write(
    pool: &Pool,
    purchase: &Purchase,
    lease: &Lease,
) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let read = connection.prepare_cached(READ).await?;
    let Purchase { hall, seats, .. } = purchase;
    if is_taken(&connection.query(&read, &[hall, seats]).await?)? {
        return Ok(TAKEN);
    }
    write(&connection, purchase, lease).await
}

/// Writes seats that were free at the look, with the fence if there is one.
pub(super) async fn write(
    connection: &ClientWrapper,
    purchase: &Purchase,
    lease: &Lease,
) -> Result<Outcome, Outcome> {
    let Purchase {
        hall, buyer, seats, ..
    } = purchase;
    if let Some(fence) = &lease.fence {
        let write = connection.prepare_cached(WRITE).await?;
        connection
            .execute(&write, &[hall, seats, buyer, fence])
            .await?;
    } else {
        let sell = connection.prepare_cached(SELL).await?;
        connection.execute(&sell, &[hall, seats, buyer]).await?;
    }
    Ok(Outcome::Won(None))
}
