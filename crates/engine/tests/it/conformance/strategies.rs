//! The suite by every strategy of PostgreSQL that carries one command at a time.

use soldonce_core::Command;
use soldonce_engine::ledger::postgres::Strategy;
use soldonce_lease::Locks;

use soldonce_testkit::postgres::PgBouncer;

use super::{on_postgres_by, through};
use crate::ledgers::TestLedger;
use crate::postgres::LeaseServers;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn constraint() {
    on_postgres_by(Strategy::Constraint).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn optimistic() {
    on_postgres_by(Strategy::Optimistic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pessimistic() {
    on_postgres_by(Strategy::Pessimistic).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nowait() {
    on_postgres_by(Strategy::NoWait).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease() {
    let locks = Locks::memory().connect().await.unwrap();
    on_postgres_by(Strategy::Lease(locks)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redlock() {
    let servers = LeaseServers::start();
    on_postgres_by(servers.redlock().await).await;
}

/// Statements are sent whole, and nothing is left to a session, which others have a moment later.
mod through_a_pool_in_transaction_mode {
    use super::*;

    async fn by(strategy: Strategy) {
        let server = TestLedger::server();
        let pool = PgBouncer::start(&server, 8).unwrap();
        through(&server, strategy, Some(&pool)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn queue() {
        by(Strategy::Queue).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn constraint() {
        by(Strategy::Constraint).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn optimistic() {
        by(Strategy::Optimistic).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn pessimistic() {
        by(Strategy::Pessimistic).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn nowait() {
        by(Strategy::NoWait).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn lease() {
        by(Strategy::Lease(Locks::memory().connect().await.unwrap())).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn redlock() {
        let servers = LeaseServers::start();
        by(servers.redlock().await).await;
    }
}

/// Two steps of a unit in one command, the first of which another server has taken: its last version
/// is above the stored one, and only the steps between tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_another_server_swept_is_taken_over_by_constraint() {
    let one = TestLedger::postgres().await;
    let two = one.second_server_by(&Strategy::Constraint).await;
    let event = one.event().await;
    one.hold(&event, "ann", &["A-1"]).await.unwrap();
    // Now the second knows of it, too.
    two.hold(&event, "bob", &["A-1"]).await.unwrap_err();
    one.advance_ms(3_600_000);
    one.ask(Command::Sweep { limit: 10 }).await.unwrap();
    let held = two.hold(&event, "bob", &["A-1"]).await.unwrap();
    assert_eq!(held.units.len(), 1);
}
