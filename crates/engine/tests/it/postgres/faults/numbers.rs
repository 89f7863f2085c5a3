//! Transactions whose numbers are not what a server took them to be: a database that crashed gives a
//! number once more when nothing of its transaction was on the disk.

use soldonce_core::Command;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::ledgers::{expect_taken, on};
use crate::postgres::Servers;

/// Numbers that nothing was stored under.
const BURN: &str = "DO $$ BEGIN FOR n IN 1..200 LOOP \
                    PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$";

/// As if the last batch had got the number behind all that was stored before the numbers were lost.
const GIVE_ANEW: &str = "UPDATE batches SET xid = (
        SELECT greatest(s.xid, (SELECT max(b.xid::text::bigint) FROM batches b
                                WHERE b.place < (SELECT max(place) FROM batches))) + 1
        FROM sequencer s)::text::xid8
    WHERE place = (SELECT max(place) FROM batches)";

/// A number below everything, for the batches of a server.
const BURY: &str = "CREATE TABLE buried AS SELECT id, xid FROM batches WHERE at > 0 AND place > $;
    UPDATE batches SET xid = '3' WHERE id IN (SELECT id FROM buried)";

const DIG_UP: &str = "UPDATE batches b SET xid = o.xid FROM buried o WHERE o.id = b.id";

/// While it lives no server numbers commits.
pub(super) struct NoNumbers {
    client: Client,
    _connection: JoinSet<()>,
}

impl NoNumbers {
    pub(super) async fn begin(servers: &Servers) -> Self {
        let url = servers.database.url();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        // A lock that takes no number of a transaction.
        let lock = "BEGIN; LOCK TABLE sequencer IN EXCLUSIVE MODE";
        client.batch_execute(lock).await.unwrap();
        Self {
            client,
            _connection: tasks,
        }
    }

    pub(super) async fn end(self) {
        self.client.batch_execute("COMMIT").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_given_once_more_is_seen() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    let quiet = NoNumbers::begin(&servers).await;
    servers.database.query(BURN).unwrap();
    // A refusal is told from a memory that was just read: behind all those numbers.
    let refused = servers.hold(0, &event, "bob", &["A-1"]).await;
    expect_taken(&refused);
    let release = Command::Release { on: on(&hold) };
    servers.ask(1, release).await.unwrap();
    servers.database.query(GIVE_ANEW).unwrap();
    servers.hold(0, &event, "bob", &["A-1"]).await.unwrap();
    quiet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_missed_a_batch_reads_all_of_the_event_by_itself() {
    let servers = Servers::start(3).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["B-5"]).await.unwrap();
    let last = servers.database.query("SELECT max(place) FROM batches");
    let quiet = NoNumbers::begin(&servers).await;
    let seats = ["A-1", "A-2"];
    for (server, _) in (1..).zip(seats) {
        let refused = servers.hold(server, &event, "bob", &["B-5"]).await;
        expect_taken(&refused);
    }
    for seat in seats {
        let hold = servers.hold(0, &event, "ann", &[seat]).await.unwrap();
        let release = Command::Release { on: on(&hold) };
        servers.ask(0, release).await.unwrap();
    }
    let bury = BURY.replace('$', last.unwrap().trim());
    servers.database.query(&bury).unwrap();
    for (server, seat) in (1..).zip(seats) {
        let held = servers.hold(server, &event, "bob", &[seat]).await;
        assert!(held.is_ok(), "server {server}: {held:?}");
    }
    servers.database.query(DIG_UP).unwrap();
    quiet.end().await;
}
