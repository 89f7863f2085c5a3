//! Strategy `redlock`: the lease of `lease` on a majority of independent servers (redis.io, "Distributed
//! Locks with Redis"). It gives no number that rises, so that there is nothing to fence a write with.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use soldonce_clock::{Clock, Entropy, SystemClock, SystemEntropy};
use tokio::task::JoinSet;

use super::super::outcome::Outcome;
use super::super::pool::Pool;
use super::lease::{Lease, RELEASE, TTL, delete, look_and_write, set};
use super::naive::SELL;
use super::{Purchase, TAKEN};
use crate::kit::random_name;

/// Most tries of one buyer: votes may split, so that no buyer has a majority.
const TRIES_MAX: u32 = 20;

const SET: &str = "SET lab:hall:seat owner NX PX 10000 (on every server)";

pub(super) const STATEMENTS: &[&str] = &[SET, SET, SET, SELL, RELEASE];

pub(super) async fn buy(
    pool: &Pool,
    nodes: &[MultiplexedConnection],
    purchase: &Purchase,
) -> Result<Outcome, Outcome> {
    let mut lease = acquire(nodes, purchase, TTL).await?;
    for _ in 1..TRIES_MAX {
        if lease.is_some() {
            break;
        }
        pause().await;
        lease = acquire(nodes, purchase, TTL).await?;
    }
    let Some(lease) = lease else {
        return Ok(TAKEN);
    };
    let written = look_and_write(pool, purchase, &lease).await;
    release(nodes, purchase, &lease.owner).await;
    written
}

/// Takes a lease on a majority, if there is time left of it.
pub(super) async fn acquire(
    nodes: &[MultiplexedConnection],
    purchase: &Purchase,
    ttl: Duration,
) -> Result<Option<Lease>, Outcome> {
    let (owner, begun) = (random_name(), SystemClock.boot());
    let mut votes = JoinSet::new();
    for node in nodes {
        let (node, owner, purchase) = (node.clone(), owner.clone(), purchase.clone());
        votes.spawn(async move { set(&node, &purchase, (&owner, ttl)).await.unwrap_or(false) });
    }
    let votes = votes.join_all().await;
    let votes = votes.into_iter().filter(|vote| *vote).count();
    let took = SystemClock.boot().since(begun);
    // The clocks may drift by a hundredth of the ttl and two milliseconds.
    let drift = ttl / 100 + Duration::from_millis(2);
    if votes > nodes.len() / 2 && took + drift < ttl {
        return Ok(Some(Lease { owner, fence: None }));
    }
    release(nodes, purchase, &owner).await;
    Ok(None)
}

/// Releases the lease on every node. One that does not answer keeps it until its ttl ends.
async fn release(nodes: &[MultiplexedConnection], purchase: &Purchase, owner: &str) {
    for node in nodes {
        let deleted = delete(node, purchase, (owner, purchase.seats.len())).await;
        deleted.ok();
    }
}

/// Waits a random time below 16 ms, so that buyers do not retry in step.
async fn pause() {
    let mut draw = [0];
    SystemEntropy.fill(&mut draw);
    let span = Duration::from_millis(u64::from(draw[0] % 16));
    SystemClock.sleep_until(SystemClock.boot().plus(span)).await;
}
