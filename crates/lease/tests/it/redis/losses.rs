//! The backend loses what it granted while holders go on: what `lease.md` 11.2 and 11.3 promise to
//! users of `Leases` whose target has a gate. The loss is seen as double grants, and no stale write
//! passes.

use std::collections::BTreeMap;
use std::time::Duration;

use soldonce_lease::gate::{Admit, Embedded};
use soldonce_lease::{FencingToken, FileFence, Lease, Leases, LostReason, RenewError};
use soldonce_testkit::redis::{Data, Redis, RedisPair};
use soldonce_testkit::{PATIENCE, TempFolder};

use super::site::until;
use crate::table::Table;

const GRANTS: u32 = 50;

struct Target {
    gate: Embedded<Table>,
    table: BTreeMap<String, FencingToken>,
}

impl Target {
    fn new() -> Self {
        Self {
            gate: Embedded::new(Table),
            table: BTreeMap::new(),
        }
    }

    fn write(&mut self, name: &str, token: FencingToken) -> Admit {
        let Ok(admit) = self.gate.admit(&mut self.table, name, token);
        admit
    }
}

async fn locks(redis: &Redis, epochs: &TempFolder) -> Leases {
    let builder = Leases::redis(redis.url()).namespace("app");
    let epochs = FileFence::new(epochs.path());
    let builder = builder.call_timeout(PATIENCE);
    builder.fence(epochs).connect().await.unwrap()
}

async fn take(locks: &Leases, name: &str) -> Lease {
    let ttl = Duration::from_mins(1);
    locks
        .lease(name)
        .ttl(ttl)
        .try_acquire()
        .await
        .unwrap()
        .unwrap()
}

/// 11.2. Both holders of each name believe in it; only the later one can write.
#[tokio::test]
async fn grants_lost_in_a_failover_are_held_twice_and_no_stale_write_passes() {
    let (pair, epochs) = (RedisPair::start().unwrap(), TempFolder::new().unwrap());
    let old = locks(&pair.primary, &epochs).await;
    drop(take(&old, "warm").await);
    pair.await_sync().unwrap();
    pair.cut().unwrap();
    let mut held = Vec::new();
    for i in 0..GRANTS {
        let name = format!("n:{i}");
        held.push((take(&old, &name).await, name));
    }
    pair.promote().unwrap();
    let new = locks(&pair.replica, &epochs).await;
    let (mut target, mut twice, mut stale) = (Target::new(), 0, 0);
    for (lease, name) in &held {
        let before = lease.token().unwrap();
        assert_eq!(target.write(name, before), Admit::Ok);
        let again = take(&new, name).await;
        let current = again.token().unwrap();
        assert!(current > before, "{name}: {current:?} after {before:?}");
        twice += u32::from(lease.token() == Ok(before));
        assert_eq!(target.write(name, current), Admit::Ok);
        let Ok(late) = lease.token() else {
            continue;
        };
        stale += u32::from(target.write(name, late) == Admit::Stale { current });
    }
    assert_eq!((twice, stale), (GRANTS, GRANTS));
}

/// 11.3. The holder learns it from its next renewal, and the next grant is above.
#[tokio::test]
async fn a_flush_ends_leases_and_tokens_still_rise() {
    let (redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let locks = locks(&redis, &epochs).await;
    let lease = take(&locks, "a").await;
    let before = lease.token().unwrap();
    redis.cli(&["FLUSHALL"]).unwrap();
    let gone = RenewError::Lost(LostReason::Gone);
    assert_eq!(lease.renew().await, Err(gone));
    assert!(lease.token().is_err());
    let after = take(&locks, "a").await.token().unwrap();
    assert!(after > before, "{after:?} after {before:?}");
}

/// No further try takes data of another out of the way.
#[tokio::test]
async fn a_wait_ends_with_what_is_refused_for_good() {
    let (redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let locks = locks(&redis, &epochs).await;
    let lease = take(&locks, "a").await;
    let key = redis.cli(&["KEYS", "sl:*:l:a"]).unwrap();
    lease.release().await.unwrap();
    redis.cli(&["SET", key.trim(), "data of another"]).unwrap();
    let asking = locks.lease("a").acquire();
    let ended = tokio::time::timeout(PATIENCE, asking).await;
    let error = ended.expect("it waits for ever").unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

/// 11.3. A group that lost one key is lost, and its other names are free again.
#[tokio::test]
async fn an_evicted_key_of_a_group_ends_the_group() {
    let (redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let locks = locks(&redis, &epochs).await;
    let lease = locks
        .group("hall", ["A-1", "A-2"])
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let keys = redis.cli(&["KEYS", "sl:*:l:hall/A-1"]).unwrap();
    redis.cli(&["DEL", keys.trim()]).unwrap();
    let gone = RenewError::Lost(LostReason::Gone);
    assert_eq!(lease.renew().await, Err(gone));
    let other = locks.group("hall", ["A-2"]);
    let freed = async || other.inspect().await.unwrap().is_none().then_some(());
    until("the rest of the group is released", freed).await;
}

/// 11.3. Redis comes back with nothing, and its epoch source with an old backup: one write is
/// refused, and who was refused comes back above what it was refused for.
#[tokio::test]
async fn an_epoch_source_that_went_back_costs_one_refused_write() {
    let (mut redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let mut target = Target::new();
    let before = locks(&redis, &epochs).await;
    for _ in 0..3 {
        let lease = take(&before, "a").await;
        let token = lease.token().unwrap();
        assert_eq!(target.write("a", token), Admit::Ok);
        lease.release().await.unwrap();
    }
    redis.restart(Data::Lost).unwrap();
    let older = TempFolder::new().unwrap();
    let after = locks(&redis, &older).await;
    let lease = take(&after, "a").await;
    let low = lease.token().unwrap();
    let Admit::Stale { current } = target.write("a", low) else {
        panic!("the token did not fall: {low:?}");
    };
    lease.report_overtaken(current);
    assert!(lease.token().is_err());
    drop(lease);
    let healed = until("the name is free again", async || {
        let ask = after.lease("a").ttl(Duration::from_mins(1));
        ask.try_acquire().await.ok()?
    });
    let token = healed.await.token().unwrap();
    assert_eq!(
        target.write("a", token),
        Admit::Ok,
        "{token:?} after {current:?}"
    );
}
