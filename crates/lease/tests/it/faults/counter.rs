//! The target of guarded writes: one row of a PostgreSQL that counts up, and its gate.
//!
//! Who adds reads first, so the read goes through the gate too: it raises the fence, and who
//! read before cannot write any more. With a gate at the write alone, two holders may read the same
//! number before either writes.

use serde::{Deserialize, Serialize};
use soldonce_lease::FencingToken;
use soldonce_testkit::postgres::Postgres;
use tokio::task::JoinSet;
use tokio_postgres::Client;

const MAKE: &str = "\
CREATE TABLE counter (name text PRIMARY KEY, value bigint NOT NULL DEFAULT 0,
    lease_token bigint NOT NULL DEFAULT 0)";

/// What stands between a stale write and the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Gate {
    /// Tokens are compared.
    On,
    /// Nothing.
    Off,
}

/// A session of a client of the target.
pub(super) struct Counter {
    client: Client,
    gate: Gate,
    _task: JoinSet<()>,
}

/// Makes the table, with a row for each of the names.
pub(super) fn make(target: &Postgres, names: &[&str]) {
    let rows = names
        .iter()
        .map(|name| format!("INSERT INTO counter (name) VALUES ('{name}')"));
    let rows: Vec<_> = std::iter::once(MAKE.to_owned()).chain(rows).collect();
    target.query(&rows.join("; ")).unwrap();
}

/// What the row has now, from any writer.
pub(super) fn value(target: &Postgres, name: &str) -> i64 {
    let sql = format!("SELECT value FROM counter WHERE name = '{name}'");
    target.query(&sql).unwrap().parse().unwrap()
}

impl Counter {
    pub(super) async fn connect(url: &str, gate: Gate) -> Self {
        let connected = tokio_postgres::connect(url, tokio_postgres::NoTls).await;
        let (client, connection) = connected.unwrap();
        let mut task = JoinSet::new();
        task.spawn(async move { connection.await.unwrap_or_default() });
        Self {
            client,
            gate,
            _task: task,
        }
    }

    /// The value; nothing if the token is stale.
    pub(super) async fn read(&self, name: &str, token: FencingToken) -> Option<i64> {
        self.update(name, token, None).await
    }

    /// Writes the value, and tells whether it is in.
    pub(super) async fn write(&self, name: &str, token: FencingToken, value: i64) -> bool {
        self.update(name, token, Some(value)).await.is_some()
    }

    /// The highest token that the gate has seen.
    pub(super) async fn highest(&self, name: &str) -> FencingToken {
        const HIGHEST: &str = "SELECT lease_token FROM counter WHERE name = $1";
        let row = self.client.query_one(HIGHEST, &[&name]).await.unwrap();
        let number: i64 = row.get(0);
        FencingToken::new(number.try_into().unwrap()).unwrap()
    }

    async fn update(&self, name: &str, token: FencingToken, value: Option<i64>) -> Option<i64> {
        const UNGATED: &str = "\
            UPDATE counter SET value = coalesce($2, value) WHERE name = $1 RETURNING value";
        const GATED: &str = "\
            UPDATE counter SET value = coalesce($2, value), lease_token = $3 \
            WHERE name = $1 AND lease_token <= $3 RETURNING value";
        if self.gate == Gate::Off {
            let row = self.client.query_one(UNGATED, &[&name, &value]).await;
            return Some(row.unwrap().get(0));
        }
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&name, &value, &token.sql()];
        let row = self.client.query_opt(GATED, &params).await.unwrap();
        row.map(|row| row.get(0))
    }
}
