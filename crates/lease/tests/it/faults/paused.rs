//! 11.4: a holder in a process of its own is stopped between its last look at the lease and its
//! write, for longer than the lease lives; another takes the lease and writes; then the first goes
//! on. A gate refuses its write, in SQL and embedded. Without one the same story loses an update.

use std::collections::BTreeMap;
use std::time::Duration;

use soldonce_lease::gate::{Admit, Embedded};
use soldonce_lease::{FencingToken, FileFence, Lease, LeaseState, Leases, PgConfig};
use soldonce_testkit::player::{Part, Player};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{TempFolder, runtime};

use super::counter::{self, Counter, Gate};
use crate::table::Table;

/// For the holder that is stopped. Long enough that a stall of the machine is no end of it.
const TTL: Duration = Duration::from_secs(10);
/// For the one after it.
const LONG: Duration = Duration::from_mins(1);

const NAME: &str = "counter";

/// Leases that two processes can have.
fn locks(backend: &str, url: &str, epochs: &str) -> soldonce_lease::Builder {
    let builder = match backend {
        "redis" => Leases::redis(url).fence(FileFence::new(epochs)),
        _ => Leases::postgres(PgConfig::url(url).unwrap()),
    };
    builder.namespace("app").call_timeout(super::PATIENCE)
}

async fn take(locks: &Leases, ttl: Duration) -> Lease {
    let request = locks.lease(NAME).ttl(ttl);
    let taken = request.acquire_within(super::PATIENCE).await;
    taken.unwrap().unwrap()
}

/// The holder that is stopped: reads, looks at its lease, and writes when it is told to.
async fn hold(part: &mut Part, target: Option<Counter>) {
    let words = part.words();
    let locks = locks(words[0], words[1], words[2]).connect().await.unwrap();
    let lease = take(&locks, TTL).await;
    let token = lease.token().unwrap();
    let read = match &target {
        Some(counter) => counter.read(NAME, token).await.unwrap(),
        None => 0,
    };
    assert!(lease.token().is_ok(), "it is live, the last time it looks");
    part.say(&serde_json::to_string(&token).unwrap());
    assert_eq!(part.hear().unwrap(), "write");
    // Here it stood still. It does not look again.
    if let Some(counter) = target {
        let written = counter.write(NAME, token, read + 1).await;
        part.say(&written.to_string());
    }
    let lost = matches!(lease.state(), LeaseState::Lost(_));
    part.say(if lost { "lost" } else { "held" });
}

struct Story {
    target: Postgres,
    redis: Redis,
    epochs: TempFolder,
}

impl Story {
    async fn start() -> Self {
        let target = crate::postgres::server().await;
        counter::make(&target, &[NAME]);
        Self {
            target,
            redis: Redis::start().unwrap(),
            epochs: TempFolder::new().unwrap(),
        }
    }

    fn words<'a>(&'a self, backend: &'a str, url: &'a str, gate: &'a str) -> [&'a str; 4] {
        [backend, url, self.epochs.path().to_str().unwrap(), gate]
    }
}

/// Plays the holder if this process is to; whether it was.
fn played(runtime: &tokio::runtime::Runtime) -> bool {
    let Some(mut part) = Part::of_this_process() else {
        return false;
    };
    let words: Vec<String> = part.words().into_iter().map(str::to_owned).collect();
    runtime.block_on(async {
        let gate = if words[3] == "off" {
            Gate::Off
        } else {
            Gate::On
        };
        let target = match words.get(4) {
            Some(url) => Some(Counter::connect(url, gate).await),
            None => None,
        };
        hold(&mut part, target).await;
    });
    true
}

/// The story over SQL: whether the stale write got in, and the value in the end, to which two have
/// added one each.
async fn over_sql(backend: &str, gate: Gate) -> (bool, i64) {
    let story = Story::start().await;
    let url = match backend {
        "redis" => story.redis.url(),
        _ => story.target.url(),
    };
    let word = if gate == Gate::Off { "off" } else { "on" };
    let target = story.target.url();
    let mut words = story.words(backend, &url, word).to_vec();
    words.push(&target);
    let mut holder = Player::start(&words).unwrap();
    holder.hear().unwrap();
    holder.pause().unwrap();
    let next = locks(backend, &url, words[2]).connect().await.unwrap();
    let lease = take(&next, LONG).await;
    let counter = Counter::connect(&target, gate).await;
    let token = lease.token().unwrap();
    let read = counter.read(NAME, token).await.unwrap();
    assert!(counter.write(NAME, token, read + 1).await);
    holder.tell("write").unwrap();
    holder.resume().unwrap();
    let stale = holder.hear().unwrap() == "true";
    assert_eq!(holder.hear().unwrap(), "lost", "it learns it when it looks");
    assert!(holder.ended().unwrap().success());
    (stale, counter::value(&story.target, NAME))
}

#[test]
fn a_holder_that_stood_still_is_refused_at_the_target() {
    let runtime = runtime().unwrap();
    if played(&runtime) {
        return;
    }
    for backend in ["redis", "postgres"] {
        let ended = runtime.block_on(over_sql(backend, Gate::On));
        assert_eq!(ended, (false, 1), "{backend}");
    }
}

#[test]
fn a_holder_that_stood_still_loses_an_update_where_there_is_no_gate() {
    let runtime = runtime().unwrap();
    if played(&runtime) {
        return;
    }
    let ended = runtime.block_on(over_sql("redis", Gate::Off));
    assert_eq!(ended, (true, 1), "two were told that they had added one");
}

/// This process is the target here; the holder's write comes with the token it had.
#[test]
fn a_holder_that_stood_still_is_refused_by_an_embedded_gate() {
    let runtime = runtime().unwrap();
    if played(&runtime) {
        return;
    }
    runtime.block_on(async {
        let (redis, epochs) = (Redis::start().unwrap(), TempFolder::new().unwrap());
        let (url, folder) = (redis.url(), epochs.path().to_str().unwrap());
        let (gate, mut tx) = (Embedded::new(Table), BTreeMap::new());
        let mut holder = Player::start(&["redis", &url, folder, "embedded"]).unwrap();
        let before: FencingToken = serde_json::from_str(&holder.hear().unwrap()).unwrap();
        assert_eq!(gate.admit(&mut tx, NAME, before), Ok(Admit::Ok));
        holder.pause().unwrap();
        let next = locks("redis", &url, folder).connect().await.unwrap();
        let lease = take(&next, LONG).await;
        let current = lease.token().unwrap();
        assert_eq!(gate.admit(&mut tx, NAME, current), Ok(Admit::Ok));
        holder.tell("write").unwrap();
        holder.resume().unwrap();
        assert_eq!(holder.hear().unwrap(), "lost");
        assert_eq!(
            gate.admit(&mut tx, NAME, before),
            Ok(Admit::Stale { current })
        );
    });
}
