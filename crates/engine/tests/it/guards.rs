//! What a file refuses by itself, as an operator with `sqlite3` in hand meets it. What the guards of a database
//! refuse is in `postgres/guards.rs`.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};
use soldonce_core::{Cause, StateKind};
use soldonce_engine::ledger::sqlite::SqliteOptions;
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_testkit::TempFolder;

use crate::ledgers::{TestLedger, busy, open_in};

const GUARDS: &str = include_str!("../../src/ledger/sqlite/guards.sql");

/// What a file of guards makes, by name.
pub(crate) fn names(guards: &'static str) -> BTreeSet<&'static str> {
    let name = |line: &'static str| {
        let rest = [
            "CREATE TRIGGER ",
            "CREATE CONSTRAINT TRIGGER ",
            "CREATE UNIQUE INDEX IF NOT EXISTS ",
            "ALTER TABLE audit ADD CONSTRAINT ",
        ]
        .iter()
        .find_map(|made| line.strip_prefix(made));
        rest?.split(' ').next()
    };
    guards.lines().filter_map(name).collect()
}

/// Every step from one kind of state to another for some cause, and whether the rules allow it.
pub(crate) fn steps() -> impl Iterator<Item = ((i64, i64, i64), bool)> {
    let kinds = || (0..).zip(StateKind::ALL);
    let pairs = kinds().flat_map(move |from| kinds().map(move |to| (from, to)));
    pairs.flat_map(|((from, was), (to, is))| {
        let causes = (0..).zip(Cause::ALL);
        causes.map(move |(n, cause)| ((from, to, n), cause.allows(was, is)))
    })
}

const LIVE: &str = "a unit of a live hold may only become free";
const UNSOLD: &str = "this unit is sold without a line";
const ITS_OWN: &str = "the unit of this line is sold to its booking";
const BACK: &str = "a unit would go back";

/// Writes, what is said of each, and the guards that refuse it, every one of them alone.
const FORBIDDEN: [(&str, &str, &[&str]); 35] = [
    // The four cases of a memory that is wrong at the right version: a live hold loses its unit,
    (
        "UPDATE units SET owner = zeroblob(16), fence = fence + 1, version = version + 1 WHERE unit_no = 5",
        LIVE,
        &["units_changed"],
    ),
    (
        "UPDATE units SET state = 3, owner = NULL, until = NULL, version = version + 1 WHERE unit_no = 5",
        LIVE,
        &["units_changed"],
    ),
    // a sold unit is held,
    (
        "UPDATE units SET state = 1, owner = zeroblob(16), until = 9000000000000, fence = fence + 1,
                version = version + 1 WHERE state = 2",
        "a sold unit may only become free",
        &["units_changed"],
    ),
    // a cancellation takes the wrong line,
    ("UPDATE lines SET state = 2 WHERE state = 1", ITS_OWN, &["lines_changed"]),
    ("DELETE FROM lines WHERE state = 1", ITS_OWN, &["lines_deleted"]),
    // and a unit is sold without a line.
    (
        "UPDATE units SET state = 2, owner = zeroblob(16), fence = fence + 1, version = version + 1
         WHERE unit_no = 3",
        UNSOLD,
        &["units_changed"],
    ),
    (
        "INSERT INTO units VALUES (0, 9, 2, zeroblob(16), NULL, 1, 1, 0)",
        UNSOLD,
        &["units_added"],
    ),
    // Sold twice.
    (
        "INSERT INTO lines SELECT zeroblob(16), n, event_no, unit_no, price, version, state, checksum
         FROM lines WHERE state = 1",
        "the unit of this line is sold",
        &["sold_unit_key", "lines_added"],
    ),
    (
        "INSERT OR REPLACE INTO lines SELECT zeroblob(16), n, event_no, unit_no, price, version, state, checksum
         FROM lines WHERE state = 1",
        "the unit of this line is sold",
        &["lines_added"],
    ),
    (
        "INSERT OR REPLACE INTO lines SELECT booking, n, event_no, unit_no, price, version, 2, checksum FROM lines",
        "this line exists",
        &["lines_added"],
    ),
    (
        "UPDATE OR REPLACE lines SET unit_no = 1 WHERE state = 1 AND unit_no = 0",
        "a line stays of its booking and unit",
        &["lines_changed"],
    ),
    (
        "UPDATE OR REPLACE lines SET state = 1 WHERE booking = x'07'",
        "the unit of this line is sold to another",
        &["lines_changed"],
    ),
    // A row that goes back, or away.
    (
        "UPDATE units SET fence = fence - 1, version = version + 1 WHERE unit_no = 5",
        BACK,
        &["units_changed"],
    ),
    ("UPDATE units SET until = until + 1 WHERE state = 1", BACK, &["units_changed"]),
    (
        "UPDATE units SET unit_no = 9, version = version + 1 WHERE unit_no = 5",
        "a unit stays the same unit",
        &["units_changed"],
    ),
    ("DELETE FROM units WHERE state = 2", "never deleted", &["units_deleted"]),
    (
        "INSERT OR REPLACE INTO units SELECT event_no, unit_no, 0, NULL, NULL, fence, version, checksum
         FROM units WHERE state = 2",
        "this unit has a row",
        &["units_added"],
    ),
    // History.
    ("UPDATE audit SET at = at - 1 WHERE seq = 1", "never changed", &["audit_changed"]),
    ("DELETE FROM audit WHERE seq = 1", "never deleted", &["audit_deleted"]),
    (
        "INSERT OR REPLACE INTO audit SELECT * FROM audit",
        "the audit grows at its end",
        &["audit_added"],
    ),
    (
        "INSERT INTO audit SELECT event_no, 99, n, at, unit_no, 2, to_owner, NULL, 1, to_owner, to_until, fence,
                version, cause, hold, actor, request, reason, hash FROM audit WHERE seq = 1",
        "no unit makes this step",
        &["audit_added"],
    ),
    // Rows that go without their event, an event that is in use, and one that comes back.
    ("DELETE FROM holds WHERE state = 3", "holds are never deleted", &["holds_deleted"]),
    ("UPDATE holds SET holder = 'eve' WHERE state = 0", "a hold stays of its holder", &["holds_changed"]),
    ("UPDATE holds SET state = 0 WHERE state = 3", "a hold stays of its holder", &["holds_changed"]),
    ("INSERT OR REPLACE INTO holds SELECT * FROM holds", "this hold exists", &["holds_added"]),
    ("DELETE FROM bookings", "bookings are never deleted", &["bookings_deleted"]),
    ("INSERT OR REPLACE INTO bookings SELECT * FROM bookings", "this booking exists", &["bookings_added"]),
    ("UPDATE OR REPLACE bookings SET id = zeroblob(16)", "a booking keeps its id", &["bookings_changed"]),
    ("DELETE FROM events", "events are never deleted", &["events_deleted"]),
    ("INSERT OR REPLACE INTO events SELECT * FROM events", "this event exists", &["events_added"]),
    (
        "INSERT OR REPLACE INTO events SELECT event_no + 8, id, name, starts_at, currency, chart_no, prices, policy,
                cancelled, created_at, fingerprint, checksum, changed_at FROM events",
        "this event exists",
        &["events_added"],
    ),
    ("UPDATE OR REPLACE events SET event_no = 7", "an event keeps its number and id", &["events_changed"]),
    (
        "INSERT INTO dropped_events (event_no, at, request, seq, hash, checksum) VALUES (0, 0, '', 0, x'', 0)",
        "a unit of this event is held",
        &["dropped_events_added"],
    ),
    ("UPDATE dropped_events SET event_no = 8", "a dropped event stays dropped", &["dropped_events_changed"]),
    ("DELETE FROM dropped_events", "a dropped event stays dropped", &["dropped_events_deleted"]),
];

/// An event that was dropped.
const TOMBSTONE: &str = "INSERT INTO dropped_events (event_no, at, request, seq, hash, checksum) VALUES (7, 0, '', 0, x'', 0)";

/// A cancelled line of a seat that another buyer has bought: it may not become sold.
const OTHER_LINE: &str =
    "INSERT INTO lines SELECT x'07', n, event_no, unit_no, price, version, 2, checksum
                          FROM lines WHERE state = 1";

/// A file with held, sold, free and untouched units, and no writer at work on it.
async fn closed() -> (TestLedger, std::path::PathBuf) {
    let test = TestLedger::sqlite();
    busy(&test).await;
    test.ledger.close().await;
    let file = test.folder.as_ref().map(TempFolder::path).unwrap();
    let file = file.join("ledger.sqlite");
    (test, file)
}

/// How one is taken away.
fn drop_guard(name: &str) -> String {
    let kind = if name == "sold_unit_key" {
        "INDEX"
    } else {
        "TRIGGER"
    };
    format!("DROP {kind} {name}")
}

fn drop_guards<'a>(enemy: &Connection, guards: impl Iterator<Item = &'a &'a str>) {
    for name in guards {
        enemy.execute_batch(&drop_guard(name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_guard_of_a_file_refuses_alone_and_nothing_else_does() {
    let (_test, file) = closed().await;
    let mut enemy = Connection::open(file).unwrap();
    enemy.execute(OTHER_LINE, []).unwrap();
    enemy.pragma_update(None, "foreign_keys", false).unwrap();
    enemy.execute(TOMBSTONE, []).unwrap();
    for (write, said, guards) in FORBIDDEN {
        for kept in guards {
            let transaction = enemy.transaction().unwrap();
            drop_guards(&transaction, guards.iter().filter(|name| *name != kept));
            let refused = transaction.execute(write, []).expect_err(write).to_string();
            let said = match *kept {
                "sold_unit_key" => "UNIQUE constraint failed: lines.event_no, lines.unit_no",
                _ => said,
            };
            assert!(refused.contains(said), "{write}: {refused}");
        }
        // The same write passes where they are gone: nothing else would have refused it.
        let transaction = enemy.transaction().unwrap();
        drop_guards(&transaction, guards.iter());
        assert!(transaction.execute(write, []).expect(write) > 0, "{write}");
    }
    let tried = FORBIDDEN.iter().flat_map(|(_, _, guards)| *guards).copied();
    assert_eq!(
        tried.collect::<BTreeSet<_>>(),
        names(GUARDS),
        "every guard is tried"
    );
}

/// Not even to a booking of the hold's own id.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_a_live_hold_is_not_sold_under_its_id() {
    let (_test, file) = closed().await;
    let enemy = Connection::open(file).unwrap();
    enemy.pragma_update(None, "foreign_keys", false).unwrap();
    enemy
        .execute(
            "INSERT INTO lines SELECT owner, unit_no, event_no, unit_no, 0, version, 1, 0 FROM units WHERE state = 1",
            [],
        )
        .unwrap();
    let sold = "UPDATE units SET state = 2, until = NULL, version = version + 1 WHERE state = 1";
    let refused = enemy.execute(sold, []).unwrap_err().to_string();
    assert!(refused.contains(LIVE), "{refused}");
}

/// Not even when the end of the audit, which is another table's row, was taken away.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_the_audit_is_never_overwritten() {
    let (_test, file) = closed().await;
    let enemy = Connection::open(file).unwrap();
    enemy.execute("DELETE FROM chains", []).unwrap();
    let again = "INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE seq = 1";
    let refused = enemy.execute(again, []).unwrap_err().to_string();
    assert!(refused.contains("the audit grows at its end"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_one_of_its_guards_is_not_served() {
    let (test, file) = closed().await;
    let sound = std::fs::read(&file).unwrap();
    let other_form =
        "DROP INDEX sold_unit_key; CREATE INDEX sold_unit_key ON lines (event_no, unit_no)";
    let other_check = "PRAGMA writable_schema = on; UPDATE sqlite_schema SET sql = \
                       replace(sql, 'BETWEEN 0 AND 3', 'BETWEEN 0 AND 9') WHERE name = 'units'";
    let mut holes = vec![
        ("sold_unit_key", other_form.to_owned()),
        ("units", other_check.to_owned()),
    ];
    holes.extend(
        names(GUARDS)
            .into_iter()
            .map(|name| (name, drop_guard(name))),
    );
    for (name, hole) in holes {
        std::fs::write(&file, &sound).unwrap();
        assert!(
            verify(file.parent().unwrap(), &mut |_| {})
                .unwrap()
                .is_clean()
        );
        Connection::open(&file)
            .unwrap()
            .execute_batch(&hole)
            .unwrap();
        let found = verify(file.parent().unwrap(), &mut |_| {})
            .unwrap()
            .findings;
        let mut guards = found.iter().filter(|finding| finding.what == "guards");
        assert!(
            guards.any(|finding| finding.detail.contains(name)),
            "{name}: {found:?}"
        );
        let options = SqliteOptions::new(file.parent().unwrap());
        let refused = open_in(&options, &test.clock, &test.recorder)
            .err()
            .unwrap();
        assert!(
            refused.to_string().contains("refuses less"),
            "{name}: {refused}"
        );
    }
    std::fs::write(&file, &sound).unwrap();
}

/// As the schema before the guards had it.
fn set_back(file: &Path) {
    let old = Connection::open(file).unwrap();
    let triggers = names(GUARDS);
    drop_guards(
        &old,
        triggers.iter().filter(|name| **name != "sold_unit_key"),
    );
    old.execute_batch(
        "DROP TABLE dropped_events; DROP INDEX outbox_done; DROP INDEX kept_replies_of_booking;
         ALTER TABLE events DROP COLUMN changed_at;
         DELETE FROM migrations WHERE version > 7; PRAGMA user_version = 7",
    )
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_the_schema_before_gets_its_guards() {
    let (test, file) = closed().await;
    set_back(&file);
    let options = SqliteOptions::new(file.parent().unwrap());
    drop(open_in(&options, &test.clock, &test.recorder).unwrap());
    assert!(
        verify(file.parent().unwrap(), &mut |_| {})
            .unwrap()
            .is_clean()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_and_the_rules_name_the_same_steps() {
    let (_test, file) = closed().await;
    let mut file = Connection::open(file).unwrap();
    let file = file.transaction().unwrap();
    let step = "INSERT INTO audit SELECT 0, ?4, 0, 1, 0, f, CASE WHEN f IN (1, 2) THEN x'01' END, NULL, t,
                       CASE WHEN t IN (1, 2) THEN x'01' END, NULL, 1, 1, c, CASE WHEN 1 IN (f, t) THEN x'01' END,
                       NULL, '', NULL, x'01' FROM (SELECT ?1 AS f, ?2 AS t, ?3 AS c)";
    for (seq, ((from, to, cause), is_legal)) in (1_000_i64..).zip(steps()) {
        let made = file.execute(step, params![from, to, cause, seq]);
        assert_eq!(
            made.is_ok(),
            is_legal,
            "{from} > {to} for {cause}: {made:?}"
        );
    }
    // A unit that stays in its state stays its owner's, and moves in its owner's name.
    for (owner, hold) in [("02", "01"), ("01", "02")] {
        let taken = format!(
            "INSERT INTO audit VALUES (0, 9000, 0, 1, 0, 1, x'01', 1, 1, x'{owner}', 1, 1, 1, 1, x'{hold}', NULL, \
             '', NULL, x'01')"
        );
        assert!(file.execute(&taken, []).is_err(), "{taken}");
    }
}

/// A connection for which no trigger fires, as for a bit that flips.
pub(crate) fn unguarded(file: &Path) -> Connection {
    let file = Connection::open(file).unwrap();
    let off = file.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false);
    assert!(!off.unwrap());
    file
}
