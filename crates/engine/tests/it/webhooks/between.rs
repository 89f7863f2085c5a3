//! A new endpoint between commands under way at other connections: after the answer it hears of all that
//! is stored after that.

use std::sync::Arc;

use soldonce_engine::ledger::NewEndpoint;
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::ledger::endpoint;
use crate::ledgers::{TestLedger, booked, transaction};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_looked_before_is_stored_before_or_told() {
    let server = TestLedger::server();
    let test = TestLedger::postgres_on(&server, None).await;
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let database = server.query("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'");
    let url = server.url_of(database.unwrap().trim());
    let (slow, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let lock = "BEGIN; SELECT 1 FROM units FOR UPDATE";
    slow.batch_execute(lock).await.unwrap();
    // Its statement has begun: what it sees of endpoints is what there is now.
    let (ledger, confirm) = (Arc::clone(&test.ledger), test.confirm_command(&hold));
    let mut buyer = JoinSet::new();
    buyer.spawn(async move { booked(ledger.transact(transaction(confirm, None)).await) });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let one_waits = || server.query(waiting).is_ok_and(|count| count == "1");
    until("the sale waits", PATIENCE, one_waits).unwrap();
    let ledger = Arc::clone(&test.ledger);
    let add = || {
        ledger
            .webhooks()
            .add_endpoint(NewEndpoint::new(endpoint(1), None))
    };
    let was_told = add().await.is_ok();
    slow.batch_execute("COMMIT").await.unwrap();
    buyer.join_next().await.unwrap().unwrap().unwrap();
    if !was_told {
        add().await.unwrap();
    }
    let heard = ledger.webhooks().deliveries(endpoint(1).id, i64::MAX, 9);
    assert_eq!(heard.await.unwrap().len(), usize::from(was_told));
}
