//! How far the feed of one server is behind what another stored, and that one which stands still says so.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::{Commit, Seq};
use soldonce_engine::ledger::Observer;
use soldonce_testkit::{PATIENCE, until};

use super::Servers;
use super::left_open::{left_open, left_open_elsewhere};

/// More transactions than may begin after one that is open before it is named.
const BURN: &str = "DO $$ BEGIN FOR n IN 1..101000 LOOP \
                    PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

/// What one server shows, and how far it says that it is behind.
#[derive(Default)]
struct Feed(Mutex<(Seq, Duration, Option<i32>)>);

impl Observer for Feed {
    fn numbered(&self, commits: &[Commit]) {
        let last = commits.last().map(|commit| commit.seq);
        let mut feed = self.0.lock().unwrap();
        feed.0 = last.unwrap_or(feed.0);
    }
    fn feed_lag(&self, behind: Duration, process: Option<i32>) {
        let mut feed = self.0.lock().unwrap();
        (feed.1, feed.2) = (behind, process);
    }
}

/// Two servers, of which the second is watched.
async fn watched() -> (Servers, Arc<Feed>) {
    let mut servers = Servers::start(1).await;
    let feed = Arc::new(Feed::default());
    servers.add_watched(feed.clone()).await;
    (servers, feed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_is_left_open_is_named_as_what_holds_the_feed_up() {
    let (servers, feed) = watched().await;
    let event = servers.event(|_| {}).await;
    let (other, pid) = left_open(&servers, "postgres").await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let is_told = || {
        let (_, behind, process) = *feed.0.lock().unwrap();
        behind >= Duration::from_secs(1) && process == Some(pid)
    };
    until("the lag and its cause are told", PATIENCE, is_told).unwrap();
    assert_eq!(
        feed.0.lock().unwrap().0,
        Seq(0),
        "nothing is shown meanwhile"
    );
    other.leave().await;
    let is_shown = || {
        let (seq, behind, _) = *feed.0.lock().unwrap();
        seq == Seq(1) && behind == Duration::ZERO
    };
    until("it goes on by itself", PATIENCE, is_shown).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_left_open_in_another_database_is_named_and_holds_nothing_up() {
    let (servers, feed) = watched().await;
    let event = servers.event(|_| {}).await;
    let (other, pid) = left_open_elsewhere(&servers).await;
    servers.database.query(BURN).unwrap();
    let is_named = || feed.0.lock().unwrap().2 == Some(pid);
    until("it is named", PATIENCE, is_named).unwrap();
    servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    let is_shown = || feed.0.lock().unwrap().0 == Seq(1);
    until("the commit is shown", PATIENCE, is_shown).unwrap();
    other.leave().await;
    let is_over = || feed.0.lock().unwrap().2.is_none();
    until("it is named no more", PATIENCE, is_over).unwrap();
}

/// A gauge that stayed as it was would say that all is well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_without_its_database_is_further_and_further_behind() {
    let (mut servers, feed) = watched().await;
    servers.database.stop_immediately().unwrap();
    let is_behind = || feed.0.lock().unwrap().1 >= Duration::from_secs(2);
    until("the lag grows", PATIENCE, is_behind).unwrap();
    servers.database.restart().unwrap();
    let is_over = || feed.0.lock().unwrap().1 == Duration::ZERO;
    until("it is over", PATIENCE, is_over).unwrap();
}

/// The bound of docs: a commit of one server is shown by another within a second, unless something holds the
/// feed up that the metric tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_stores_another_shows_soon() {
    let (servers, feed) = watched().await;
    let event = servers.event(|_| {}).await;
    // What is stored before a server takes up an event is in its first picture.
    servers.hold(1, &event, "eve", &["B-1"]).await.unwrap();
    let mut took = Vec::new();
    for n in 1..=20 {
        let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
        let begun = SystemClock.boot();
        let is_shown = || feed.0.lock().unwrap().0 >= Seq(2 * n);
        until("the commit is shown", PATIENCE, is_shown).unwrap();
        took.push(SystemClock.boot().since(begun));
        let release = soldonce_core::Command::Release {
            on: crate::ledgers::on(&hold),
        };
        servers.ask(0, release).await.unwrap();
    }
    took.sort_unstable();
    tracing::warn!(median = ?took[10], most = ?took[19], "shown by another server");
    assert!(took[10] < Duration::from_secs(1), "{took:?}");
}
