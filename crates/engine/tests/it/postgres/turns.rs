//! A change of an event holds its lock exclusively and waits for the batches before it. That later ones wait
//! behind it, too, is PostgreSQL's own queue of lock waiters.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use soldonce_core::{Command, EventNo, Policy, PolicyChange, Text};
use soldonce_engine::ledger::{Ledger, Observer};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use super::Servers;
use crate::ledgers::transaction;

/// Another session that holds the lock, and the task that reads its connection.
pub(super) struct Other {
    client: Client,
    _reading: JoinSet<()>,
}

impl Other {
    /// Takes a turn by this function, until [`Other::leave`].
    async fn take(servers: &Servers, function: &str, event: EventNo) -> Self {
        let take = format!("BEGIN; SELECT {function}(731030761, {})", event.0);
        Self::run(&servers.database.url(), &take).await
    }

    /// Begins a transaction by these statements, until [`Other::leave`].
    pub(super) async fn run(url: &str, sql: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        let mut reading = JoinSet::new();
        reading.spawn(async move { drop(connection.await) });
        client.batch_execute(sql).await.unwrap();
        Self {
            client,
            _reading: reading,
        }
    }

    /// What this session reads. It starts no program, for which those who wait have no time.
    async fn read(&self, sql: &str) -> String {
        self.client.query_one(sql, &[]).await.unwrap().get(0)
    }

    pub(super) async fn leave(self) {
        self.client.batch_execute("COMMIT").await.unwrap();
    }
}

impl Servers {
    /// Asks for what this other session is in the way of, and does not go on before a session waits for a turn
    /// of this kind.
    async fn ask_in_vain(&self, other: &Other, command: Command, kind: &str) -> JoinSet<()> {
        let ledger = Arc::clone(&self.ledgers[0]);
        let mut asked = JoinSet::new();
        asked.spawn(async move {
            ledger.transact(transaction(command, None)).await.unwrap();
        });
        let waiting = format!(
            "SELECT (count(*) > 0)::text FROM pg_locks \
             WHERE locktype = 'advisory' AND mode = '{kind}' AND NOT granted"
        );
        while other.read(&waiting).await != "true" {
            assert!(asked.try_join_next().is_none(), "it does not wait");
        }
        asked
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_has_its_event_alone() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let policy = Policy {
        units_per_hold_max: 3,
        ..event.policy.clone()
    };
    let renewal = Command::UpdateEvent {
        event: event.no,
        change: Box::new(PolicyChange::from(&policy).into()),
    };
    // Many share it; a renewal waits for them.
    let other = Other::take(&servers, "pg_advisory_xact_lock_shared", event.no).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let renewed = servers.ask_in_vain(&other, renewal, "ExclusiveLock").await;
    other.leave().await;
    renewed.join_all().await;
    // And they wait for it.
    let other = Other::take(&servers, "pg_advisory_xact_lock", event.no).await;
    let wish = servers.wish(&event, "bob", &["B-1"]);
    let held = servers.ask_in_vain(&other, wish, "ShareLock").await;
    other.leave().await;
    held.join_all().await;
    servers.judge(0, &event.id).await;
}

/// It waits for a moment, and does not give up while another has the lock for longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_asks_for_its_turn_again() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let other = Other::take(&servers, "pg_advisory_xact_lock_shared", event.no).await;
    let cancel = Command::CancelEvent {
        event: event.no,
        reason: Text::parse("rain").unwrap(),
    };
    let mut cancelled = servers.ask_in_vain(&other, cancel, "ExclusiveLock").await;
    let since = "SELECT coalesce(max(waitstart)::text, '') FROM pg_locks \
                 WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND NOT granted";
    let first = other.read(since).await;
    let mut now = first.clone();
    while now.is_empty() || now == first {
        assert!(cancelled.try_join_next().is_none(), "it gives up");
        now = other.read(since).await;
    }
    other.leave().await;
    cancelled.join_all().await;
}

/// How many commands each batch had.
#[derive(Default)]
struct BatchSizes(Mutex<Vec<usize>>);

impl Observer for BatchSizes {
    fn batch(&self, commands: usize, _: Duration) {
        self.0.lock().unwrap().push(commands);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_while_a_command_waits_for_its_turn_is_stored_together() {
    let mut servers = Servers::start(0).await;
    let sizes = Arc::new(BatchSizes::default());
    servers.add_watched(sizes.clone()).await;
    let event = servers.event(|_| {}).await;
    let other = Other::take(&servers, "pg_advisory_xact_lock", event.no).await;
    let wish = servers.wish(&event, "ann", &["A-1"]);
    let first = servers.ask_in_vain(&other, wish, "ShareLock").await;
    let mut queued = Vec::new();
    for seat in ["A-2", "A-3", "A-4", "A-5"] {
        let wish = transaction(servers.wish(&event, "ann", &[seat]), None);
        let mut asked = servers.ledgers[0].transact(wish);
        let poll = poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
        assert!(poll.is_pending());
        queued.push(asked);
    }
    other.leave().await;
    first.join_all().await;
    for asked in queued {
        asked.await.unwrap();
    }
    assert_eq!(*sizes.0.lock().unwrap(), [1, 4]);
    servers.judge(0, &event.id).await;
}
