//! What only a ledger on disk can be asked: restart, a second process, a commit that fails, damage.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::Connection;
use soldonce_core::{Command, Event, Rejection, Text};
use soldonce_engine::ledger::sqlite::verify::{look, verify};
use soldonce_engine::ledger::sqlite::{OpenError, SqliteOptions, migrate, migration};
use soldonce_engine::ledger::verify::VerifyReport;
use soldonce_engine::ledger::{Done, Fingerprint, Ledger, RequestKey, ScopedKey};
use soldonce_engine::limits::IDEMPOTENCY_MS;
use soldonce_testkit::TempFolder;
use tokio::task::JoinSet;

use crate::guards::unguarded;
use crate::ledgers::{
    HALL, START_MS, TestLedger, busy, held, key, on, open_in, select, transaction,
};

/// The database of a test, opened while the ledger has it open.
fn database(test: &TestLedger) -> Connection {
    Connection::open(folder(test).join("ledger.sqlite")).unwrap()
}

fn folder(test: &TestLedger) -> &Path {
    test.folder.as_ref().unwrap().path()
}

fn report(test: &TestLedger) -> VerifyReport {
    verify(folder(test), &mut |_| {}).unwrap()
}

/// Every table as text, so that two states can be compared.
fn dump(connection: &Connection) -> Vec<String> {
    let tables = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        .unwrap()
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap()
        .map(Result::unwrap)
        .collect::<Vec<_>>();
    let mut lines = Vec::new();
    for table in tables {
        let mut statement = connection
            .prepare(&format!("SELECT * FROM {table}"))
            .unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap()));
            lines.push(format!(
                "{table}: {}",
                values.collect::<Vec<_>>().join(", ")
            ));
        }
    }
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_changes_nothing() {
    let mut test = TestLedger::sqlite();
    let (event, booking, kept) = busy(&test).await;
    let before = dump(&database(&test));
    test.restart().await;
    assert_eq!(dump(&database(&test)), before);
    test.crash().await;
    assert_eq!(dump(&database(&test)), before);
    assert_eq!(
        test.ledger.booking(booking.id).await.unwrap(),
        Some(booking)
    );
    assert_eq!(test.ledger.hold(kept.id).await.unwrap(), Some(kept.clone()));
    assert!(test.hold(&event, "eve", &["A-1"]).await.is_err());
    test.confirm(&kept).await.unwrap();
    assert_eq!(report(&test).findings, []);
}

/// After a step back of the machine's clock the ledger's is ahead.
#[tokio::test(flavor = "multi_thread")]
async fn time_that_passed_without_a_commit_is_kept() {
    let mut test = TestLedger::sqlite();
    test.event().await;
    test.clock.step_wall(START_MS - 60_000);
    assert_eq!(test.ledger.now().ms(), START_MS);
    test.advance_ms(10_000);
    test.restart().await;
    assert_eq!(test.ledger.now().ms(), START_MS + 5_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_plan_share_its_chart_and_are_new() {
    let test = TestLedger::sqlite();
    test.event().await;
    test.other_event().await;
    let counts = "SELECT (SELECT count(*) FROM charts) || ' of ' || count(*) || ' events, '
        || count(changed_at) || ' changed' FROM events";
    let counts = database(&test).query_row(counts, [], |row| row.get::<_, String>(0));
    assert_eq!(counts.unwrap(), "1 of 2 events, 0 changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_is_kept_out() {
    let test = TestLedger::sqlite();
    let options = SqliteOptions::new(folder(&test));
    let refused = open_in(&options, &test.clock, &test.recorder)
        .err()
        .unwrap();
    assert!(matches!(refused, OpenError::Locked { .. }), "{refused}");
    let told = refused.to_string();
    assert!(
        told.contains(&folder(&test).display().to_string()) && told.contains("stop"),
        "{told}"
    );
    test.ledger.close().await;
    open_in(&options, &test.clock, &test.recorder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_schema_is_refused() {
    let test = TestLedger::sqlite();
    test.ledger.close().await;
    database(&test)
        .pragma_update(None, "user_version", 999)
        .unwrap();
    let options = SqliteOptions::new(folder(&test));
    let refused = open_in(&options, &test.clock, &test.recorder)
        .err()
        .unwrap();
    assert!(
        matches!(refused, OpenError::Schema { found: 999, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("newer soldonce"), "{refused}");
    assert!(verify(folder(&test), &mut |_| {}).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_commit_answers_no_caller_and_ends_the_writing() {
    for table in [
        "units",
        "holds",
        "audit",
        "chains",
        "head",
        "idempotency",
        "outbox",
    ] {
        let mut test = TestLedger::sqlite();
        let (event, _, kept) = busy(&test).await;
        let before = dump(&database(&test));
        let trigger = format!(
            "CREATE TRIGGER fails BEFORE {} ON {table} BEGIN SELECT RAISE(FAIL, 'full'); END",
            if ["chains", "head"].contains(&table) {
                "UPDATE"
            } else {
                "INSERT"
            }
        );
        database(&test).execute_batch(&trigger).unwrap();
        let command = if table == "outbox" {
            test.checkout_command(&kept)
        } else {
            test.hold_command(&event, "joe", &["B-2"])
        };
        let refused = test.ask_as(command, key(2, 2)).await;
        // A guard of the file refuses, so surely nothing is stored.
        assert_eq!(refused.unwrap_err(), Rejection::MemoryMismatch, "{table}");
        assert!(!test.ledger.is_writable());
        assert_eq!(test.recorder.failures.lock().unwrap().len(), 1, "{table}");
        // Not even what would change nothing is answered from a memory that is ahead.
        assert_eq!(test.confirm(&kept).await.unwrap_err(), Rejection::ReadOnly);
        assert_eq!(test.ledger.hold(kept.id).await.unwrap(), Some(kept.clone()));
        database(&test).execute_batch("DROP TRIGGER fails").unwrap();
        // The last connection that closes would empty it.
        let log = folder(&test).join("ledger.sqlite-wal");
        assert!(log.exists(), "{table}: the writer's connection is closed");
        assert_eq!(dump(&database(&test)), before, "{table}");
        test.restart().await;
        assert!(test.ledger.is_writable());
        test.hold(&event, "joe", &["B-2"]).await.unwrap();
        assert_eq!(report(&test).findings, [], "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_behind_the_memory_stops_the_ledger_instead_of_selling_twice() {
    let test = TestLedger::sqlite();
    let (event, ..) = busy(&test).await;
    let change = "UPDATE units SET version = version + 1 WHERE unit_no = 3";
    assert_eq!(database(&test).execute(change, []).unwrap(), 1);
    let refused = test.hold(&event, "joe", &["A-4"]).await.unwrap_err();
    assert_eq!(refused, Rejection::MemoryMismatch);
    let why = test.recorder.failures.lock().unwrap().concat();
    assert!(why.contains("update_unit changed 0 rows"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_behind_its_high_water_does_not_start() {
    let test = TestLedger::sqlite();
    busy(&test).await;
    test.ledger.close().await;
    let (live, old) = (
        folder(&test).join("ledger.sqlite"),
        folder(&test).join("old.sqlite"),
    );
    std::fs::copy(&live, &old).unwrap();
    let open = |accept_loss| {
        let options = SqliteOptions {
            accept_loss,
            ..SqliteOptions::new(folder(&test))
        };
        open_in(&options, &test.clock, &test.recorder)
    };
    drop(open(false).unwrap());
    // A commit on top, and then the old copy comes back.
    let more = test.with_ledger(open(false).unwrap());
    more.ledger.add_key(api_key()).await.unwrap();
    more.ledger.close().await;
    drop(more);
    std::fs::copy(&old, &live).unwrap();
    let refused = open(false).err().unwrap();
    assert!(matches!(refused, OpenError::Behind { .. }), "{refused}");
    assert!(refused.to_string().contains("lost commits"), "{refused}");
    assert!(!report(&test).is_clean());
    drop(open(true).unwrap());
    drop(open(false).unwrap());
    // A file that is missing, or damaged, is no proof that nothing is.
    let high_water = folder(&test).join("high-water");
    let mut mark = std::fs::read(&high_water).unwrap();
    mark[30] ^= 1;
    std::fs::write(&high_water, &mark).unwrap();
    assert!(matches!(open(false), Err(OpenError::Behind { .. })));
    std::fs::remove_file(&high_water).unwrap();
    let refused = open(false).err().unwrap();
    assert!(matches!(refused, OpenError::Unmarked { .. }), "{refused}");
    std::fs::write(&high_water, "").unwrap();
    let refused = open(false).err().unwrap();
    assert!(matches!(refused, OpenError::Unmarked { .. }), "{refused}");
    drop(open(true).unwrap());
    drop(open(false).unwrap());
}

/// The file was lost, or is empty: nothing is made in its place that a copy would have to be put back over.
#[tokio::test(flavor = "multi_thread")]
async fn no_ledger_is_made_in_place_of_one_that_was_lost() {
    let test = TestLedger::sqlite();
    busy(&test).await;
    test.ledger.close().await;
    let options = SqliteOptions::new(folder(&test));
    let live = folder(&test).join("ledger.sqlite");
    let log = folder(&test).join("ledger.sqlite-wal");
    for (left, logged) in [(None, 0), (Some(0), 0), (None, 4_096), (Some(0), 4_096)] {
        for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"] {
            std::fs::remove_file(folder(&test).join(name)).ok();
        }
        // What a killed server left has the newest commits.
        if logged > 0 {
            std::fs::write(&log, vec![7; logged]).unwrap();
        }
        if left.is_some() {
            std::fs::write(&live, "").unwrap();
        }
        let refusals = [
            open_in(&options, &test.clock, &test.recorder).err(),
            migrate(&options).err(),
            migration(&options).err(),
            look(folder(&test)).err(),
            verify(folder(&test), &mut |_| {}).err(),
        ];
        for refused in refusals {
            let refused = refused.expect("the mark says that commits were made");
            assert!(matches!(refused, OpenError::Behind { .. }), "{refused}");
        }
        let size = std::fs::metadata(&live).ok().map(|meta| meta.len());
        assert_eq!(size, left);
        let kept = std::fs::metadata(&log).map_or(0, |meta| meta.len());
        assert_eq!(kept, u64::try_from(logged).unwrap());
    }
    std::fs::remove_file(&log).unwrap();
    let accepting = SqliteOptions {
        accept_loss: true,
        ..options
    };
    drop(open_in(&accepting, &test.clock, &test.recorder).unwrap());
}

/// The folder was cleared, or another ledger put there, with the server still at work: what it would store is lost.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_acknowledged_that_goes_to_a_file_that_was_moved() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let live = folder(&test).join("ledger.sqlite");
    std::fs::rename(&live, folder(&test).join("elsewhere")).unwrap();
    std::fs::write(&live, "").unwrap();
    let refused = test.hold(&event, "bob", &["A-2"]).await.unwrap_err();
    assert_eq!(refused, Rejection::OutcomeUnknown);
    let why = test.recorder.failures.lock().unwrap().concat();
    assert!(why.contains("moved, deleted or replaced"), "{why}");
    let refused = test.hold(&event, "joe", &["A-3"]).await.unwrap_err();
    assert_eq!(refused, Rejection::ReadOnly);
}

/// The first start was killed between making the file and writing into it.
#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_without_commits_starts_with_an_empty_high_water() {
    let test = TestLedger::sqlite();
    test.ledger.close().await;
    std::fs::write(folder(&test).join("high-water"), "").unwrap();
    let options = SqliteOptions::new(folder(&test));
    drop(open_in(&options, &test.clock, &test.recorder).unwrap());
}

/// What SQLite's online backup makes of a ledger that is at work lacks the high-water file.
#[tokio::test(flavor = "multi_thread")]
async fn an_online_copy_verifies_and_starts_when_it_is_said() {
    let test = TestLedger::sqlite();
    busy(&test).await;
    let copy = TempFolder::new().unwrap();
    let file = copy.path().join("ledger.sqlite");
    let into = file.to_str().unwrap();
    database(&test).execute("VACUUM INTO ?1", [into]).unwrap();
    let report = verify(copy.path(), &mut |_| {}).unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.remarks.len(), 1, "{:?}", report.remarks);
    assert_eq!(report.remarks[0].what, "high-water");
    let open = |accept_loss| {
        let options = SqliteOptions {
            accept_loss,
            ..SqliteOptions::new(copy.path())
        };
        open_in(&options, &test.clock, &test.recorder)
    };
    let refused = open(false).err().unwrap().to_string();
    assert!(
        refused.contains("start it once with `--accept-loss`"),
        "{refused}"
    );
    drop(open(true).unwrap());
    drop(open(false).unwrap());
    assert_eq!(verify(copy.path(), &mut |_| {}).unwrap().remarks, []);
}

fn api_key() -> soldonce_engine::keys::ApiKey {
    soldonce_engine::keys::ApiKey {
        id: soldonce_engine::keys::KeyId::from_bits(5),
        name: soldonce_core::Text::parse("box office").unwrap(),
        scopes: vec![soldonce_engine::keys::Scope::Sell],
        hash: [3; 32],
        created_at: soldonce_core::Timestamp::from_ms(1),
        revoked_at: None,
    }
}

/// Statements that damage one value each, as a flipped bit would.
const DAMAGES: [&str; 32] = [
    "UPDATE units SET fence = fence + 8 WHERE unit_no = 0",
    "UPDATE units SET state = 0, owner = NULL WHERE unit_no = 0",
    "UPDATE units SET until = until + 4096 WHERE unit_no = 5",
    "UPDATE units SET checksum = checksum - 1 WHERE unit_no = 3",
    "DELETE FROM units WHERE unit_no = 0",
    "DELETE FROM units WHERE unit_no = 3",
    "UPDATE units SET unit_no = 9 WHERE unit_no = 0",
    "UPDATE holds SET expires_at = expires_at + 4096 WHERE state = 0",
    "UPDATE holds SET holder = 'joe' WHERE state = 0",
    "UPDATE holds SET units = x'050001' WHERE state = 0",
    "UPDATE holds SET state = 4 WHERE state = 0",
    "DELETE FROM holds WHERE state = 0",
    "DELETE FROM holds WHERE state = 2",
    "UPDATE bookings SET caller = randomblob(16) WHERE state = 1",
    "DELETE FROM bookings WHERE state = 0",
    "DELETE FROM bookings WHERE state = 1",
    "UPDATE lines SET price = 1 WHERE n = 1",
    "DELETE FROM lines WHERE n = 1",
    "UPDATE audit SET actor = NULL WHERE seq = 1 AND n = 0",
    "UPDATE audit SET at = at - 1 WHERE seq = 2 AND n = 0",
    "UPDATE audit SET request = 'req-2' WHERE seq = 3 AND n = 0",
    "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
    "UPDATE chains SET hash = randomblob(32)",
    "UPDATE events SET prices = '[1, 1]'",
    "UPDATE idempotency SET fingerprint = randomblob(16)",
    "UPDATE head SET clock = clock - 1000",
    "UPDATE replies SET body = zeroblob(length(body))",
    "DELETE FROM replies",
    "UPDATE master_keys SET secret = randomblob(32)",
    "UPDATE outbox SET kind = 1 - kind",
    "UPDATE units SET event_no = 7 WHERE unit_no = 3",
    "UPDATE charts SET digest = randomblob(32)",
];

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_refused_at_start_or_found_by_verify() {
    let test = TestLedger::sqlite();
    busy(&test).await;
    test.ledger.close().await;
    let (live, sound) = (
        folder(&test).join("ledger.sqlite"),
        folder(&test).join("sound"),
    );
    std::fs::copy(&live, &sound).unwrap();
    for damage in DAMAGES {
        std::fs::copy(&sound, &live).unwrap();
        assert!(report(&test).is_clean());
        let rows = unguarded(&live).execute(damage, []).unwrap();
        assert!(rows > 0, "{damage}: nothing was damaged");
        let found = verify(folder(&test), &mut |_| {});
        let options = SqliteOptions::new(folder(&test));
        let opened = open_in(&options, &test.clock, &test.recorder);
        let caught = found.map_or(true, |report| !report.is_clean());
        assert!(
            caught || opened.is_err(),
            "{damage}: neither the check nor the start saw it"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_that_is_read_in_another_way_stops_the_start() {
    let test = TestLedger::sqlite();
    test.event().await;
    test.ledger.close().await;
    let swapped = HALL
        .replace("A-1", "A-9")
        .replace("A-2", "A-1")
        .replace("A-9", "A-2");
    let connection = database(&test);
    let sha: [u8; 32] = sha2::Digest::finalize(sha2::Digest::chain_update(
        <sha2::Sha256 as sha2::Digest>::new(),
        swapped.as_bytes(),
    ))
    .into();
    let change = "UPDATE charts SET document = ?1, sha256 = ?2";
    connection
        .execute(change, rusqlite::params![swapped.as_bytes(), sha])
        .unwrap();
    let options = SqliteOptions::new(folder(&test));
    let refused = open_in(&options, &test.clock, &test.recorder)
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("numbered in another way"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_only_what_is_not_over() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    for _ in 0..30 {
        let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
        held(test.ask(Command::Release { on: on(&hold) }).await).unwrap();
    }
    let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
    let booking = test.confirm(&hold).await.unwrap();
    test.hold(&event, "bob", &["A-2"]).await.unwrap();
    // What is over is read back when it is named, and let go of again.
    assert_eq!(
        test.confirm(&hold).await.unwrap_err(),
        Rejection::HoldConsumed(booking.id)
    );
    test.hold(&event, "cid", &["A-3"]).await.unwrap();
    assert_eq!(*test.recorder.in_memory.lock().unwrap(), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_seats_are_back_after_one_walk_over_each_table() {
    let test = TestLedger::sqlite();
    let json = r#"{"format":"grid","rows":100,"seats_per_row":100,"category":"Standard"}"#;
    let change = |policy: &mut soldonce_core::Policy| policy.units_per_holder_max = 10_000;
    let event = test.event_on(json, change).await;
    let places: Vec<String> = event
        .chart
        .rows()
        .iter()
        .flat_map(|row| {
            row.units()
                .map(|unit| event.chart.unit_name(unit).to_string())
        })
        .collect();
    for chunk in places.chunks(10) {
        let seats: Vec<&str> = chunk.iter().map(String::as_str).collect();
        let hold = test.hold(&event, "ann", &seats).await.unwrap();
        if hold.units[0].unit.0 % 20 == 0 {
            test.confirm(&hold).await.unwrap();
        }
    }
    test.ledger.close().await;
    let plan = |sql: &str| -> String {
        let connection = database(&test);
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let lines = statement
            .query_map([], |row| row.get::<_, String>(3))
            .unwrap();
        lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    // One walk along each table in the order of its key: nothing is sorted, nothing looked up twice.
    assert_eq!(
        plan("SELECT * FROM units ORDER BY event_no, unit_no"),
        "SCAN units"
    );
    assert_eq!(plan("SELECT * FROM bookings ORDER BY id"), "SCAN bookings");
    assert_eq!(
        plan("SELECT * FROM holds WHERE id >= x'00' AND state IN (0, 1) ORDER BY id"),
        "SEARCH holds USING PRIMARY KEY (id>?)"
    );
    let options = SqliteOptions::new(folder(&test));
    let again = test.with_ledger(open_in(&options, &test.clock, &test.recorder).unwrap());
    assert_eq!(test.recorder.opened.lock().unwrap().1, 5_000, "sold");
    assert_eq!(test.recorder.opened.lock().unwrap().0, 5_000, "held");
    assert!(again.hold(&event, "bob", &["A-1"]).await.is_err());
}

/// What a unit may be in the file at the version that memory has, unlike in memory.
const WRONG: [&str; 3] = [
    "UPDATE units SET state = 2, owner = zeroblob(16), until = NULL WHERE unit_no = 0",
    "UPDATE units SET state = 1, owner = zeroblob(16), until = 9000000000000 WHERE unit_no = 0",
    "UPDATE units SET state = 3, owner = NULL, until = NULL WHERE unit_no = 0",
];

/// One process writes the file, so whose memory is not the file's is ill: it stops, and says so.
async fn stops(test: TestLedger, event: &Event, command: Command, wrong: &str) {
    let file = unguarded(&folder(&test).join("ledger.sqlite"));
    assert_eq!(file.execute(wrong, []).unwrap(), 1);
    let refused = test.ask(command).await.unwrap_err();
    assert_eq!(refused, Rejection::MemoryMismatch, "{wrong}");
    assert_eq!(test.recorder.distrusted.load(Ordering::Relaxed), 1);
    let next = test.ask(test.hold_command(event, "zoe", &["A-2"])).await;
    assert_eq!(next.unwrap_err(), Rejection::ReadOnly, "{wrong}");
    let why = test.recorder.failures.lock().unwrap().join("; ");
    assert!(why.contains("memory and file differ"), "{why}");
    let sold = "SELECT count(*) FROM lines";
    let lines = database(&test).query_row(sold, [], |row| row.get::<_, i64>(0));
    assert_eq!(lines.unwrap(), 0, "{wrong}");
    assert!(!report(&test).is_clean());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_is_wrong_at_the_right_version_sells_nothing_and_stops() {
    for wrong in WRONG {
        let test = TestLedger::sqlite();
        let event = test.event().await;
        let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
        let confirm = test.confirm_command(&hold);
        stops(test, &event, confirm, wrong).await;
        let test = TestLedger::sqlite();
        let event = test.event().await;
        let hold = test.hold(&event, "ann", &["A-1"]).await.unwrap();
        held(test.ask(Command::Release { on: on(&hold) }).await).unwrap();
        let wish = test.hold_command(&event, "bob", &["A-1"]);
        stops(test, &event, wish, wrong).await;
    }
}

const SEATS: [&str; 5] = ["A-1", "A-2", "A-3", "A-4", "A-5"];
/// Of each seat: in all more keys than memory has whole.
const CHANGES: u64 = 14_000;

/// Blocks a seat, or unblocks it, again and again.
pub(crate) fn nth_change(event: &Event, seat: usize, n: u64) -> (Command, RequestKey) {
    let selection = select(event, &[SEATS[seat]], &[]);
    let (event, reason) = (event.no, Text::parse("camera").unwrap());
    let command = match n % 2 {
        0 => Command::Block {
            event,
            selection,
            reason,
        },
        _ => Command::Unblock {
            event,
            selection,
            reason,
        },
    };
    let number = u128::from(n) * 8 + u128::try_from(seat).unwrap();
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let key = RequestKey {
        scoped: ScopedKey(spread.to_be_bytes()),
        fingerprint: Fingerprint([1; 16]),
    };
    (command, key)
}

/// A day that ends does not make one commit wait for the records of all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_forgets_a_bounded_number_of_keys() {
    let test = TestLedger::sqlite();
    let event = test.event().await;
    let ask = |n| {
        let (command, key) = nth_change(&event, 0, n);
        test.ledger.transact(transaction(command, Some(key)))
    };
    for answer in (0..1_099).map(ask).collect::<Vec<_>>() {
        answer.await.unwrap();
    }
    test.advance_ms(u64::try_from(IDEMPOTENCY_MS).unwrap() + 1);
    for (n, left) in [(1_099, 1_100 - 1_024), (1_100, 2)] {
        ask(n).await.unwrap();
        let count = "SELECT count(*) FROM idempotency";
        let count = database(&test).query_row(count, [], |row| row.get::<_, i64>(0));
        assert_eq!(count.unwrap(), left);
    }
}

async fn change_over_and_over(ledger: Arc<dyn Ledger>, event: Arc<Event>, seat: usize) {
    for n in 0..CHANGES {
        let (command, key) = nth_change(&event, seat, n);
        let done = ledger.transact(transaction(command, Some(key))).await;
        assert!(matches!(done, Ok(Done::Fresh { .. })), "{done:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_long_ago_is_found_in_the_file() {
    let mut test = TestLedger::sqlite();
    let event = test.event().await;
    let mut changing = JoinSet::new();
    for seat in 0..SEATS.len() {
        let (ledger, event) = (test.ledger.clone(), event.clone());
        changing.spawn(change_over_and_over(ledger, event, seat));
    }
    changing.join_all().await;
    for _ in 0..2 {
        for n in [0, 1, CHANGES / 2, CHANGES - 1] {
            let (command, key) = nth_change(&event, 3, n);
            let again = test.ask_as(command.clone(), key).await;
            assert!(matches!(again, Ok(Done::Replayed(_))), "{n}: {again:?}");
            let other = RequestKey {
                fingerprint: Fingerprint([2; 16]),
                ..key
            };
            let refused = test.ask_as(command, other).await;
            assert_eq!(refused.err(), Some(Rejection::IdempotencyKeyReused), "{n}");
        }
        test.restart().await;
    }
}
