//! `verify` of a database finds every kind of damage, finds nothing where there is none, and
//! delays no command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use soldonce_core::{
    Change, Command, Event, GivenLines, LineChoice, PaymentReport, PaymentState, Policy,
    PolicyChange, Selection, Text, TtlMax, Wish,
};
use soldonce_engine::ledger::Done;
use soldonce_engine::ledger::postgres::{PostgresOptions, unit_history, verify};
use soldonce_engine::ledger::verify::VerifyReport;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, postgres, until};
use tokio::task::JoinSet;

use super::load;
use crate::ledgers::{TestLedger, booked, busy, euro, held, key, on, select};
use crate::postgres::Servers;

async fn report(options: &PostgresOptions) -> VerifyReport {
    verify(options, &mut |_| {}).await.unwrap()
}

/// [`busy`], and what it leaves out.
async fn very_busy(test: &TestLedger) {
    let (event, booking, kept) = busy(test).await;
    test.advance_ms(1_000);
    let extend = Command::Extend {
        on: on(&kept),
        ttl: None,
        ttl_max: TtlMax::HoldMax,
    };
    let kept = held(test.ask(extend).await).unwrap();
    let change = Change {
        on: on(&kept),
        add: select(&event, &["B-2"], &[]),
        drop: vec![event.chart.find_unit("B-1").unwrap()],
        drop_places: Selection::default(),
    };
    held(test.ask(Command::Change(Box::new(change))).await).unwrap();
    let cancel = Command::Cancel {
        booking: booking.id,
        by: soldonce_core::Authority::Staff,
        lines: LineChoice::Some {
            units: vec![booking.lines[0].unit],
            places: Selection::default(),
        },
    };
    booked(test.ask_as(cancel, key(2, 2)).await).unwrap();
    let block = Command::Block {
        event: event.no,
        selection: select(&event, &["B-5"], &[]),
        reason: Text::parse("camera").unwrap(),
    };
    assert!(matches!(test.ask(block).await, Ok(Done::Fresh { .. })));
    let over = test.hold(&event, "fay", &["B-3"]).await.unwrap();
    test.advance_ms(600_000);
    let taken = test.hold(&event, "gus", &["B-3"]).await.unwrap();
    assert!(taken.fence > over.fence);
    exchanged(test, &event).await;
    let policy = Command::UpdateEvent {
        event: event.no,
        change: Box::new(PolicyChange::from(&Policy::default()).into()),
    };
    test.ask(policy).await.unwrap();
}

/// A place was given for two, and the second one paid.
async fn exchanged(test: &TestLedger, event: &Event) {
    let mut exchange = None;
    for places in 1..=2 {
        let wish = Wish::Named(select(event, &[], &[("floor", places)]));
        let hold = held(test.ask(test.wish_command(event, "hal", wish)).await).unwrap();
        let checkout = Command::Checkout {
            on: on(&hold),
            booking: test.booking_id(),
            reference: None,
            exchange: exchange.take(),
        };
        let begun = booked(test.ask(checkout).await).unwrap();
        let report = PaymentReport::whole(&begun, euro(), PaymentState::Captured);
        let sold = booked(test.ask(Command::Payment(Box::new(report))).await).unwrap();
        exchange = Some(GivenLines {
            booking: sold.id,
            units: sold.lines.iter().map(|line| line.unit).collect(),
        });
    }
}

/// Statements that damage one value each, with the guards out of the way, and what is said of it.
const DAMAGES: [(&str, &str); 47] = [
    (
        "UPDATE bookings SET payment_detail = replace(payment_detail, '\"carried\":4500', '\"carried\":1')",
        "I17",
    ),
    ("UPDATE units SET fence = fence + 8 WHERE unit_no = 0", "I3"),
    (
        "UPDATE units SET state = 0, owner = NULL WHERE unit_no = 1",
        "I3",
    ),
    (
        "UPDATE units SET until = until + 4096 WHERE state = 1",
        "I3",
    ),
    (
        "UPDATE units SET version = version + 1 WHERE unit_no = 1",
        "I3",
    ),
    (
        "UPDATE units SET state = 3 WHERE version = 0 AND unit_no = 8",
        "I3",
    ),
    ("DELETE FROM units WHERE unit_no = 0", "I3"),
    ("DELETE FROM units WHERE version = 0 AND unit_no = 8", "I3"),
    ("UPDATE units SET event_no = 7 WHERE unit_no = 3", "stray"),
    (
        "UPDATE holds SET expires_at = expires_at + 4096 WHERE state = 0",
        "I3",
    ),
    ("UPDATE holds SET units = '\\x050001' WHERE state = 0", "I3"),
    ("UPDATE holds SET state = 4 WHERE state = 0", "I20"),
    ("UPDATE holds SET state = 4 WHERE state = 3", "I20"),
    ("UPDATE holds SET fence = fence + 1 WHERE state = 3", "I20"),
    ("UPDATE holds SET event_no = 7 WHERE state = 0", "stray"),
    ("DELETE FROM holds WHERE state = 0", "I20"),
    ("DELETE FROM holds WHERE state = 2", "I20"),
    (
        "INSERT INTO holds SELECT '\\x00', event_no, caller, holder, 3, NULL, reason, fence, units, \
      created_at, expires_at, max_expires_at, together FROM holds LIMIT 1",
        "stray",
    ),
    (
        "UPDATE bookings SET caller = sha256(id) WHERE state = 2",
        "damaged",
    ),
    ("UPDATE bookings SET holder = 'joe' WHERE state = 2", "I9"),
    ("UPDATE bookings SET state = 3 WHERE state = 2", "I3"),
    (
        "UPDATE bookings SET version = version + 1 WHERE state = 2",
        "I20",
    ),
    ("DELETE FROM bookings WHERE state = 2", "I20"),
    ("UPDATE lines SET state = 2 WHERE state = 1", "I3"),
    ("UPDATE lines SET unit_no = 9 WHERE unit_no = 1", "I1"),
    ("UPDATE lines SET event_no = 7 WHERE state = 1", "stray"),
    ("DELETE FROM lines WHERE state = 1", "I3"),
    (
        "UPDATE holders SET bought = bought + 1 WHERE holder = 'ann'",
        "I9",
    ),
    (
        "UPDATE holders SET version = version + 1 WHERE holder = 'ann'",
        "I9",
    ),
    ("DELETE FROM holders WHERE holder = 'ann'", "I9"),
    (
        "UPDATE audit SET actor = NULL WHERE unit_no = 0 AND version = 1",
        "I20",
    ),
    (
        "UPDATE audit SET at = at - 1 WHERE unit_no = 0 AND version = 2",
        "I20",
    ),
    (
        "UPDATE audit SET request = 'req-2' WHERE unit_no = 2",
        "I20",
    ),
    (
        "UPDATE audit SET batch = '\\x00' WHERE unit_no = 2 AND version = 1",
        "I20",
    ),
    ("DELETE FROM audit WHERE unit_no = 0 AND version = 1", "I20"),
    (
        "INSERT INTO audit SELECT event_no, 8, 1, batch, 9, 9, at, 0, NULL, NULL, 3, NULL, NULL, 0, \
      12, NULL, actor, request, reason FROM audit LIMIT 1",
        "I20",
    ),
    (
        "UPDATE batches SET units = '{}', versions = '{}' WHERE commands > 0",
        "I20",
    ),
    (
        "UPDATE batches SET commands = commands + 1 WHERE commands > 0",
        "I20",
    ),
    (
        "DELETE FROM batches WHERE place = (SELECT min(place) FROM batches)",
        "I20",
    ),
    ("UPDATE feed SET hash = sha256(hash) WHERE n = 3", "I20"),
    (
        "UPDATE feed SET first_seq = first_seq + 100 WHERE n = 4",
        "I20",
    ),
    ("DELETE FROM feed WHERE n = 2", "I20"),
    ("UPDATE feed_heads SET hash = sha256(hash)", "I20"),
    ("UPDATE sequencer SET n = n + 1", "I20"),
    ("UPDATE events SET version = version + 1", "I20"),
    (
        "UPDATE idempotency SET subject = sha256(subject)",
        "damaged",
    ),
    ("UPDATE charts SET digest = sha256(digest)", "damaged"),
];

/// Guards that are gone, and how they come back; the first one went with [`KEEP`].
const HOLES: [(&str, &str); 4] = [
    (
        "ALTER TABLE units DROP CONSTRAINT IF EXISTS units_check",
        "ALTER TABLE units ADD CONSTRAINT units_check CHECK \
         ((owner IS NOT NULL) = (state IN (1, 2)) AND (until IS NOT NULL) = (state = 1))",
    ),
    (
        "DROP INDEX sold_unit_key",
        "CREATE UNIQUE INDEX sold_unit_key ON lines (event_no, unit_no) WHERE state = 1",
    ),
    (
        "ALTER TABLE units DISABLE TRIGGER units_only_rise",
        "ALTER TABLE units ENABLE TRIGGER units_only_rise",
    ),
    (
        "ALTER TABLE audit DISABLE TRIGGER audit_only_grows",
        "ALTER TABLE audit ENABLE TRIGGER audit_only_grows",
    ),
];

/// Keeps a copy of every table, without constraints and indexes.
const KEEP: &str = "CREATE SCHEMA kept; ALTER TABLE units DROP CONSTRAINT units_check; \
    DO $$ DECLARE t text; BEGIN \
        FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP \
            EXECUTE format('CREATE TABLE kept.%I AS TABLE public.%I', t, t); \
        END LOOP; \
    END $$";

/// Makes every table what it was.
const MEND: &str = "SET session_replication_role = replica; \
    DO $$ DECLARE t text; BEGIN \
        FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP \
            EXECUTE format('DELETE FROM public.%I', t); \
            EXECUTE format('INSERT INTO public.%I OVERRIDING SYSTEM VALUE TABLE kept.%I', t, t); \
        END LOOP; \
    END $$";

/// Mends everything, then runs a statement behind the back of all triggers and foreign keys; it must change something.
fn damaging(damage: &str) -> String {
    format!(
        "{MEND}; DO $$ DECLARE changed integer; BEGIN {damage}; \
         GET DIAGNOSTICS changed = ROW_COUNT; \
         IF changed = 0 THEN RAISE EXCEPTION 'nothing was damaged'; END IF; END $$"
    )
}

/// A damage of which nothing is said.
async fn unheard(options: &PostgresOptions, damage: &str, said: &str) -> Option<String> {
    let found = report(options).await.findings;
    let found: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    let is_said = found.iter().any(|what| what.starts_with(said));
    (!is_said).then(|| format!("{damage}: {said} is not in {found:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damage_is_found() {
    let test = TestLedger::postgres().await;
    very_busy(&test).await;
    let (_, options) = test.postgres.as_ref().unwrap();
    let url = &options.url;
    test.numbered();
    test.ledger.close().await;
    let sound = report(options).await;
    assert_eq!(sound.findings, []);
    assert_eq!((sound.events, sound.units, sound.bookings), (1, 15, 5));
    assert_eq!((sound.holds, sound.commits), (9, 22));
    postgres::query(url, KEEP).unwrap();
    let mut missed = Vec::new();
    for (damage, said) in DAMAGES {
        postgres::query(url, &damaging(damage)).unwrap();
        missed.extend(unheard(options, damage, said).await);
    }
    postgres::query(url, MEND).unwrap();
    for (hole, fix) in HOLES {
        postgres::query(url, hole).unwrap();
        missed.extend(unheard(options, hole, "guards").await);
        postgres::query(url, fix).unwrap();
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_will_never_get_a_number_is_found() {
    let test = TestLedger::postgres().await;
    busy(&test).await;
    let (_, options) = test.postgres.as_ref().unwrap();
    let url = &options.url;
    test.numbered();
    test.ledger.close().await;
    let lose = "DELETE FROM feed WHERE n = (SELECT n FROM sequencer); \
                UPDATE feed_heads SET seq = seq - 1, hash = (SELECT hash FROM feed ORDER BY n DESC \
                LIMIT 1); UPDATE sequencer SET n = n - 1, xid = xid + 100000";
    let back = "UPDATE sequencer SET xid = 0";
    postgres::query(url, lose).unwrap();
    let found = report(options).await.findings;
    assert!(
        found.iter().any(|finding| finding.detail.contains("never")),
        "{found:#?}"
    );
    // The same commits are legal while the sequencer has not passed them.
    postgres::query(url, back).unwrap();
    assert_eq!(report(options).await.findings, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_a_live_ledger_finds_nothing_and_stops_no_buyer() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut load = [0, 1].map(|server| load(&servers, server, &event, &stop));
    let mut reports = Vec::new();
    while reports.len() < 5 {
        let report = report(&servers.options).await;
        assert_eq!(report.findings, []);
        reports.push(report);
    }
    assert!(
        reports[0].transitions < reports[4].transitions,
        "no buyer was stopped"
    );
    stop.store(true, Ordering::Relaxed);
    for buyers in &mut load {
        while let Some(bought) = buyers.join_next().await {
            bought.unwrap();
        }
    }
}

/// What a server does in the background, with an event that is over.
const DROP_OTHELLO: &str = "INSERT INTO dropped_events (event_no, n, at, request, seq, hash)
VALUES (1, 1, 0, '', 0, ''); SELECT clear_dropped_14(1000)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_is_dropped_meanwhile_is_not_damaged() {
    let servers = Servers::start(1).await;
    for id in ["hamlet-1", "othello"] {
        servers.event_named(id).await;
    }
    let url = &servers.options.url;
    let mut told = 0;
    let report = verify(&servers.options, &mut |_| {
        told += 1;
        // At first before the events are listed, then after the first of them.
        if told == 2 {
            postgres::query(url, DROP_OTHELLO).unwrap();
        }
    })
    .await
    .unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.events, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_that_hangs_delays_no_buyer() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["B-1"]).await.unwrap();
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let options =
        servers.unprepared_at(proxy.url(&servers.database.url(), servers.database.address()));
    // Its snapshot is taken by then, tables are locked as far as they ever are.
    proxy.next_with("-- units_to_verify", Fault::Cut);
    let mut slow = JoinSet::new();
    slow.spawn(async move { report(&options).await });
    let cut = || proxy.to_come() == 0;
    until("the verification hangs", PATIENCE, cut).unwrap();
    for _ in 0..20 {
        let hold = servers.hold(0, &event, "bob", &["A-1"]).await.unwrap();
        held(servers.ask(0, Command::Release { on: on(&hold) }).await).unwrap();
    }
    assert!(
        slow.try_join_next().is_none(),
        "that was not its connection"
    );
    proxy.heal();
    let report = slow.join_next().await.unwrap().unwrap();
    assert_eq!(report.findings, []);
    assert_eq!((report.events, report.transitions), (1, 1), "one snapshot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_tells_its_story_without_a_server() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    held(servers.ask(0, Command::Release { on: on(&hold) }).await).unwrap();
    let ask = |event, unit| unit_history(&servers.options, event, unit);
    let commits = ask("hamlet-1", "A-1").await.unwrap().unwrap();
    assert_eq!(commits.len(), 2);
    assert!(ask("hamlet-1", "Z-1").await.unwrap().is_none());
    assert!(ask("hamlet-9", "A-1").await.unwrap().is_none());
}
