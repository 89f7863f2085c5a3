//! The gate in front of a real PostgreSQL: the holder that was paused cannot write any more, and
//! without the gate it could.

use soldonce_lease::FencingToken;
use soldonce_lease::gate::{FENCE_ADMIT, FENCE_HIGHEST, FENCE_TABLE};
use soldonce_testkit::postgres::Postgres as Server;
use tokio_postgres::Client;

use super::session;

const COUNTER: &str = "\
DROP TABLE IF EXISTS counter; DROP TABLE IF EXISTS soldonce_fence;
CREATE TABLE counter (value bigint NOT NULL,
    lease_token bigint NOT NULL DEFAULT 0);
INSERT INTO counter (value) VALUES (0);";

#[derive(Clone, Copy, Debug)]
enum Gate {
    Columns,
    FenceTable,
    Without,
}

fn token(counter: u32) -> FencingToken {
    FencingToken::from_parts(3, counter).unwrap()
}

async fn value(client: &Client) -> i64 {
    client
        .query_one("SELECT value FROM counter", &[])
        .await
        .unwrap()
        .get(0)
}

/// Writes `next` with `token`; tells whether it was written.
async fn write(client: &mut Client, gate: Gate, token: FencingToken, next: i64) -> bool {
    let token = token.sql();
    let tx = client.transaction().await.unwrap();
    let rows = match gate {
        Gate::Columns => {
            let sql = "UPDATE counter SET value = $1, lease_token = $2 WHERE lease_token <= $2";
            tx.execute(sql, &[&next, &token]).await.unwrap()
        }
        Gate::FenceTable => {
            let admitted = tx.query_opt(FENCE_ADMIT, &[&"counter", &token]).await;
            if admitted.unwrap().is_none() {
                return false;
            }
            tx.execute("UPDATE counter SET value = $1", &[&next])
                .await
                .unwrap()
        }
        Gate::Without => tx
            .execute("UPDATE counter SET value = $1", &[&next])
            .await
            .unwrap(),
    };
    tx.commit().await.unwrap();
    rows == 1
}

/// Two holders read the counter, the first is paused, the second adds ten times, then the first
/// adds to what it read before.
async fn paused_holder(server: &Server, gate: Gate) -> (i64, bool) {
    let (mut first, _first_task) = session(server).await;
    let (mut second, _second_task) = session(server).await;
    first.batch_execute(COUNTER).await.unwrap();
    first.batch_execute(FENCE_TABLE).await.unwrap();
    let read_before_the_pause = value(&first).await;
    for _ in 0..10 {
        let next = value(&second).await + 1;
        assert!(write(&mut second, gate, token(8), next).await, "{gate:?}");
    }
    let stale = write(&mut first, gate, token(7), read_before_the_pause + 1).await;
    (value(&second).await, stale)
}

#[tokio::test]
async fn stale_token_is_refused_at_the_target() {
    let server = Server::start().unwrap();
    for gate in [Gate::Columns, Gate::FenceTable] {
        assert_eq!(paused_holder(&server, gate).await, (10, false), "{gate:?}");
    }
    let (client, _task) = session(&server).await;
    let row = client
        .query_one(FENCE_HIGHEST, &[&"counter"])
        .await
        .unwrap();
    let highest: i64 = row.get(0);
    assert_eq!(highest, token(8).sql(), "the target tells who overtook");
}

#[tokio::test]
async fn the_same_counter_without_a_gate_loses_updates() {
    let server = Server::start().unwrap();
    assert_eq!(paused_holder(&server, Gate::Without).await, (1, true));
}
