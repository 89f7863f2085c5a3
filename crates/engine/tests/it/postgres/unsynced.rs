//! A primary that waits for its standby: a commit whose wait is cancelled is on one disk alone, and
//! the server must not take the database's "done" for done.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Command, Hold, Rejection};
use soldonce_testkit::postgres::{Postgres, PostgresPair, query};
use soldonce_testkit::{PATIENCE, until};

use super::Servers;
use super::faults::load;
use crate::ledgers::{HALL, is_unknown, new_event};

/// Those who wait for a standby.
const CANCEL: &str = "-- cancel
SELECT count(*) FROM (SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                      WHERE wait_event = 'SyncRep' AND backend_type = 'client backend') AS cancelled";

/// Servers on a primary that waits for its standby.
async fn with_awaited_standby(count: usize) -> (Servers, Postgres) {
    let PostgresPair { primary, standby } = PostgresPair::start().unwrap();
    primary
        .query("ALTER SYSTEM SET synchronous_standby_names = '*'")
        .unwrap();
    primary.query("SELECT pg_reload_conf()").unwrap();
    let awaited = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    let is_awaited = || primary.query(awaited).is_ok_and(|answer| answer == "t");
    until("the standby is waited for", PATIENCE, is_awaited).unwrap();
    (Servers::start_on(primary, count).await, standby)
}

/// Takes its primary from the standby, for which commits then wait.
fn cut(standby: &Postgres) {
    follows(standby, "ALTER SYSTEM SET primary_conninfo = ''", "f");
}

fn join(standby: &Postgres) {
    follows(standby, "ALTER SYSTEM RESET primary_conninfo", "t");
}

fn follows(standby: &Postgres, sql: &str, expected: &str) {
    standby.query(sql).unwrap();
    standby.query("SELECT pg_reload_conf()").unwrap();
    let receives = "SELECT count(*) = 1 FROM pg_stat_wal_receiver WHERE status = 'streaming'";
    let is_so = || {
        standby
            .query(receives)
            .is_ok_and(|answer| answer == expected)
    };
    until("the standby follows, or not", PATIENCE, is_so).unwrap();
}

/// Cancels every wait for the standby until it is told to stop.
struct Canceller {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Canceller {
    fn start(servers: &Servers) -> Self {
        let (stop, count) = (Arc::default(), Arc::default());
        let (own, counted): (Arc<AtomicBool>, Arc<AtomicU64>) =
            (Arc::clone(&stop), Arc::clone(&count));
        let url = servers.database.url();
        let thread = std::thread::spawn(move || {
            while !own.load(Ordering::Relaxed) {
                let cancelled = query(&url, CANCEL).unwrap().parse::<u64>().unwrap();
                counted.fetch_add(cancelled, Ordering::Relaxed);
            }
        });
        let thread = Some(thread);
        Self {
            stop,
            count,
            thread,
        }
    }

    fn has_cancelled(&self) {
        let before = self.count.load(Ordering::Relaxed);
        let has = || self.count.load(Ordering::Relaxed) > before;
        until("a wait is cancelled", PATIENCE, has).unwrap();
    }
}

impl Drop for Canceller {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

/// The disk of the primary is lost; the standby takes over, and is judged in its place.
fn fail_over(servers: &mut Servers, standby: &Postgres) {
    servers.database.kill().unwrap();
    standby.query("SELECT pg_promote(true, 60)").unwrap();
    servers.options.url = standby.url();
}

fn holds_at(standby: &Postgres) -> BTreeSet<String> {
    let stored = standby
        .query("SELECT encode(id, 'hex') FROM holds")
        .unwrap();
    stored.lines().map(str::to_owned).collect()
}

fn hex(hold: &Hold) -> String {
    format!("{:032x}", u128::from_be_bytes(*hold.id.bytes()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_wait_was_cancelled_is_not_acknowledged() {
    let (mut servers, standby) = with_awaited_standby(1).await;
    let event = servers.event(|_| {}).await;
    let kept = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    cut(&standby);
    let canceller = Canceller::start(&servers);
    let unknown = servers.hold(0, &event, "bob", &["A-2"]).await;
    assert!(is_unknown(&unknown), "{unknown:?}");
    let new = Command::CreateEvent(Box::new(new_event("hamlet-2", HALL, |_| {})));
    let unknown = servers.ask(0, new).await;
    assert!(is_unknown(&unknown), "{unknown:?}");
    canceller.has_cancelled();
    drop(canceller);
    fail_over(&mut servers, &standby);
    assert_eq!(holds_at(&standby), BTreeSet::from([hex(&kept)]));
    assert_eq!(standby.query("SELECT count(*) FROM events").unwrap(), "1");
    drop(servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_goes_on_by_itself_once_the_standby_answers() {
    let (servers, standby) = with_awaited_standby(1).await;
    let event = servers.event(|_| {}).await;
    cut(&standby);
    let canceller = Canceller::start(&servers);
    let unknown = servers.hold(0, &event, "ann", &["A-1"]).await;
    assert!(is_unknown(&unknown), "{unknown:?}");
    drop(canceller);
    join(&standby);
    // It was stored: ann gets the same hold.
    let limit = SystemClock.boot().plus(PATIENCE);
    let mut again = servers.hold(0, &event, "ann", &["A-1"]).await;
    while matches!(again, Err(Rejection::ReadOnly | Rejection::OutcomeUnknown)) {
        assert!(SystemClock.boot() < limit, "it goes on by itself");
        again = servers.hold(0, &event, "ann", &["A-1"]).await;
    }
    again.unwrap();
    assert_eq!(servers.judge(0, &event.id).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_was_acknowledged_under_load_is_lost_with_the_primary() {
    let (mut servers, standby) = with_awaited_standby(2).await;
    let event = servers.event(|_| {}).await;
    let stop = Arc::new(AtomicBool::new(false));
    let buyers = [0, 1].map(|server| load(&servers, server, &event, &stop));
    let canceller = Canceller::start(&servers);
    canceller.has_cancelled();
    cut(&standby);
    canceller.has_cancelled();
    join(&standby);
    canceller.has_cancelled();
    cut(&standby);
    canceller.has_cancelled();
    drop(canceller);
    fail_over(&mut servers, &standby);
    stop.store(true, Ordering::Relaxed);
    let stored = holds_at(&standby);
    for of_server in buyers {
        for hold in of_server.join_all().await.into_iter().flatten() {
            assert!(stored.contains(&hex(&hold)), "{hold:?} is lost");
        }
    }
    drop(servers);
}
