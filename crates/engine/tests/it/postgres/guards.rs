//! What the database refuses by itself, as an operator with `psql` in hand meets it.

use std::collections::BTreeSet;

use soldonce_engine::ledger::postgres::{migrate, migration};
use soldonce_testkit::postgres;

use super::Servers;
use crate::guards::{names, steps};
use crate::ledgers::{TestLedger, booked, busy, confirm};

const GUARDS: &str = include_str!("../../../src/ledger/postgres/guards.sql");

/// Writes, and the guards that refuse each, every one of them alone; those that tie two tables at COMMIT.
const FORBIDDEN: [(&str, &[&str]); 32] = [
    // The four cases of a memory that is wrong at the right version: a live hold loses its unit,
    (
        "UPDATE units SET owner = '\\x00', fence = fence + 1, version = version + 1 WHERE unit_no = 5",
        &["units_owner"],
    ),
    (
        "UPDATE units SET state = 3, owner = NULL, until = NULL, version = version + 1 WHERE unit_no = 5",
        &["units_owner"],
    ),
    // a sold unit is held,
    (
        "UPDATE units SET state = 1, owner = '\\x00', until = 9000000000000, fence = fence + 1, \
         version = version + 1 WHERE state = 2",
        &["units_sold_only_free", "units_owner"],
    ),
    // a cancellation takes the wrong line, or frees a unit of another,
    (
        "UPDATE lines SET state = 2 WHERE state = 1",
        &["lines_sold_stay"],
    ),
    ("DELETE FROM lines WHERE state = 1", &["lines_sold_stay"]),
    (
        "UPDATE units SET state = 0, owner = NULL, fence = fence + 1, version = version + 1 WHERE state = 2",
        &["units_owner"],
    ),
    // and a unit is sold without a line.
    (
        "UPDATE units SET state = 2, owner = '\\x00', fence = fence + 1, version = version + 1 WHERE unit_no = 3",
        &["units_owner"],
    ),
    (
        "INSERT INTO units VALUES (0, 99, 2, '\\x00', NULL, 1, 1, 0)",
        &["units_begin_free"],
    ),
    // Sold twice.
    (
        "INSERT INTO lines SELECT booking, n + 9, event_no, unit_no, price, version, state FROM lines \
         WHERE state = 1",
        &["sold_unit_key"],
    ),
    // A row that goes back, or away.
    (
        "UPDATE units SET fence = fence - 1, version = version + 1 WHERE unit_no = 5",
        &["units_only_rise"],
    ),
    (
        "UPDATE units SET until = until + 1 WHERE state = 1",
        &["units_only_rise"],
    ),
    (
        "UPDATE units SET version = version + 1, token = token - 1 WHERE unit_no = 5",
        &["units_only_rise"],
    ),
    (
        "UPDATE units SET unit_no = 99, version = version + 1 WHERE unit_no = 5",
        &["units_only_rise"],
    ),
    ("DELETE FROM units WHERE state = 2", &["units_stay"]),
    ("TRUNCATE units", &["units_are_kept"]),
    ("TRUNCATE lines", &["lines_are_kept"]),
    // History.
    ("UPDATE audit SET at = at - 1", &["audit_only_grows"]),
    ("DELETE FROM audit", &["audit_stays"]),
    ("TRUNCATE audit", &["audit_is_kept"]),
    (
        "INSERT INTO audit SELECT event_no, unit_no, 99, batch, command, n, at, 2, to_owner, NULL, 1, to_owner, \
         to_until, fence, cause, hold, actor, request, reason FROM audit WHERE to_state = 1 LIMIT 1",
        &["audit_step"],
    ),
    // Rows that go without their event, an event that is in use, and one that comes back.
    ("DELETE FROM holds WHERE state = 3", &["holds_stay"]),
    (
        "WITH gone AS (DELETE FROM lines WHERE state = 1 RETURNING booking) \
         DELETE FROM bookings WHERE id IN (SELECT booking FROM gone)",
        &["bookings_stay", "lines_sold_stay"],
    ),
    (
        "INSERT INTO dropped_events (event_no, n, at, request, seq, hash) VALUES (0, 9, 0, '', 0, '')",
        &["dropped_events_begin"],
    ),
    ("TRUNCATE holds", &["holds_are_kept"]),
    (
        "TRUNCATE bookings CASCADE",
        &["bookings_are_kept", "lines_are_kept"],
    ),
    (
        "UPDATE holds SET holder = 'eve' WHERE state = 0",
        &["holds_keep_holder"],
    ),
    (
        "UPDATE holds SET state = 0 WHERE state = 3",
        &["holds_keep_holder"],
    ),
    (
        "ALTER TABLE dropped_events DROP CONSTRAINT dropped_events_event_no_fkey, DISABLE TRIGGER dropped_events_begin; \
         INSERT INTO dropped_events (event_no, n, at, request, seq, hash) VALUES (0, 9, 0, '', 0, ''); \
         UPDATE dropped_events SET event_no = 1",
        &["dropped_events_keep_number"],
    ),
    ("DELETE FROM clock", &["clock_stays"]),
    ("TRUNCATE clock", &["clock_stays"]),
    ("DELETE FROM dropped_events", &["dropped_events_stay"]),
    ("TRUNCATE dropped_events", &["dropped_events_stay"]),
];

/// How one is taken away.
fn drop_guard(name: &str) -> String {
    let table = match name {
        _ if name.starts_with("dropped_events") => "dropped_events",
        _ => name.split('_').next().unwrap(),
    };
    match name {
        "sold_unit_key" => "DROP INDEX sold_unit_key;".to_owned(),
        "audit_step" => "ALTER TABLE audit DROP CONSTRAINT audit_step;".to_owned(),
        _ => format!("DROP TRIGGER {name} ON {table};"),
    }
}

/// Takes these away, writes, and undoes both; the last condition is that of COMMIT.
fn tried(without: &[&str], write: &str) -> String {
    let dropped: String = without.iter().map(|name| drop_guard(name)).collect();
    format!("BEGIN; {dropped} {write}; SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_guard_of_a_database_refuses_alone_and_nothing_else_does() {
    let test = TestLedger::postgres().await;
    busy(&test).await;
    let (_, options) = test.postgres.as_ref().unwrap();
    let url = &options.url;
    for (write, guards) in FORBIDDEN {
        for kept in guards {
            let others: Vec<&str> = guards
                .iter()
                .filter(|name| *name != kept)
                .copied()
                .collect();
            let refused = postgres::query(url, &tried(&others, write)).expect_err(write);
            assert!(
                format!("{refused:#}").contains(kept),
                "{write}: {refused:#}"
            );
        }
        postgres::query(url, &tried(guards, write)).expect(write);
    }
    let covered = FORBIDDEN.iter().flat_map(|(_, guards)| *guards).copied();
    assert_eq!(
        covered.collect::<BTreeSet<_>>(),
        names(GUARDS),
        "every guard is tried"
    );
}

/// Every one is looked for at start and by `verify`, and `migrate` makes them anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_lacks_no_guard_unnoticed() {
    let servers = Servers::start(1).await;
    let guards = vec!["guards".to_owned()];
    servers.event(|_| {}).await;
    for name in names(GUARDS) {
        servers.database.query(&drop_guard(name)).unwrap();
        let opened = servers.open_one().await;
        let refused = opened.err().unwrap().to_string();
        assert!(refused.contains(name), "{name}: {refused}");
        let dry = migration(&servers.options).await.unwrap();
        let done = migrate(&servers.options).await.unwrap();
        assert_eq!((dry.steps, done.steps), (guards.clone(), guards.clone()));
        drop(servers.open_one().await.unwrap());
    }
    let dry = migration(&servers.options).await.unwrap();
    assert!(dry.steps.is_empty(), "{dry:?}");
}

/// Guards of another form under the right name, and what undoes those that `migrate` does not make anew.
const OTHER_FORMS: [(&str, &str, &str); 9] = [
    (
        "units_owner",
        "CREATE OR REPLACE FUNCTION require_owner() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
        "",
    ),
    (
        "lines_sold_stay",
        "ALTER FUNCTION require_no_sold_unit() RESET search_path",
        "",
    ),
    (
        "units_only_rise",
        "DROP TRIGGER units_only_rise ON units; CREATE TRIGGER units_only_rise BEFORE UPDATE ON units \
         FOR EACH ROW WHEN (false) EXECUTE FUNCTION refuse_write('a unit would go back')",
        "",
    ),
    (
        "units_stay",
        "ALTER TABLE units DISABLE TRIGGER units_stay; CREATE TRIGGER units_stay BEFORE DELETE ON feed \
         FOR EACH ROW EXECUTE FUNCTION refuse_write('units are never deleted')",
        "DROP TRIGGER units_stay ON feed",
    ),
    (
        "sold_unit_key",
        "DROP INDEX sold_unit_key; CREATE UNIQUE INDEX sold_unit_key ON lines (booking, n, unit_no) WHERE state = 1",
        "DROP INDEX sold_unit_key",
    ),
    (
        "sold_unit_key",
        "DROP INDEX sold_unit_key; CREATE UNIQUE INDEX sold_unit_key ON lines (event_no, unit_no) WHERE state = 9",
        "DROP INDEX sold_unit_key",
    ),
    (
        "sold_unit_key",
        "DROP INDEX sold_unit_key; CREATE UNIQUE INDEX sold_unit_key ON lines (event_no, unit_no, \
         (encode(booking, 'hex'))) WHERE state = 1",
        "DROP INDEX sold_unit_key",
    ),
    (
        "lock_read_set_12",
        "DO $$ BEGIN EXECUTE replace(pg_get_functiondef('lock_read_set_12'::regproc), 'FOR UPDATE', 'FOR  SHARE'); \
         END $$",
        "DO $$ BEGIN EXECUTE replace(pg_get_functiondef('lock_read_set_12'::regproc), 'FOR  SHARE', 'FOR UPDATE'); \
         END $$",
    ),
    (
        "session_replication_role",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET session_replication_role = replica', current_database()); \
         END $$",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET session_replication_role', current_database()); END $$",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_of_another_form_is_none() {
    let servers = Servers::start(1).await;
    servers.event(|_| {}).await;
    for (name, hole, undo) in OTHER_FORMS {
        servers.database.query(hole).unwrap();
        let refused = servers.open_one().await.err().unwrap().to_string();
        assert!(refused.contains(name), "{hole}: {refused}");
        if !undo.is_empty() && !hole.contains("feed") {
            let refused = migrate(&servers.options).await.unwrap_err().to_string();
            assert!(refused.contains(name), "{hole}: {refused}");
        }
        if !undo.is_empty() {
            servers.database.query(undo).unwrap();
        }
        migrate(&servers.options).await.unwrap();
        drop(servers.open_one().await.unwrap());
    }
}

/// Temporary tables come before those of the ledger in the search path of the session that makes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_tables_hide_nothing_from_the_guards() {
    let test = TestLedger::postgres().await;
    busy(&test).await;
    let (_, options) = test.postgres.as_ref().unwrap();
    let sold_again = "CREATE TEMP TABLE lines (booking bytea, event_no int, unit_no int, state int); \
        INSERT INTO lines SELECT '\\x00', event_no, unit_no, 1 FROM units WHERE state = 2; \
        UPDATE units SET state = 0, owner = NULL, version = version + 1 WHERE state = 2";
    let line_gone = "CREATE TEMP TABLE units (event_no int, unit_no int, state int, owner bytea); \
        UPDATE lines SET state = 2 WHERE state = 1";
    for (write, guard) in [(sold_again, "units_owner"), (line_gone, "lines_sold_stay")] {
        let refused = postgres::query(&options.url, write).expect_err(write);
        assert!(
            format!("{refused:#}").contains(guard),
            "{write}: {refused:#}"
        );
    }
}

/// The triggers, keys and checks of a database that the migrations made are those that are looked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_check_and_trigger_of_the_tables_is_looked_for() {
    let servers = Servers::start(1).await;
    let all = "SELECT conname FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
               WHERE relname IN ('units', 'lines', 'audit', 'holds', 'bookings') AND contype IN ('c', 'p', 'u') \
               UNION SELECT tgname FROM pg_trigger WHERE NOT tgisinternal \
               UNION SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid \
               JOIN pg_class c ON c.oid = x.indrelid WHERE c.relname = 'lines' AND indisunique";
    let all = servers.database.query(all).unwrap();
    let source = include_str!("../../../src/ledger/postgres/guards.rs");
    for name in all.lines() {
        let is_key_or_check = source.contains(&format!("'{name}'"));
        assert!(is_key_or_check || names(GUARDS).contains(name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_and_the_rules_name_the_same_steps() {
    let servers = Servers::start(1).await;
    let check =
        "SELECT pg_get_expr(conbin, conrelid) FROM pg_constraint WHERE conname = 'audit_step'";
    let check = servers.database.query(check).unwrap();
    let legal = format!(
        "SELECT from_state || ' ' || to_state || ' ' || cause FROM (SELECT f AS from_state, t AS to_state, \
         c AS cause, CASE WHEN f IN (1, 2) THEN '\\x01'::bytea END AS from_owner, \
         CASE WHEN t IN (1, 2) THEN '\\x01'::bytea END AS to_owner, \
         CASE WHEN 1 IN (f, t) THEN '\\x01'::bytea END AS hold \
         FROM generate_series(0, 3) f, generate_series(0, 3) t, generate_series(0, 14) c) AS audit WHERE {check}"
    );
    let legal = servers.database.query(&legal).unwrap();
    let legal: BTreeSet<String> = legal.lines().map(str::to_owned).collect();
    let ours = steps().filter(|(_, is_legal)| *is_legal);
    let ours = ours.map(|((from, to, cause), _)| format!("{from} {to} {cause}"));
    assert_eq!(legal, ours.collect());
}

/// The words of the database when it refuses this.
fn refusal(servers: &Servers, sql: &str) -> String {
    let refused = postgres::query(&servers.database.url(), sql);
    format!("{:#}", refused.expect_err(sql))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_never_goes_back() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    for sql in [
        "UPDATE units SET fence = 0, version = version + 1 WHERE unit_no = 0",
        "UPDATE units SET state = 0, owner = NULL, until = NULL WHERE unit_no = 0",
        "UPDATE units SET version = version + 1, token = -1 WHERE unit_no = 0",
    ] {
        let said = refusal(&servers, sql);
        assert!(said.contains("would go back"), "{sql}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_is_sold_once_and_its_history_stays() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    booked(servers.ask(0, confirm(&hold, 9)).await).unwrap();
    let again = "INSERT INTO lines SELECT booking, n + 1, event_no, unit_no, price, version, state \
                 FROM lines";
    assert!(refusal(&servers, again).contains("sold_unit_key"));
    let twice = "INSERT INTO audit SELECT * FROM audit LIMIT 1";
    assert!(refusal(&servers, twice).contains("audit_pkey"));
    for sql in ["UPDATE audit SET at = 0", "DELETE FROM audit"] {
        assert!(refusal(&servers, sql).contains("audit_"), "{sql}");
    }
}
