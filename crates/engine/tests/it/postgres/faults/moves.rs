//! The ledger moves to another cluster, where transactions are counted anew.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use soldonce_core::{Command, Event};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::postgres::{Postgres, carry_over};
use soldonce_testkit::{PATIENCE, until};

use crate::ledgers::{expect_taken, held, on};
use crate::postgres::Servers;

/// Thousands of transactions, so that this cluster is far ahead of a new one.
const BURN: &str = "DO $$ BEGIN FOR n IN 1..5000 LOOP \
                    PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

/// As if the last commit had not got its number yet.
const UNNUMBER: &str = "
    UPDATE sequencer SET n = n - 1, xid = (SELECT b.xid::text::bigint FROM batches b
        JOIN feed f ON f.batch = b.id ORDER BY f.n DESC LIMIT 1);
    DELETE FROM feed WHERE n = (SELECT max(n) FROM feed);
    UPDATE feed_heads SET seq = seq - 1,
        hash = (SELECT hash FROM feed ORDER BY n DESC LIMIT 1);";

/// Servers on a ledger that has rows of other ones: ids go on behind theirs.
async fn begin_anew(database: Postgres, count: usize) -> Servers {
    let servers = Servers::start_on(database, count).await;
    servers.next.fetch_add(1_000, Ordering::Relaxed);
    servers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_goes_on_in_a_cluster_with_fewer_transactions() {
    // With all numbers given, the first new commit is behind what the sequencer has passed.
    carried_back("SELECT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_without_a_number_gets_it_in_the_new_cluster() {
    carried_back(UNNUMBER).await;
}

/// A standby that lacks the last moments is promoted under a server that goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_lost_under_a_server_is_given_again() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    for (count, seat) in (1..).zip(["A-1", "A-2"]) {
        servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        servers.shown(0, &event, count).await;
    }
    servers.database.query(UNNUMBER).unwrap();
    servers.shown(0, &event, 2).await;
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

/// From a cluster that is far ahead into a new one, after `last`.
async fn carried_back(last: &str) {
    let old = Servers::start(1).await;
    let event = old.event(|_| {}).await;
    old.database.query(BURN).unwrap();
    let hold = old.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    old.hold(0, &event, "bob", &["A-2"]).await.unwrap();
    let before = old.shown(0, &event, 2).await;
    old.ledgers[0].close().await;
    old.database.query(last).unwrap();
    let new = Postgres::start().unwrap();
    carry_over(&old.options.url, &new.url()).unwrap();

    let servers = begin_anew(new, 2).await;
    assert_eq!(servers.shown(0, &event, 2).await, before);
    // What one server writes the other sees, and both get numbers.
    let release = Command::Release { on: on(&hold) };
    held(servers.ask(0, release).await).unwrap();
    servers.hold(1, &event, "eve", &["A-1"]).await.unwrap();
    let refused = servers.hold(0, &event, "fay", &["A-1"]).await;
    expect_taken(&refused);
    servers.shown(1, &event, 4).await;
    assert_eq!(servers.judge(0, &event.id).await, 4);
    let shifts = "SELECT count(*) FROM batches WHERE xid <= (SELECT xid FROM batches b JOIN feed f \
                  ON f.batch = b.id WHERE f.n = 2) AND commands > 0";
    assert_eq!(
        servers.database.query(shifts).unwrap(),
        "2",
        "new ones come behind"
    );
}

/// An event with one hold, and the new cluster that it moved into.
async fn one_hold_moves() -> (Arc<Event>, Postgres) {
    let old = Servers::start(1).await;
    let event = old.event(|_| {}).await;
    old.database.query(BURN).unwrap();
    old.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    old.shown(0, &event, 1).await;
    old.ledgers[0].close().await;
    let new = Postgres::start().unwrap();
    carry_over(&old.options.url, &new.url()).unwrap();
    (event, new)
}

/// The first command comes before the sequencer's first turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_at_once_in_the_new_cluster_gets_its_number() {
    let (event, new) = one_hold_moves().await;
    let servers = begin_anew(new, 1).await;
    servers.hold(0, &event, "bob", &["A-2"]).await.unwrap();
    servers.shown(0, &event, 2).await;
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_stays_as_it_is_in_a_cluster_with_more_transactions() {
    let old = Servers::start(1).await;
    let event = old.event(|_| {}).await;
    old.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let before = old.shown(0, &event, 1).await;
    old.ledgers[0].close().await;
    let new = Postgres::start().unwrap();
    new.query(BURN).unwrap();
    carry_over(&old.options.url, &new.url()).unwrap();
    let servers = begin_anew(new, 1).await;
    assert_eq!(servers.shown(0, &event, 1).await, before);
    servers.hold(0, &event, "bob", &["A-2"]).await.unwrap();
    servers.shown(0, &event, 2).await;
    assert_eq!(
        servers
            .database
            .query("SELECT shift FROM sequencer")
            .unwrap(),
        "0"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_written_before_a_move_is_not_read_again_and_again() {
    let (event, new) = one_hold_moves().await;

    let mut servers = begin_anew(new, 0).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let watched = servers.one_more(&servers.unprepared_at(url)).await;
    servers.ledgers.push(watched);
    let shift = || {
        servers
            .database
            .query("SELECT shift FROM sequencer")
            .unwrap()
    };
    until("numbers rise with the move", PATIENCE, || shift() != "0").unwrap();
    // A refusal is told from a memory that was just read. The first may find it from before the move.
    refused_at(&servers, &event).await;
    proxy.next_with("-- written", Fault::Reset);
    for _ in 0..4 {
        refused_at(&servers, &event).await;
    }
    assert_eq!(proxy.to_come(), 1, "nothing was written since the first");
}

async fn refused_at(servers: &Servers, event: &Event) {
    let refused = servers.hold(0, event, "bob", &["A-1"]).await;
    expect_taken(&refused);
}
