//! The gate of the lease library before a real SQLite file: a holder that was paused past the end
//! of its lease cannot write any more, and without the gate it could (`lease.md` 4.4 and 11.4).

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use soldonce_lease::FencingToken;
use soldonce_lease::gate::{Admit, Embedded, FENCE_ADMIT, FENCE_HIGHEST, FENCE_TABLE, FenceStore};

const TABLES: &str = "\
CREATE TABLE counter (id integer PRIMARY KEY, value integer NOT NULL,
    lease_token bigint NOT NULL DEFAULT 0);
INSERT INTO counter (id, value) VALUES (1, 0);";

fn database() -> Connection {
    let database = Connection::open_in_memory().unwrap();
    database.execute_batch(TABLES).unwrap();
    database.execute_batch(FENCE_TABLE).unwrap();
    database
}

fn token(counter: u32) -> FencingToken {
    FencingToken::from_parts(3, counter).unwrap()
}

fn value(database: &Connection) -> i64 {
    let sql = "SELECT value FROM counter WHERE id = 1";
    database.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A way to write `value` with a token; tells whether it was written.
type Write = fn(&mut Connection, FencingToken, i64) -> bool;

/// Two holders read the counter, the first is paused, the second adds ten times, then the first
/// adds to what it read before. How many of the eleven additions are left in the end?
fn paused_holder(write: Write) -> (i64, bool) {
    let mut database = database();
    let read_before_the_pause = value(&database);
    for _ in 0..10 {
        let next = value(&database) + 1;
        assert!(write(&mut database, token(8), next), "the true holder");
    }
    let stale_written = write(&mut database, token(7), read_before_the_pause + 1);
    (value(&database), stale_written)
}

fn without_gate(database: &mut Connection, _: FencingToken, next: i64) -> bool {
    let sql = "UPDATE counter SET value = ?1 WHERE id = 1";
    database.execute(sql, [next]).unwrap() == 1
}

fn with_columns(database: &mut Connection, token: FencingToken, next: i64) -> bool {
    let sql = "UPDATE counter SET value = ?1, lease_token = ?2 WHERE id = 1 AND lease_token <= ?2";
    database.execute(sql, (next, token.sql())).unwrap() == 1
}

fn with_fence_table(database: &mut Connection, token: FencingToken, next: i64) -> bool {
    let tx = database.transaction().unwrap();
    let admitted = tx
        .query_row(FENCE_ADMIT, ("counter", token.sql()), |row| {
            row.get::<_, i64>(0)
        })
        .optional()
        .unwrap();
    if admitted.is_none() {
        return false;
    }
    tx.execute("UPDATE counter SET value = ?1 WHERE id = 1", [next])
        .unwrap();
    tx.commit().unwrap();
    true
}

/// The two statements of the fence table, as an embedded store.
struct Sqlite;

impl FenceStore for Sqlite {
    type Tx<'a> = Transaction<'a>;
    type Error = rusqlite::Error;

    fn highest(
        &self,
        tx: &mut Transaction<'_>,
        resource: &str,
    ) -> rusqlite::Result<Option<FencingToken>> {
        let bound = |row: &rusqlite::Row<'_>| {
            let number: i64 = row.get(0)?;
            Ok(number.try_into().ok().and_then(FencingToken::new))
        };
        let row = tx.query_row(FENCE_HIGHEST, [resource], bound).optional()?;
        Ok(row.flatten())
    }

    fn keep(
        &self,
        tx: &mut Transaction<'_>,
        resource: &str,
        token: FencingToken,
    ) -> rusqlite::Result<()> {
        let written = tx.query_row(FENCE_ADMIT, (resource, token.sql()), |_| Ok(()));
        written.optional().map(|_| ())
    }
}

fn with_embedded(database: &mut Connection, token: FencingToken, next: i64) -> bool {
    let behavior = TransactionBehavior::Immediate;
    let mut tx = database.transaction_with_behavior(behavior).unwrap();
    let gate = Embedded::new(Sqlite);
    if gate.admit(&mut tx, "counter", token).unwrap() != Admit::Ok {
        return false;
    }
    tx.execute("UPDATE counter SET value = ?1 WHERE id = 1", [next])
        .unwrap();
    tx.commit().unwrap();
    true
}

#[test]
fn stale_token_is_refused_at_the_target() {
    for write in [with_columns as Write, with_fence_table, with_embedded] {
        assert_eq!(paused_holder(write), (10, false), "10 written, 1 refused");
    }
}

#[test]
fn the_same_counter_without_a_gate_loses_updates() {
    assert_eq!(paused_holder(without_gate), (1, true), "the gate has teeth");
}

#[test]
fn the_target_tells_who_overtook() {
    let mut database = database();
    assert!(with_fence_table(&mut database, token(8), 1));
    let tx = &mut database.transaction().unwrap();
    let stale = Embedded::new(Sqlite).admit(tx, "counter", token(7));
    let current = token(8);
    assert_eq!(stale.unwrap(), Admit::Stale { current });
}
