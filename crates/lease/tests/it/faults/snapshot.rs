//! 11.3: Redis comes back with the data of an hour ago. What was granted since is forgotten, what
//! was given back since is held again; tokens rise all the same. Where the epochs come from an old
//! backup too, one write is refused.

use std::fs;
use std::path::Path;
use std::time::Duration;

use soldonce_lease::{
    Builder, FencingToken, FileFence, Lease, LeaseState, Leases, LostReason, Name, RenewError,
};
use soldonce_testkit::TempFolder;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{Redis, Snapshot};

use super::counter::{self, Counter, Gate};
use super::{PATIENCE, ms, rest};

const NAMES: [&str; 3] = ["early", "late", "turns"];

fn builder(redis: &Redis) -> Builder {
    let builder = Leases::redis(redis.url()).namespace("app");
    builder.call_timeout(PATIENCE)
}

async fn connect(redis: &Redis, epochs: &Path) -> Leases {
    let builder = builder(redis).fence(FileFence::new(epochs));
    builder.connect().await.unwrap()
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

/// Takes and gives back; the token.
async fn turn(locks: &Leases) -> FencingToken {
    let lease = take(locks, "turns").await;
    let token = lease.token().unwrap();
    lease.release().await.unwrap();
    token
}

/// Asks until the server answers again.
async fn renewed(lease: &Lease) -> Result<Duration, RenewError> {
    for _ in 0..200 {
        match lease.renew().await {
            Err(RenewError::Unknown | RenewError::Unavailable(_)) => rest(ms(10)).await,
            answer => return answer,
        }
    }
    panic!("no answer");
}

#[tokio::test]
async fn tokens_rise_when_redis_comes_back_with_old_data() {
    let (mut redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let locks = connect(&redis, epochs.path()).await;
    let early = take(&locks, "early").await;
    let ghost = take(&locks, "turns").await;
    let old = redis.snapshot().unwrap();
    ghost.release().await.unwrap();
    let late = take(&locks, "late").await;
    let mut highest = late.token().unwrap();
    for _ in 0..5 {
        highest = highest.max(turn(&locks).await);
    }
    redis.restore(&old).unwrap();
    // The same owner and the same token are there: nothing is lost.
    assert!(renewed(&early).await.is_ok());
    assert_eq!(
        renewed(&late).await,
        Err(RenewError::Lost(LostReason::Gone))
    );
    assert!(take(&locks, "late").await.token().unwrap() > highest);
    // A ghost holds what was given back, until its ttl ends or it is broken.
    let turns = locks.lease("turns");
    let ghost = turns.inspect().await.unwrap().unwrap();
    assert!(ghost.remaining <= Duration::from_mins(1));
    let broken = turns.force_release(ghost.token, "restored").await;
    broken.unwrap();
    assert!(turn(&locks).await > highest);
    assert!(matches!(early.state(), LeaseState::Held { .. }));
}

/// Without a source they go on from the server's clock (0274).
#[tokio::test]
async fn without_a_source_tokens_follow_the_clock_after_old_data() {
    let mut redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    turn(&locks).await;
    let old = redis.snapshot().unwrap();
    let before = turn(&locks).await;
    redis.restore(&old).unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    let after = turn(&locks).await;
    assert!(after.number() > before.number(), "{before} and {after}");
}

/// The files of a folder, put aside and put back.
struct Aside(Vec<(std::path::PathBuf, Vec<u8>)>);

impl Aside {
    fn of(folder: &Path) -> Self {
        let files = folder.read_dir().unwrap().map(|file| file.unwrap().path());
        Self(
            files
                .map(|path| (path.clone(), fs::read(path).unwrap()))
                .collect(),
        )
    }

    fn put_back(&self) {
        for (path, bytes) in &self.0 {
            fs::write(path, bytes).unwrap();
        }
    }
}

struct Backup {
    redis: Snapshot,
    epochs: Aside,
}

/// Everything that tokens come from goes back: one write is refused, and no operator has to act.
/// Its floor lifts the whole shard, so the other names need none.
#[tokio::test]
async fn an_old_backup_of_redis_and_of_its_epochs_costs_one_refused_write() {
    let (mut redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
    let target = Postgres::start().unwrap();
    counter::make(&target, &NAMES);
    let counter = Counter::connect(&target.url(), Gate::On).await;
    let before = connect(&redis, epochs.path()).await;
    turn(&before).await;
    let backup = Backup {
        redis: redis.snapshot().unwrap(),
        epochs: Aside::of(epochs.path()),
    };
    // Losses since then have used up epochs, and each of their tokens wrote.
    for epoch in 0..3 {
        redis.cli(&["FLUSHALL"]).unwrap();
        for name in NAMES {
            let lease = take(&before, name).await;
            let token = lease.token().unwrap();
            assert!(counter.write(name, token, epoch).await);
            lease.release().await.unwrap();
        }
    }
    drop(before);
    redis.restore(&backup.redis).unwrap();
    backup.epochs.put_back();
    let after = connect(&redis, epochs.path()).await;
    for (name, refused) in NAMES.into_iter().zip([1, 0, 0]) {
        assert_eq!(refusals(&after, &counter, name).await, refused, "{name}");
    }
    after.shutdown(PATIENCE).await;
}

/// Writes as its users do: who is refused tells the lease by whom, and begins again. How often.
async fn refusals(locks: &Leases, counter: &Counter, name: &str) -> usize {
    for refused in 0..5 {
        let lease = take(locks, name).await;
        let token = lease.token().unwrap();
        if counter.write(name, token, 100).await {
            lease.release().await.unwrap();
            return refused;
        }
        lease.report_overtaken(counter.highest(name).await);
        assert!(lease.token().is_err());
        super::within(PATIENCE, "the lost lease is released", || {
            locks.stats().live == 0
        })
        .await;
        settled(locks, name).await;
    }
    panic!("{name} does not heal");
}

/// Waits until the name is free.
async fn settled(locks: &Leases, name: &str) {
    let name = Name::new(name).unwrap();
    for _ in 0..500 {
        if locks.lease(name.clone()).inspect().await.unwrap().is_none() {
            return;
        }
        rest(ms(10)).await;
    }
    panic!("{name} is still held");
}
