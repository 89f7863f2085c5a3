//! 11.7: leases and locks dropped where no task can wait for them: outside of every runtime, inside a
//! foreign one and with it, while a panic unwinds, at the end of a thread and of a process.
//! Afterwards a shutdown drains.

use std::cell::RefCell;
use std::time::Duration;

use soldonce_lease::{Lease, Leases, block_on};
use soldonce_testkit::player::{Part, Player};
use soldonce_testkit::redis::Redis;
use soldonce_testkit::runtime;

use super::site::{Kind, Site};
use super::{PATIENCE, within};

const TTL: Duration = Duration::from_mins(1);

fn take(locks: &Leases, name: &str) -> Lease {
    let taken = block_on(locks.lease(name).ttl(TTL).try_acquire());
    taken.unwrap().unwrap()
}

thread_local! {
    static KEPT: RefCell<Option<Lease>> = const { RefCell::new(None) };
}

/// Drops a lease in each of the places; how many there are.
fn drop_everywhere(locks: &Leases) -> u64 {
    let outside = take(locks, "outside");
    std::thread::spawn(move || drop(outside)).join().unwrap();

    let foreign = runtime().unwrap();
    let inside = foreign.block_on(locks.lease("inside").acquire()).unwrap();
    foreign.block_on(async move { drop(inside) });

    // A task that never ends goes away with its runtime.
    let held = take(locks, "in-a-task");
    let mut tasks = tokio::task::JoinSet::new();
    foreign.block_on(async {
        tasks.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
    });
    drop(foreign);
    drop(tasks);

    let unwinding = take(locks, "unwinding");
    let panicked = std::thread::spawn(move || {
        let _held = unwinding;
        panic!("as planned");
    });
    assert!(panicked.join().is_err());

    let kept = take(locks, "thread-local");
    let thread = std::thread::spawn(move || KEPT.with(|place| *place.borrow_mut() = Some(kept)));
    thread.join().unwrap();

    // One that waits is dropped after its runtime, which had polled it once. Its second delete is due
    // after half of its own ttl.
    let blocked = take(locks, "blocked");
    let waits = runtime().unwrap();
    let short = locks.lease("blocked").ttl(Duration::from_secs(1));
    let mut waiting = Box::pin(short.acquire());
    waits.block_on(async {
        let poll = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(waiting.as_mut().poll(cx).is_pending())
        });
        assert!(poll.await);
    });
    drop(waits);
    drop(waiting);
    drop(blocked);
    6
}

async fn end_everywhere(kind: Kind) {
    let site = Site::start(kind).await;
    let locks = site.builder(&[]).call_timeout(PATIENCE);
    let locks = locks.connect().await.unwrap();
    let own = locks.clone();
    let dropped = std::thread::spawn(move || drop_everywhere(&own))
        .join()
        .unwrap();
    within(PATIENCE, "nothing is left", || site.left().is_empty()).await;
    within(PATIENCE, "all are released", || {
        locks.stats().released == dropped
    })
    .await;
    let last = locks
        .lease("last")
        .ttl(TTL)
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    let drained = locks.shutdown(PATIENCE).await;
    assert!(
        drained.released > 0 && drained.left_to_ttl == 0,
        "{drained:?}"
    );
    assert!(last.token().is_err() && site.left().is_empty());
    // Leases that are not shut down end with their last guard.
    let locks = site.builder(&[]).call_timeout(PATIENCE);
    let locks = locks.connect().await.unwrap();
    let guard = locks
        .lease("guard")
        .ttl(TTL)
        .try_acquire()
        .await
        .unwrap()
        .unwrap();
    drop(locks);
    std::thread::spawn(move || drop(guard)).join().unwrap();
    within(PATIENCE, "nothing is left", || site.left().is_empty()).await;
    within(PATIENCE, "no connection is left", || {
        site.connections() == 0
    })
    .await;
}

#[tokio::test]
async fn a_lease_may_be_dropped_anywhere_on_redis() {
    end_everywhere(Kind::Redis).await;
}

#[tokio::test]
async fn a_lease_may_be_dropped_anywhere_on_postgres() {
    end_everywhere(Kind::Postgres).await;
}

/// Holds two leases and ends in the way that it is told.
fn end_this_process(part: &mut Part) {
    let (url, how) = (part.words()[0].to_owned(), part.words()[1].to_owned());
    let builder = Leases::redis(&*url).namespace("app");
    let locks = block_on(builder.call_timeout(PATIENCE).connect()).unwrap();
    // The shortest that Redis keeps: it is what frees the name of a process that is gone.
    let short = |name: &str| locks.lease(name).ttl(Duration::from_secs(1));
    let leases = [short("a"), short("b")].map(|request| block_on(request.acquire()).unwrap());
    part.say("held");
    match how.as_str() {
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        "leak" => std::mem::forget(leases),
        "shutdown" => drop(block_on(locks.shutdown(PATIENCE))),
        _ => drop((leases, locks)),
    }
}

/// However a process ends, it ends at once, and its names come free.
#[test]
fn a_process_may_end_in_any_way_while_it_holds() {
    if let Some(mut part) = Part::of_this_process() {
        return end_this_process(&mut part);
    }
    let redis = Redis::start().unwrap();
    let left = || redis.cli(&["KEYS", "sl:*:l:*"]).unwrap();
    for (how, code) in [
        ("exit", Some(7)),
        ("abort", None),
        ("leak", Some(0)),
        ("drop", Some(0)),
        ("shutdown", Some(0)),
    ] {
        let mut process = Player::start(&[&redis.url(), how]).unwrap();
        assert_eq!(process.hear().unwrap(), "held");
        assert_eq!(process.ended().unwrap().code(), code, "{how}");
        if how == "shutdown" {
            assert_eq!(left(), "", "it waited for its releases");
        }
        let free = || left().is_empty();
        soldonce_testkit::until("the names are free", PATIENCE, free).unwrap();
    }
}
