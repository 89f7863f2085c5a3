//! The tables of a ledger and the program that meets them: nothing there, older ones, newer ones, and
//! several that bring them up to date at the same moment.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, program, until, workspace};

use crate::crash::server::PROGRAM;
use crate::operate::{run, sell_one, serve, soldonce};

/// Processes that migrate at the same moment.
const AT_ONCE: usize = 3;

/// What every command that needs the tables is, and the code it ends with when they are not its own.
const COMMANDS: [(&[&str], i32); 6] = [
    (&["serve", "--listen", "127.0.0.1:0"], 3),
    (&["keys", "list"], 3),
    (&["verify"], 3),
    (&["why", "hamlet-1", "A-1"], 3),
    (
        &["reconcile", "--dry-run", "--stripe-key", "sk_test_nobody"],
        3,
    ),
    (&["doctor"], 1),
];

/// What a migration of this database did.
fn migrate(database: &Postgres) -> Value {
    serde_json::from_str(&soldonce(&["migrate", "--json"], database)).unwrap()
}

fn steps(migrated: &Value) -> Vec<String> {
    let steps = migrated["steps"].as_array().unwrap().iter();
    steps
        .map(|step| step.as_str().unwrap().to_owned())
        .collect()
}

/// The files of the schema, in their order.
fn files() -> Vec<PathBuf> {
    let folder = workspace()
        .unwrap()
        .join("crates/engine/migrations/postgres");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort_by_key(|file| number(file));
    files
}

/// Of `V10__name.sql`, 10.
fn number(file: &Path) -> u32 {
    let name = file.file_name().unwrap().to_str().unwrap();
    let number = name.trim_start_matches('V').split("__").next();
    number.unwrap().parse().unwrap()
}

fn psql(database: &Postgres) -> Command {
    let mut psql = Command::new(program("psql").unwrap());
    psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]);
    psql.args(["--dbname", &database.url()]);
    psql
}

/// An empty database in which nothing else is wrong.
fn empty() -> Postgres {
    Postgres::options().durable().start().unwrap()
}

/// A database as the release before this one left it: every step but the last was taken.
fn older() -> Postgres {
    let (newest, older) = (empty(), empty());
    soldonce(&["migrate"], &newest);
    let files = files();
    for file in &files[..files.len() - 1] {
        let done = psql(&older).arg("--file").arg(file).status().unwrap();
        assert!(done.success(), "{}", file.display());
    }
    let rows = "SELECT format('(%L, %L, %L, %L)', version, name, applied_on, checksum)
                FROM soldonce_migrations ORDER BY version";
    let rows = newest.query(rows).unwrap();
    let rows: Vec<&str> = rows.lines().take(files.len() - 1).collect();
    let table = "CREATE TABLE soldonce_migrations (version integer PRIMARY KEY,
                 name varchar(255), applied_on varchar(255), checksum varchar(255))";
    older.query(table).unwrap();
    let insert = format!("INSERT INTO soldonce_migrations VALUES {}", rows.join(", "));
    older.query(&insert).unwrap();
    older
}

#[test]
fn a_migration_tells_what_it_did() {
    let database = empty();
    let dry = ["migrate", "--dry-run", "--json"];
    let (code, said) = run(&dry, &database);
    assert_eq!(code, Some(1), "{said}");
    let open: Value = serde_json::from_str(&said).unwrap();
    let first = migrate(&database);
    assert_eq!(first["schema_before"], json!(0));
    assert_eq!(first["schema"], json!(files().len()));
    let names = files();
    let names: Vec<_> = names
        .iter()
        .map(|file| file.file_stem().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(steps(&first), names);
    assert_eq!(first, open, "nothing of it was done before");
    let (code, said) = run(&dry, &database);
    assert_eq!(code, Some(0), "{said}");
    let again = migrate(&database);
    assert_eq!(again["schema_before"], again["schema"]);
    assert!(steps(&again).is_empty(), "{again}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("migrate");
    std::fs::remove_dir_all(&folder).ok();
    let embedded = || {
        let mut command = Command::new(PROGRAM);
        command.args(["migrate", "--json", "--data"]).arg(&folder);
        let Output { status, stdout, .. } = command.output().unwrap();
        assert!(status.success());
        serde_json::from_slice::<Value>(&stdout).unwrap()
    };
    let (first, again) = (embedded(), embedded());
    assert_eq!(json!(steps(&first).len()), first["schema"]);
    assert_eq!(again["schema_before"], first["schema"]);
    assert!(steps(&again).is_empty(), "{again}");
}

/// Keeps everybody from migrating a database.
struct Obstacle(Child);

impl Obstacle {
    fn in_the_way_of(database: &Postgres) -> Self {
        let lock = "SELECT pg_advisory_lock(7310307613); SELECT pg_sleep(600);";
        let mut psql = psql(database);
        psql.args(["--command", lock]);
        psql.stdout(Stdio::null()).stderr(Stdio::null());
        let child = psql.spawn().unwrap();
        let stands = || waiting(database, "granted") == 1;
        until("the lock is taken", PATIENCE, stands).unwrap();
        Self(child)
    }

    fn goes_away(mut self, database: &Postgres) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted";
        database.query(end).unwrap();
        self.0.wait().unwrap();
    }
}

/// Locks of migrations that are as `which` says.
fn waiting(database: &Postgres, which: &str) -> usize {
    let sql = format!(
        "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND {which}"
    );
    database.query(&sql).unwrap().parse().unwrap()
}

/// Several processes migrate this database at the same moment; gives what each of them did.
fn migrate_at_once(database: &Postgres) -> Vec<Value> {
    let obstacle = Obstacle::in_the_way_of(database);
    let start = |_| {
        Command::new(PROGRAM)
            .args(["migrate", "--json", "--database-url", &database.url()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let all: Vec<Child> = (0..AT_ONCE).map(start).collect();
    // Longer than a server waits for a row: a migration that takes its time is no failure.
    let patient = "NOT granted AND clock_timestamp() - query_start > interval '3.5 seconds'";
    let all_wait = || waiting(database, patient) == AT_ONCE;
    until("everybody waits patiently", PATIENCE, all_wait).unwrap();
    obstacle.goes_away(database);
    let done = all.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).unwrap()
    });
    done.collect()
}

/// One took all of these steps, no other any.
fn one_took(done: &[Value], wanted: &[String]) {
    let mut taken: Vec<Vec<String>> = done.iter().map(steps).collect();
    taken.sort();
    let mut expected = vec![Vec::new(); AT_ONCE - 1];
    expected.push(wanted.to_vec());
    assert_eq!(taken, expected);
    assert!(done.iter().all(|one| one["schema"] == done[0]["schema"]));
}

#[test]
fn of_several_migrations_at_once_one_takes_the_steps() {
    let all = steps(&migrate(&empty()));
    one_took(&migrate_at_once(&empty()), &all);
    let older = older();
    one_took(&migrate_at_once(&older), &all[all.len() - 1..]);
    let server = serve(&older, "migrate-at-once");
    sell_one(&mut server.client("ann"));
    let verified = soldonce(&["verify"], &older);
    assert!(verified.contains("nothing is wrong"), "{verified}");
}

#[test]
fn tables_that_are_older_are_named_with_their_mend() {
    let database = older();
    let known = files().len();
    for (arguments, code) in COMMANDS {
        let (ended, said) = run(arguments, &database);
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        let schema = format!("schema {}, this program knows {known}", known - 1);
        assert!(said.contains(&schema), "{arguments:?}: {said}");
        assert!(
            said.contains("run `soldonce migrate`"),
            "{arguments:?}: {said}"
        );
    }
    assert_eq!(steps(&migrate(&database)).len(), 1);
    assert!(soldonce(&["keys", "list"], &database).contains("scopes"));
}

#[test]
fn tables_that_are_newer_are_left_alone_and_told() {
    let database = empty();
    soldonce(&["migrate"], &database);
    let later = "INSERT INTO soldonce_migrations VALUES (99, 'later', 'tomorrow', '0')";
    database.query(later).unwrap();
    let commands = COMMANDS.into_iter().chain([(["migrate"].as_slice(), 3)]);
    for (arguments, code) in commands {
        let (ended, said) = run(arguments, &database);
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        assert!(said.contains("schema 99"), "{arguments:?}: {said}");
        let why = "this program is older than the database";
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert!(!said.contains("soldonce migrate"), "{arguments:?}: {said}");
    }
    let kept = "SELECT count(*) FROM soldonce_migrations";
    assert_eq!(
        database.query(kept).unwrap(),
        (files().len() + 1).to_string()
    );
}
