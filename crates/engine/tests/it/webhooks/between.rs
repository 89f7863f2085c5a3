//! What is answered about endpoints and messages between statements under way at other connections: a new
//! endpoint hears of all that is stored after that, and a message that is sent again stays.

use std::sync::Arc;

use soldonce_core::Timestamp;
use soldonce_engine::ledger::NewEndpoint;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, until};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::ledger::endpoint;
use crate::ledgers::{TestLedger, booked, transaction};

/// Another connection to the one database of a test.
async fn connect(server: &Postgres) -> (Client, JoinSet<()>) {
    let database = server.query("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'");
    let url = server.url_of(database.unwrap().trim());
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    (client, tasks)
}

fn until_one_waits(server: &Postgres) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let one_waits = || server.query(waiting).is_ok_and(|count| count == "1");
    until("a statement waits", PATIENCE, one_waits).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_looked_before_is_stored_before_or_told() {
    let server = TestLedger::server();
    let test = TestLedger::postgres_on(&server, None).await;
    let event = test.event().await;
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let (slow, _connection) = connect(&server).await;
    let lock = "BEGIN; SELECT 1 FROM units FOR UPDATE";
    slow.batch_execute(lock).await.unwrap();
    // Its statement has begun: what it sees of endpoints is what there is now.
    let (ledger, confirm) = (Arc::clone(&test.ledger), test.confirm_command(&hold));
    let mut buyer = JoinSet::new();
    buyer.spawn(async move { booked(ledger.transact(transaction(confirm, None)).await) });
    until_one_waits(&server);
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
    let heard = ledger.webhooks().deliveries(endpoint(1).id, (None, 9));
    assert_eq!(heard.await.unwrap().len(), usize::from(was_told));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_sent_again_meanwhile_is_not_deleted_as_old() {
    let server = TestLedger::server();
    let test = TestLedger::postgres_on(&server, None).await;
    let event = test.event().await;
    let ledger = Arc::clone(&test.ledger);
    let new = NewEndpoint::new(endpoint(1), None);
    ledger.webhooks().add_endpoint(new).await.unwrap();
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    test.confirm(&hold).await.unwrap();
    let (slow, _connection) = connect(&server).await;
    let is_over = "UPDATE deliveries SET state = 1, at = 0, next_at = NULL";
    let waits = "UPDATE deliveries SET state = 0, next_at = 0; UPDATE webhook_endpoints SET disabled_at = 0";
    for old in [is_over, waits] {
        slow.batch_execute(old).await.unwrap();
        // It is sent again, or its endpoint is enabled, and that is not committed yet.
        let again = "BEGIN; UPDATE deliveries SET state = 0, attempts = 0, next_at = 9";
        slow.batch_execute(again).await.unwrap();
        let mut cleaner = JoinSet::new();
        let own = Arc::clone(&ledger);
        cleaner.spawn(async move {
            let forgotten = own.webhooks().forget_deliveries(Timestamp::from_ms(9), 9);
            forgotten.await.unwrap()
        });
        until_one_waits(&server);
        slow.batch_execute("COMMIT").await.unwrap();
        assert_eq!(cleaner.join_next().await.unwrap().unwrap(), 0, "{old}");
        let kept = ledger.webhooks().deliveries(endpoint(1).id, (None, 9));
        assert_eq!(kept.await.unwrap().len(), 1, "{old}");
    }
}
