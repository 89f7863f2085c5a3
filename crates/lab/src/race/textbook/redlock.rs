//! Strategy `redlock`: the lease of `lease` on a majority of independent servers (redis.io, "Distributed
//! Locks with Redis"). It gives no number that rises, so that there is nothing to fence a write with.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use soldonce_clock::{Clock, Entropy, SystemClock, SystemEntropy};
use tokio::task::JoinSet;

use super::super::contender::{Doing, Outcome, Pool};
use super::super::plan::Want;
use super::lease::{Granted, RELEASE, TTL, delete_all, look_and_write, owner, set_all};
use super::pessimistic::SELL;
use super::{Bought, Stoppable, TAKEN, Textbook, sorted};

/// Most tries of one buyer: votes may split, so that no buyer has a majority.
const TRIES_MAX: u32 = 20;

/// A random time below 16 ms, so that buyers do not ask in step again.
async fn pause() {
    let mut draw = [0];
    SystemEntropy.fill(&mut draw);
    let span = Duration::from_millis(u64::from(draw[0] % 16));
    SystemClock.sleep_until(SystemClock.boot().plus(span)).await;
}

/// A hundredth of the ttl and two milliseconds, for clocks that run at different speeds.
fn drift(ttl: Duration) -> Duration {
    ttl / 100 + Duration::from_millis(2)
}

pub(in super::super) struct Redlock {
    nodes: Vec<MultiplexedConnection>,
}

impl Redlock {
    /// # Errors
    /// When a server cannot be reached.
    pub(in super::super) async fn connect(urls: &[String]) -> anyhow::Result<Self> {
        let mut nodes = Vec::new();
        for url in urls {
            let client = redis::Client::open(url.as_str())?;
            nodes.push(client.get_multiplexed_async_connection().await?);
        }
        Ok(Self { nodes })
    }

    /// The owner of a lease on a majority, if there is time left of it.
    async fn take(
        &self,
        (hall, seats): (i32, &[i32]),
        ttl: Duration,
    ) -> Result<Option<String>, Outcome> {
        let (owner, begun) = (owner(), SystemClock.boot());
        let mut asked = JoinSet::new();
        for node in &self.nodes {
            let (mut node, owner, seats) = (node.clone(), owner.clone(), seats.to_vec());
            asked.spawn(async move {
                let set = set_all(&mut node, (hall, &seats), (&owner, ttl)).await;
                set.unwrap_or(false)
            });
        }
        let votes = asked
            .join_all()
            .await
            .into_iter()
            .filter(|vote| *vote)
            .count();
        let took = SystemClock.boot().since(begun);
        if votes > self.nodes.len() / 2 && took + drift(ttl) < ttl {
            return Ok(Some(owner));
        }
        self.give_back((hall, seats), &owner).await?;
        Ok(None)
    }

    /// The same, asked for again while votes split.
    async fn take_in_time(&self, seats: (i32, &[i32])) -> Result<Option<String>, Outcome> {
        for _ in 1..TRIES_MAX {
            let taken = self.take(seats, TTL).await?;
            if taken.is_some() {
                return Ok(taken);
            }
            pause().await;
        }
        self.take(seats, TTL).await
    }

    async fn give_back(&self, seats: (i32, &[i32]), owner: &str) -> Result<(), Outcome> {
        for node in &self.nodes {
            delete_all(&mut node.clone(), seats, owner).await?;
        }
        Ok(())
    }
}

impl Textbook for Redlock {
    fn statements(&self) -> &'static [&'static str] {
        const SET: &str = "SET lab:hall:seat owner NX PX 10000 (on every server)";
        &[SET, SET, SET, SELL, RELEASE]
    }

    fn buy<'a>(&'a self, pool: &'a Pool, hall: i32, want: &'a Want) -> Bought<'a> {
        Box::pin(async move {
            let (buyer, seats) = sorted(want);
            let Some(owner) = self.take_in_time((hall, &seats)).await? else {
                return Ok(TAKEN);
            };
            let granted = Granted { fence: None };
            let written = look_and_write(pool, (hall, &seats), (buyer, &granted)).await;
            self.give_back((hall, &seats), &owner).await?;
            written
        })
    }
}

impl Stoppable for Redlock {
    fn acquire<'a>(
        &'a self,
        seats: (i32, &'a [i32]),
        ttl: Duration,
    ) -> Doing<'a, Result<Option<Granted>, Outcome>> {
        Box::pin(async move {
            let owner = self.take(seats, ttl).await?;
            Ok(owner.map(|_| Granted { fence: None }))
        })
    }
}
