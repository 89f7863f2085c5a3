//! The database plans a statement once, when its tables may be empty. What a commit costs must not
//! grow with the event all the same: every row is found by its whole key.

use std::fmt::Write as _;
use std::sync::Arc;

use soldonce_core::Event;
use soldonce_engine::ledger::Ledger;
use tokio::task::JoinSet;

use super::Servers;
use crate::ledgers::{booked, confirm};

const SEATS: usize = 400;
const BUYERS: usize = 40;
/// Looked up for one transition, in one table: to lock, to write, to guard at the commit, to number and to
/// show it, and twice as much, for batches that are decided again.
const LOOKUPS_PER_STEP_MAX: usize = 10;
/// How often it is asked whether a connection has ended.
const LOOKS_MAX: usize = 1_000;

/// Seats in one long list.
fn long_list() -> String {
    let mut seats = String::new();
    for seat in 0..SEATS {
        let comma = if seat == 0 { "" } else { "," };
        write!(
            seats,
            r#"{comma}{{"seat":"L-{seat}","category":"Standard"}}"#
        )
        .unwrap();
    }
    format!(r#"{{"format":"seats","seats":[{seats}]}}"#)
}

async fn buy(servers: Arc<Servers>, event: Arc<Event>, seat: usize) {
    let (who, name) = (format!("buyer-{seat}"), format!("L-{seat}"));
    let hold = servers.hold(0, &event, &who, &[&name]).await.unwrap();
    let confirm = confirm(&hold, u128::try_from(seat).unwrap());
    booked(servers.ask(0, confirm).await).unwrap();
}

/// Ends every connection: what one has counted is told then.
async fn disconnect(servers: &mut Servers) {
    for ledger in servers.ledgers.drain(..) {
        ledger.close().await;
    }
    let others = "SELECT count(*) FROM pg_stat_activity \
                  WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let is_alone = || servers.database.query(others).unwrap().trim() == "0";
    assert!((0..LOOKS_MAX).any(|_| is_alone()), "connections stay open");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_commit_looks_up_does_not_grow_with_the_event() {
    let servers = Arc::new(Servers::start(1).await);
    let event = servers.event_on(&long_list(), |_| {}).await;
    // Many batches: one that read the whole event would be seen.
    for first in (0..SEATS).step_by(BUYERS) {
        let seats = first..(first + BUYERS).min(SEATS);
        let buyers = seats.map(|seat| buy(Arc::clone(&servers), Arc::clone(&event), seat));
        buyers.collect::<JoinSet<()>>().join_all().await;
    }
    assert_eq!(servers.judge(0, &event.id).await, 2 * SEATS);
    let mut servers = Arc::into_inner(servers).unwrap();
    disconnect(&mut servers).await;
    for table in ["units", "holders", "audit", "holds"] {
        let sql =
            format!("SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = '{table}'");
        let found = servers.database.query(&sql).unwrap();
        let found: usize = found.trim().parse().unwrap();
        let most = 2 * SEATS * LOOKUPS_PER_STEP_MAX;
        assert!(
            found <= most,
            "{table}: {found} rows were looked up, above {most}"
        );
    }
}
