//! 11.11: servers that stand still, connections that fall silent, clocks that step. The holder
//! learns of the loss at its own deadline, for anything the server does.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::{Clock, Lease, Leases, LostReason, ManualClock, RenewError, SystemClock};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use tokio::task::JoinSet;

use super::site::{Kind, Servers, Site};
use super::{PATIENCE, ms, rest, within};

/// Where the holder's clock is moved by hand.
const LONG: Duration = Duration::from_mins(1);

async fn take(locks: &Leases, ttl: Duration) -> Lease {
    let asked = locks.lease("a").ttl(ttl).try_acquire();
    asked.await.unwrap().unwrap()
}

/// Moves the holder's clock by hand until the lease is renewed.
async fn is_renewed(locks: &Leases, lease: &Lease, clock: &ManualClock) {
    let renewed = locks.stats().renewed;
    clock.advance(LONG / 3);
    within(PATIENCE, "it is renewed", || {
        // A try that failed is repeated after a pause.
        clock.advance(ms(20));
        locks.stats().renewed > renewed || !lease.state().is_live()
    })
    .await;
}

/// Awaits the future while the holder's clock goes on.
async fn passing<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        tokio::select! {
            biased;
            output = &mut future => return output,
            () = rest(ms(10)) => clock.advance(ms(50)),
        }
    }
}

/// The next one to ask gets the lease, long before its ttl would end. A release ends with the
/// answers of a majority: one node of a quorum may keep its vote until then, which refuses no other.
async fn goes_to_the_next(site: &Site) {
    let next = site.builder(&[]).call_timeout(PATIENCE);
    let next = next.connect().await.unwrap();
    let asked = next.lease("a").ttl(LONG).acquire_within(PATIENCE);
    let taken = asked.await.unwrap();
    assert!(taken.is_some(), "{:?}: {:?}", site.kind, site.left());
    next.shutdown(PATIENCE).await;
}

/// Runs the same on all of these at once: most of it is waiting.
async fn on<F>(kinds: impl IntoIterator<Item = Kind>, test: impl Fn(Kind) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    for kind in kinds {
        running.spawn(test(kind));
    }
    running.join_all().await;
}

/// The holder's clock is moved by hand, so the loss is told at its very millisecond.
async fn hang(kind: Kind) {
    let mut site = Site::start(kind).await;
    let clock = ManualClock::at(1_000_000);
    let builder = site.builder(&[]).clock(Arc::new(clock.clone()));
    let locks = builder.connect().await.unwrap();
    let lease = take(&locks, LONG).await;
    is_renewed(&locks, &lease, &clock).await;
    let servers = &mut site.servers;
    (0..servers.count()).for_each(|place| servers.pause(place));
    clock.advance(lease.remaining().saturating_sub(ms(1)));
    assert!(lease.token().is_ok(), "{kind:?}: told before its deadline");
    let early = tokio::time::timeout(ms(100), lease.lost()).await;
    assert!(early.is_err(), "{kind:?}: told before its deadline");
    clock.advance(ms(1));
    let told = tokio::time::timeout(PATIENCE, lease.lost()).await;
    assert_eq!(told, Ok(LostReason::Deadline), "{kind:?}");
    assert!(lease.token().is_err());
    let servers = &mut site.servers;
    (0..servers.count()).for_each(|place| servers.resume(place));
    // What the server still keeps is released.
    passing(&clock, goes_to_the_next(&site)).await;
    // Those that were given up meanwhile end too.
    passing(&clock, locks.shutdown(PATIENCE)).await;
    let closed = within(PATIENCE, "no connection is left", || {
        site.connections() == 0
    });
    passing(&clock, closed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_loss_is_told_at_the_deadline_while_the_server_stands_still() {
    on([Kind::Redis, Kind::Redlock, Kind::Postgres], hang).await;
}

/// The connections fall silent for good, and the server is well: a lease outlives that.
async fn fall_silent(kind: Kind) {
    let site = Site::start(kind).await;
    let (proxies, clock) = (site.proxies(), ManualClock::at(1_000_000));
    let builder = site.builder(&proxies).clock(Arc::new(clock.clone()));
    let locks = builder.connect().await.unwrap();
    let lease = take(&locks, LONG).await;
    for _ in 0..2 {
        is_renewed(&locks, &lease, &clock).await;
        assert!(lease.token().is_ok(), "{kind:?}: {:?}", lease.state());
        proxies.iter().for_each(silence);
    }
    passing(&clock, lease.release()).await.ok();
    passing(&clock, goes_to_the_next(&site)).await;
    passing(&clock, locks.shutdown(PATIENCE)).await;
}

fn silence(proxy: &FaultProxy) {
    for connection in 1..=proxy.connections() {
        proxy.set_for(connection, Fault::HalfOpen);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_lease_outlives_silent_connections() {
    on([Kind::Redis, Kind::Redlock, Kind::Postgres], fall_silent).await;
}

/// The server's clock jumps over the end of the lease: to the server it is over.
fn step_forward(site: &Site) {
    if let Servers::Postgres(server) = &site.servers {
        let over = "UPDATE soldonce_lease SET expires_at = clock_timestamp()";
        server.query(over).unwrap();
    }
    set_lives(site, "1");
    assert!(soldonce_testkit::until("it is over", PATIENCE, || site.left().is_empty()).is_ok());
}

/// The server's clock jumps back: to the server it lives an hour longer.
fn step_back(site: &Site) {
    if let Servers::Postgres(server) = &site.servers {
        let longer = "UPDATE soldonce_lease SET expires_at = expires_at + interval '1 hour'";
        server.query(longer).unwrap();
    }
    set_lives(site, "3600000");
}

fn set_lives(site: &Site, ms: &str) {
    for server in site.servers.redis() {
        for key in site.left() {
            server.cli(&["PEXPIRE", &key, ms]).unwrap();
        }
    }
}

async fn step_the_servers_clock(kind: Kind) {
    let (site, clock) = (Site::start(kind).await, ManualClock::at(1_000_000));
    let patient = || site.builder(&[]).call_timeout(PATIENCE);
    let first = patient().connect().await.unwrap();
    let second = patient().clock(Arc::new(clock.clone()));
    let second = second.connect().await.unwrap();
    let by_hand = |locks: &Leases| locks.lease("a").ttl(LONG).manual_renewal();
    let early = by_hand(&first).try_acquire().await.unwrap().unwrap();
    step_forward(&site);
    let other = by_hand(&second).try_acquire().await.unwrap().unwrap();
    let token = early.token().expect("its own clock did not step");
    assert!(other.token().unwrap() > token, "a gate tells them apart");
    let lost = early.renew().await;
    assert!(matches!(lost, Err(RenewError::Lost(_))), "{lost:?}");
    assert!(other.verify().await.is_ok());
    step_back(&site);
    // The server would keep it for an hour. Its holder does not, and gives it back.
    clock.advance(LONG);
    assert_eq!(other.lost().await, LostReason::Deadline);
    let released = within(PATIENCE, "the lost lease is released", || {
        site.left().is_empty()
    });
    passing(&clock, released).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_step_of_the_servers_clock_moves_no_deadline() {
    on([Kind::Redis, Kind::Postgres], step_the_servers_clock).await;
}

/// An hour wrong, and stepping by an hour each way: the lease is kept, and excludes.
async fn skew_the_client(kind: Kind, wrong_by: i64) {
    let site = Site::start(kind).await;
    let other = site.builder(&[]).call_timeout(PATIENCE);
    let other = other.connect().await.unwrap();
    let clock = ManualClock::at(SystemClock.wall_ms() + wrong_by);
    let skewed = site.builder(&[]).clock(Arc::new(clock.clone()));
    let locks = skewed.connect().await.unwrap();
    let lease = take(&locks, LONG).await;
    for step in [0, wrong_by, -wrong_by] {
        clock.step_wall(SystemClock.wall_ms() + step);
        // The first may be that which a step alone asks for.
        for _ in 0..2 {
            is_renewed(&locks, &lease, &clock).await;
        }
        assert!(
            lease.token().is_ok(),
            "{kind:?} {step}: {:?}",
            lease.state()
        );
        assert!(other.lease("a").try_acquire().await.unwrap().is_none());
    }
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_clients_wall_clock_an_hour_off_changes_nothing() {
    const HOUR_MS: i64 = 3_600_000;
    let mut running = JoinSet::new();
    for kind in [Kind::Redis, Kind::Postgres] {
        for wrong_by in [-HOUR_MS, HOUR_MS] {
            running.spawn(skew_the_client(kind, wrong_by));
        }
    }
    running.join_all().await;
}
