//! Strategy `lease`: `SET NX PX` of an owner's name on each seat in Redis, a fenced write, and a release
//! that checks the owner.

use std::sync::LazyLock;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use redis::Script;
use redis::aio::MultiplexedConnection;
use soldonce_clock::{Entropy, SystemEntropy};

use super::super::contender::{Doing, Outcome, Pool};
use super::super::plan::Want;
use super::pessimistic::SELL;
use super::{Bought, Stoppable, TAKEN, Textbook, is_taken, prepared, sorted};

/// How long a lease lives unless its scene sets another ttl.
pub(super) const TTL: Duration = Duration::from_secs(10);

/// Deletes a key of this owner; that of another stays.
pub(super) const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

pub(super) static RELEASE_SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(RELEASE));

const READ: &str = "-- lab_lease_read
SELECT seat, buyer FROM lab_seats WHERE hall = $1 AND seat = ANY ($2)";

const WRITE: &str = "-- lab_lease_write
WITH taken AS (
    UPDATE lab_seats SET buyer = $3, fence = $4 WHERE hall = $1 AND seat = ANY ($2) RETURNING seat
)
INSERT INTO lab_sales (hall, seat, buyer) SELECT $1, seat, $3 FROM taken";

/// The lease of one buyer, or none of it: another has a seat.
pub(in super::super) struct Granted {
    /// A number that rises with every grant, where the lock gives one.
    pub(super) fence: Option<i64>,
}

/// A random name: only its owner deletes the key.
pub(super) fn owner() -> String {
    let mut bytes = [0; 16];
    SystemEntropy.fill(&mut bytes);
    soldonce_core::encode_128(u128::from_be_bytes(bytes))
}

pub(super) fn key(hall: i32, seat: i32) -> String {
    format!("lab:{hall}:{seat}")
}

/// Sets the keys of all seats, or of none.
pub(super) async fn set_all(
    redis: &mut MultiplexedConnection,
    (hall, seats): (i32, &[i32]),
    (owner, ttl): (&str, Duration),
) -> Result<bool, Outcome> {
    let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    for (count, seat) in seats.iter().enumerate() {
        let mut set = redis::cmd("SET");
        set.arg(key(hall, *seat))
            .arg(owner)
            .arg("NX")
            .arg("PX")
            .arg(ttl);
        let is_set: Option<String> = set.query_async(redis).await?;
        if is_set.is_none() {
            delete_all(redis, (hall, seats.get(..count).unwrap_or_default()), owner).await?;
            return Ok(false);
        }
    }
    Ok(true)
}

/// Deletes the keys that are still this owner's.
pub(super) async fn delete_all(
    redis: &mut MultiplexedConnection,
    (hall, seats): (i32, &[i32]),
    owner: &str,
) -> Result<(), Outcome> {
    for seat in seats {
        let mut release = RELEASE_SCRIPT.key(key(hall, *seat));
        let _: i64 = release.arg(owner).invoke_async(redis).await?;
    }
    Ok(())
}

/// Looks whether the seats are free, and writes.
pub(super) async fn look_and_write(
    pool: &Pool,
    (hall, seats): (i32, &[i32]),
    (buyer, granted): (i32, &Granted),
) -> Result<Outcome, Outcome> {
    let connection = pool.connection().await?;
    let read = prepared(&connection, READ).await?;
    if is_taken(&connection.query(&read, &[&hall, &seats]).await?)? {
        return Ok(TAKEN);
    }
    write(&connection, (hall, seats), (buyer, granted)).await
}

/// Writes what was looked at before, with the fence if there is one.
pub(super) async fn write(
    connection: &ClientWrapper,
    (hall, seats): (i32, &[i32]),
    (buyer, granted): (i32, &Granted),
) -> Result<Outcome, Outcome> {
    if let Some(fence) = granted.fence {
        let write = prepared(connection, WRITE).await?;
        connection
            .execute(&write, &[&hall, &seats, &buyer, &fence])
            .await?;
    } else {
        let store = prepared(connection, SELL).await?;
        connection.execute(&store, &[&hall, &seats, &buyer]).await?;
    }
    Ok(Outcome::Won(None))
}

pub(in super::super) struct Lease {
    redis: MultiplexedConnection,
}

impl Lease {
    /// # Errors
    /// When the server cannot be reached.
    pub(in super::super) async fn connect(url: &str) -> anyhow::Result<Self> {
        let client = redis::Client::open(url)?;
        let redis = client.get_multiplexed_async_connection().await?;
        Ok(Self { redis })
    }

    /// The next fencing token: a counter that rises with every grant.
    async fn granted(&self) -> Result<Granted, Outcome> {
        let mut incr = redis::cmd("INCR");
        let fence = incr
            .arg("lab:fence")
            .query_async(&mut self.redis.clone())
            .await?;
        Ok(Granted { fence: Some(fence) })
    }
}

impl Textbook for Lease {
    fn statements(&self) -> &'static [&'static str] {
        const SET: &str = "SET lab:hall:seat owner NX PX 10000";
        &[SET, SET, SET, "INCR lab:fence", READ, WRITE, RELEASE]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(async move {
            let (buyer, seats) = sorted(want);
            let (owner, mut redis) = (owner(), self.redis.clone());
            if !set_all(&mut redis, (hall, &seats), (&owner, TTL)).await? {
                return Ok(TAKEN);
            }
            let written = match self.granted().await {
                Ok(granted) => look_and_write(pool, (hall, &seats), (buyer, &granted)).await,
                Err(failed) => Err(failed),
            };
            delete_all(&mut redis, (hall, &seats), &owner).await?;
            written
        })
    }
}

impl Stoppable for Lease {
    fn acquire<'a>(
        &'a self,
        seats: (i32, &'a [i32]),
        ttl: Duration,
    ) -> Doing<'a, Result<Option<Granted>, Outcome>> {
        Box::pin(async move {
            if !set_all(&mut self.redis.clone(), seats, (&owner(), ttl)).await? {
                return Ok(None);
            }
            self.granted().await.map(Some)
        })
    }
}
