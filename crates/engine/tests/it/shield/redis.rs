//! The shield on private servers that are stopped, killed, slow and full: no buyer is stopped by that,
//! and it comes back by itself.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, ManualClock, SystemClock};
use soldonce_core::{AreaNo, EventNo, Span, UnitNo};
use soldonce_engine::OptionalRedis;
use soldonce_engine::limits::{REDIS_FAILURES_MAX, REDIS_PAUSE_MS, SHIELD_CLAIM_MS};
use soldonce_engine::shield::{
    Contents, Kind, Note, Part, RedisShield, Shield, Thing, Tried, Who, Zone,
};
use soldonce_lease::Namespace;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{Data, FullCoverage, Redis, RedisCluster};

pub(super) const ANN: Who = Who(1);
pub(super) const BOB: Who = Who(u64::MAX);

/// How long a test waits for what takes milliseconds on an idle machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

fn redis_by(url: &str, clock: impl Clock) -> OptionalRedis {
    let namespace = Namespace::new("test").unwrap();
    OptionalRedis::at(url, &namespace, Arc::new(clock)).unwrap()
}

/// A shield that waits as long as a busy machine needs.
fn shield(url: &str) -> RedisShield {
    RedisShield::new(redis_by(url, SystemClock).wait(PATIENCE))
}

fn zone(no: u32) -> Zone {
    Zone {
        ledger: 7,
        event: EventNo(0),
        no,
    }
}

fn seats(no: u32, seats: &[u32]) -> Part {
    Part {
        zone: zone(no),
        contents: Contents::Seats(seats.iter().copied().map(UnitNo).collect()),
    }
}

fn areas(no: u32, areas: &[u32]) -> Part {
    Part {
        zone: zone(no),
        contents: Contents::Areas(areas.iter().copied().map(AreaNo).collect()),
    }
}

fn note(number: u32, kind: Kind, who: Who) -> Note {
    Note {
        number,
        version: 1,
        kind,
        left: Span::from_ms(60_000),
        who,
    }
}

/// What stands in the way.
fn things(tried: &Tried) -> Vec<(Thing, Kind)> {
    match tried {
        Tried::Refused(beliefs) => beliefs.iter().map(|it| (it.thing, it.kind)).collect(),
        other => panic!("{other:?}"),
    }
}

/// How many scripts the server ran.
fn scripts_run(redis: &Redis) -> u64 {
    let info = redis.cli(&["INFO", "commandstats"]).unwrap();
    let calls = info
        .lines()
        .filter(|line| line.starts_with("cmdstat_eval"))
        .filter_map(|line| line.split_once("calls=")?.1.split(',').next());
    calls.map(|count| count.parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn a_try_is_one_round_trip_for_each_zone() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let shield = shield(&proxy.url(&redis.url(), redis.address()));
    // The first one teaches the server the script.
    shield.try_units(ANN, &[seats(0, &[9])]).await;
    let count = async |parts: &[Part]| {
        let before = (scripts_run(&redis), proxy.requests());
        let tried = shield.try_units(ANN, parts).await;
        let after = (scripts_run(&redis), proxy.requests());
        (tried, after.0 - before.0, after.1 - before.1)
    };
    let one = count(&[seats(0, &[1, 2, 3])]).await;
    assert_eq!(one, (Tried::Passed, 1, 1));
    let three = count(&[seats(0, &[4]), seats(1, &[5]), areas(2, &[0])]).await;
    assert_eq!(three, (Tried::Passed, 3, 3));
    shield.note(zone(0), &[note(7, Kind::Sold, Who(0))]).await;
    let refused = count(&[seats(0, &[7, 8])]).await;
    assert_eq!((refused.1, refused.2), (1, 1));
    assert_eq!(things(&refused.0), [(Thing::Seat(UnitNo(7)), Kind::Sold)]);
}

#[tokio::test]
async fn a_claim_ends_after_two_seconds_on_the_clock_of_redis() {
    let redis = Redis::start().unwrap();
    let (one, other) = (shield(&redis.url()), shield(&redis.url()));
    let began = SystemClock.boot();
    assert_eq!(one.try_units(ANN, &[seats(0, &[1])]).await, Tried::Passed);
    let end = began.plus(PATIENCE);
    loop {
        let tried = other.try_units(BOB, &[seats(0, &[1])]).await;
        if tried == Tried::Passed {
            break;
        }
        assert_eq!(things(&tried), [(Thing::Seat(UnitNo(1)), Kind::Claimed)]);
        assert!(SystemClock.boot() < end, "a claim that does not end");
    }
    let took = SystemClock.boot().since(began);
    assert!(
        took >= Duration::from_millis(SHIELD_CLAIM_MS - 250),
        "{took:?}"
    );
}

#[tokio::test]
async fn a_conflict_in_one_zone_gives_the_claims_in_others_up_and_all_are_named() {
    let redis = Redis::start().unwrap();
    let shield = shield(&redis.url());
    shield.note(zone(1), &[note(5, Kind::Held, ANN)]).await;
    shield.note(zone(2), &[note(8, Kind::Sold, Who(0))]).await;
    shield.note(zone(4), &[note(0, Kind::Sold, Who(0))]).await;
    let wanted = [
        seats(0, &[1]),
        seats(1, &[5, 6]),
        seats(2, &[8]),
        seats(3, &[9]),
        areas(4, &[0, 1]),
    ];
    let refused = shield.try_units(BOB, &wanted).await;
    assert_eq!(
        things(&refused),
        [
            (Thing::Seat(UnitNo(5)), Kind::Held),
            (Thing::Seat(UnitNo(8)), Kind::Sold),
            (Thing::Area(AreaNo(0)), Kind::Sold),
        ]
    );
    let rest = [
        seats(0, &[1]),
        seats(1, &[6]),
        seats(3, &[9]),
        areas(4, &[1]),
    ];
    assert_eq!(shield.try_units(ANN, &rest).await, Tried::Passed);
    // Their own hold in a zone behind a conflict: the ledger names everything.
    let mixed = [seats(0, &[1]), seats(1, &[5])];
    shield.note(zone(0), &[note(1, Kind::Held, BOB)]).await;
    assert_eq!(shield.try_units(ANN, &mixed).await, Tried::Passed);
    shield.drop_claims(ANN, &rest[2]).await;
    let free = shield.try_units(BOB, &[seats(3, &[9])]).await;
    assert_eq!(free, Tried::Passed);
}

#[tokio::test]
async fn a_dead_redis_stops_no_client_and_is_asked_again_after_a_second() {
    let mut redis = Redis::start().unwrap();
    let clock = ManualClock::at(0);
    let shield = RedisShield::new(redis_by(&redis.url(), clock.clone()).wait(PATIENCE));
    let wanted = [seats(0, &[1])];
    assert_eq!(shield.try_units(ANN, &wanted).await, Tried::Passed);
    redis.kill().unwrap();
    for _ in 0..REDIS_FAILURES_MAX + 10 {
        assert_eq!(shield.try_units(ANN, &wanted).await, Tried::Missed);
    }
    assert!(!shield.note(zone(0), &[note(1, Kind::Held, ANN)]).await);
    redis.restart(Data::Lost).unwrap();
    assert_eq!(
        shield.try_units(ANN, &wanted).await,
        Tried::Missed,
        "not asked"
    );
    until_back(&shield, &clock).await;
    assert_eq!(
        shield.try_units(BOB, &wanted).await,
        Tried::Passed,
        "flushed"
    );
    // A claim ends after two seconds, however long the machine stood still meanwhile.
    assert!(shield.note(zone(0), &[note(1, Kind::Held, BOB)]).await);
    assert_eq!(things(&shield.try_units(ANN, &wanted).await).len(), 1);
}

/// Asks, over pauses, until there is an answer.
async fn until_back(shield: &RedisShield, clock: &ManualClock) {
    let end = SystemClock.boot().plus(PATIENCE);
    while shield.try_units(ANN, &[areas(9, &[0])]).await == Tried::Missed {
        assert!(SystemClock.boot() < end, "it did not come back");
        clock.advance(Duration::from_millis(REDIS_PAUSE_MS));
    }
}

#[tokio::test]
async fn a_stopped_or_silent_redis_is_waited_for_no_longer_than_it_says() {
    let mut redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let clock = ManualClock::at(0);
    let shield = RedisShield::new(redis_by(
        &proxy.url(&redis.url(), redis.address()),
        clock.clone(),
    ));
    let wanted = [seats(0, &[1])];
    let missed = async || {
        let began = SystemClock.boot();
        for _ in 0..1_000 {
            assert_eq!(shield.try_units(ANN, &wanted).await, Tried::Missed);
        }
        let took = SystemClock.boot().since(began);
        assert!(took < Duration::from_secs(10), "{took:?} for three waits");
    };
    until_back(&shield, &clock).await;
    redis.pause().unwrap();
    missed().await;
    redis.resume().unwrap();
    until_back(&shield, &clock).await;
    // Delayed for longer than the machine stands still: else an answer may come in time.
    for fault in [Fault::Cut, Fault::HalfOpen, Fault::Delay(PATIENCE)] {
        proxy.set(fault);
        missed().await;
        proxy.heal();
        until_back(&shield, &clock).await;
    }
}

#[tokio::test]
async fn a_redis_that_is_full_or_holds_something_else_stops_no_client() {
    let redis = Redis::options().maxmemory("1b").start().unwrap();
    let full = shield(&redis.url());
    let wanted = [seats(0, &[1])];
    assert_eq!(full.try_units(ANN, &wanted).await, Tried::Missed);
    assert!(!full.note(zone(0), &[note(1, Kind::Held, ANN)]).await);
    let redis = Redis::start().unwrap();
    let odd = shield(&redis.url());
    assert_eq!(odd.try_units(ANN, &wanted).await, Tried::Passed);
    let name = redis.cli(&["KEYS", "*"]).unwrap();
    redis.cli(&["DEL", name.trim()]).unwrap();
    redis.cli(&["LPUSH", name.trim(), "x"]).unwrap();
    assert_eq!(odd.try_units(ANN, &wanted).await, Tried::Missed);
}

#[tokio::test]
async fn claims_end_at_maxmemory_too() {
    let redis = Redis::start().unwrap();
    let shield = shield(&redis.url());
    let wanted = seats(0, &[1]);
    shield.try_units(ANN, std::slice::from_ref(&wanted)).await;
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert!(shield.drop_claims(ANN, &wanted).await);
    redis.cli(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert_eq!(shield.try_units(BOB, &[wanted]).await, Tried::Passed);
}

#[tokio::test]
async fn the_nodes_of_a_cluster_share_the_zones() {
    let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let url = cluster_url(&cluster);
    let servers = [shield(&url), shield(&url)];
    let mut shared = 0;
    for no in 0..40 {
        let wanted = [
            seats(no, &[1]),
            seats(no + 1_000, &[2]),
            areas(no + 2_000, &[0]),
        ];
        let claimed = SystemClock.boot();
        assert_eq!(servers[0].try_units(ANN, &wanted).await, Tried::Passed);
        let refused = servers[1].try_units(BOB, &wanted).await;
        if SystemClock.boot().since(claimed) >= Duration::from_millis(SHIELD_CLAIM_MS) {
            // The machine stood still, and these claims may have ended. Other zones have more.
            continue;
        }
        assert_eq!(things(&refused).len(), 2, "{no}");
        assert!(servers[1].note(zone(no), &[note(1, Kind::Held, BOB)]).await);
        assert!(servers[0].drop_claims(ANN, &wanted[1]).await);
        let after = servers[0].try_units(ANN, &wanted).await;
        assert_eq!(things(&after), [(Thing::Seat(UnitNo(1)), Kind::Held)]);
        shared += 1;
    }
    assert!(shared > 20, "{shared}");
    let used = cluster.nodes().iter().take(3);
    let keys = used.map(|node| node.cli(&["DBSIZE"]).unwrap().parse::<u32>().unwrap());
    assert!(keys.into_iter().all(|keys| keys > 5), "zones are spread");
}

/// The address of all nodes.
pub(super) fn cluster_url(cluster: &RedisCluster) -> String {
    let nodes = cluster.nodes().iter();
    let nodes: Vec<_> = nodes.map(|node| node.address().to_string()).collect();
    format!("redis+cluster://{}", nodes.join(","))
}
