//! A transaction that another program leaves open in another database of the cluster: what was read or numbered since
//! it began is not looked at again and again.

use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, until};

use super::Servers;
use super::turns::Other;
use crate::ledgers::{expect_taken, wait_for_numbers};

/// Begins a transaction that writes in this database; returns its process, too.
pub(super) async fn left_open(servers: &Servers, database: &str) -> (Other, i32) {
    let begin = "BEGIN; SET application_name = 'left open'; SELECT pg_current_xact_id()";
    let other = Other::run(&servers.database.url_of(database), begin).await;
    let pid = "SELECT pid FROM pg_stat_activity WHERE application_name = 'left open'";
    let pid = servers.database.query(pid).unwrap().parse().unwrap();
    (other, pid)
}

/// The same in another database of the cluster.
pub(super) async fn left_open_elsewhere(servers: &Servers) -> (Other, i32) {
    let database = servers.database.database().unwrap();
    left_open(servers, &database).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_server_stored_is_read_once() {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let watched = servers.one_more(&servers.unprepared_at(url)).await;
    servers.ledgers.push(watched);
    let (other, _) = left_open_elsewhere(&servers).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    // A refusal is told from a memory that was just read.
    let refused = async || {
        let refused = servers.hold(1, &event, "bob", &["A-1"]).await;
        expect_taken(&refused);
    };
    refused().await;
    proxy.next_with("-- written", Fault::Reset);
    for _ in 0..4 {
        refused().await;
    }
    assert_eq!(proxy.to_come(), 1, "nothing was written since the first");
    // What comes later is read.
    proxy.heal();
    servers.hold(0, &event, "ann", &["A-2"]).await.unwrap();
    let refused = servers.hold(1, &event, "bob", &["A-2"]).await;
    expect_taken(&refused);
    other.leave().await;
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

/// A number that is taken away by hand would be given again by a sequencer that looks there again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_its_number_is_not_looked_at_again() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let (other, _) = left_open_elsewhere(&servers).await;
    for seat in ["A-1", "A-2"] {
        servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        wait_for_numbers(&servers.options.url, || {});
    }
    let query = |sql: &str| servers.database.query(sql).unwrap();
    query(
        "CREATE TABLE taken_away AS SELECT * FROM feed WHERE n = 1; DELETE FROM feed WHERE n = 1",
    );
    servers.hold(0, &event, "ann", &["A-3"]).await.unwrap();
    let last = "SELECT count(*) FROM feed \
                WHERE batch = (SELECT id FROM batches ORDER BY place DESC LIMIT 1)";
    let is_numbered = || query(last) == "1";
    until("the last commit has its number", PATIENCE, is_numbered).unwrap();
    assert_eq!(query("SELECT max(n) FROM feed"), "3");
    query("INSERT INTO feed SELECT * FROM taken_away; DROP TABLE taken_away");
    other.leave().await;
}
