//! `Leases` on Redis and on a cluster: the backends where the builder plugs them in.

use soldonce_lease::{BackendError, Builder, Doctor, Leases, ReleaseOutcome};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::Redis;

use super::site::until;

fn builder(redis: &Redis) -> Builder {
    let builder = Leases::redis(redis.url()).namespace("app");
    builder.call_timeout(PATIENCE)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_on_redis_from_end_to_end() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).connect().await.unwrap();
    let other = builder(&redis).connect().await.unwrap();
    let lease = locks
        .lease("report:2026")
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    lease.token().unwrap();
    let refused = other.lease("report:2026").try_acquire().await;
    assert!(matches!(refused, Ok(None)), "{refused:?}");
    let waiting = other.lease("report:2026");
    let waiting = waiting.acquire_within(PATIENCE);
    let release = async {
        assert_eq!(lease.release().await, Ok(ReleaseOutcome::Released));
    };
    let (next, ()) = tokio::join!(waiting, release);
    assert!(matches!(next, Ok(Some(_))), "{next:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_connections_are_counted() {
    let redis = Redis::start().unwrap();
    let locks = builder(&redis).doctor(Doctor::Off);
    let locks = locks.connect().await.unwrap();
    let lease = locks.lease("a").try_acquire().await.unwrap().unwrap();
    assert_eq!(locks.stats().link_rebuilds, 0);
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    let again = until("a new connection", async || {
        // The first one may meet the end of the connection.
        locks.lease("b").try_acquire().await.ok()?
    })
    .await;
    assert_eq!(locks.stats().link_rebuilds, 1);
    drop((lease, again));
}

#[cfg(feature = "cluster")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_on_a_cluster_from_end_to_end() {
    use soldonce_testkit::redis::{FullCoverage, RedisCluster};

    let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let locks = Leases::cluster(cluster.urls())
        .namespace("app")
        .call_timeout(PATIENCE)
        .connect()
        .await
        .unwrap();
    let whole = locks
        .group("hall", ["A-1", "A-2"])
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let part = locks.group("hall", ["A-2"]).try_acquire().await;
    assert!(matches!(part, Ok(None)), "{part:?}");
    assert_eq!(whole.release().await, Ok(ReleaseOutcome::Released));
}

#[tokio::test]
async fn an_address_that_cannot_work_is_told_at_connect() {
    let urls: &[&str] = if cfg!(feature = "tls") {
        &["nonsense"]
    } else {
        &["nonsense", "rediss://127.0.0.1:1"]
    };
    for &url in urls {
        let error = Leases::redis(url)
            .namespace("app")
            .connect()
            .await
            .unwrap_err();
        assert!(matches!(error, BackendError::Config(_)), "{url}: {error:?}");
    }
    let nobody = Leases::redis("redis://127.0.0.1:1")
        .namespace("app")
        .connect()
        .await;
    assert!(
        matches!(nobody, Err(BackendError::NotSent(_))),
        "{nobody:?}"
    );
}
