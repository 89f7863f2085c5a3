//! Connections that break at the commit: whoever gets no answer asks what became of it, once and for
//! all, by every way in which a commit is made.

use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{PostgresOptions, Strategy};
use soldonce_testkit::chaos::{Fault, Proxy};
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use crate::postgres::Servers;

/// Nobody numbers meanwhile, which would be another commit.
const STOP_NUMBERS: &str = "BEGIN; SELECT FROM sequencer FOR UPDATE";

/// Breaks the connection at the request that commits, before it arrives or behind it.
async fn a_reply_is_lost(strategy: Strategy, commit: &str) {
    let mut servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let proxy = Proxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let options = PostgresOptions {
        strategy,
        ..servers.unprepared_at(url)
    };
    let shaky = servers.one_more(&options).await;
    servers.ledgers.push(shaky);
    let url = servers.database.url();
    let (other, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    other.batch_execute(STOP_NUMBERS).await.unwrap();
    for (seat, fault) in [
        ("A-1", Fault::DropReply),
        ("A-2", Fault::Reset),
        ("A-3", Fault::DropReply),
    ] {
        proxy.next_with(commit, fault);
        // Asked for by the one command there is: it was its own commit.
        proxy.next_with("-- give_up", Fault::None);
        let hold = servers.hold(1, &event, "ann", &[seat]).await.unwrap();
        assert_eq!(proxy.to_come(), 0, "the fault has happened");
        // The other server sees the same hold: it was made once.
        let same = servers.ledgers[0].hold(hold.id).await.unwrap();
        assert_eq!(same, Some(hold));
    }
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(servers.judge(0, &event.id).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queue() {
    a_reply_is_lost(Strategy::Queue, "-- write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraint() {
    a_reply_is_lost(Strategy::Constraint, "-- write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn optimistic() {
    a_reply_is_lost(Strategy::Optimistic, "-- write").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pessimistic() {
    a_reply_is_lost(Strategy::Pessimistic, "COMMIT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nowait() {
    a_reply_is_lost(Strategy::NoWait, "COMMIT").await;
}
