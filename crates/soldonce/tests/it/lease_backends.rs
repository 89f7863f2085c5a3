//! `soldonce lease` and `soldonce doctor` on every backend they can name: runs, their tokens, and
//! what operators see, break and are told.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::{iter, thread};

use serde_json::Value;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::{FullCoverage, Redis, RedisCluster};
use soldonce_testkit::{PATIENCE, until};

/// Prints the token of its lease.
const TOKEN: [&str; 4] = ["--", "sh", "-c", "echo $SOLDONCE_LEASE_TOKEN"];

/// The first token with an epoch.
const ANCHORED: u64 = 1 << 32;

fn soldonce<'a>(words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soldonce"));
    command.args(words);
    for variable in [
        "SOLDONCE_REDIS_URL",
        "SOLDONCE_DATABASE_URL",
        "SOLDONCE_EPOCHS",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Runs `soldonce lease run nightly` with these options, and gives the token of its lease.
#[track_caller]
fn token_of(options: &[&str]) -> u64 {
    // A call without an answer, as on a machine that stalls, is made again.
    let patient = [options, &["--wait", "1m"]].concat();
    let waits = options.contains(&"--wait");
    let output = run(if waits { options } else { &patient });
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    text(&output.stdout).trim().parse().unwrap()
}

fn run(options: &[&str]) -> Output {
    let words = ["lease", "run", "nightly"]
        .iter()
        .chain(options)
        .chain(&TOKEN);
    heard(&mut soldonce(words.copied()))
}

/// What it says when its backend is heard: a connection or an answer has a second, that of a database of tokens
/// 400 ms, and a busy machine may stand still for longer.
fn heard(command: &mut Command) -> Output {
    let asked = || command.output().unwrap();
    let is_heard = |output: &Output| {
        let said = text(&output.stdout) + &text(&output.stderr);
        let late = [
            "took more than ",
            "no answer",
            "no connection in ",
            "timed out",
        ];
        !late.iter().any(|words| said.contains(words))
    };
    iter::repeat_with(asked).take(20).find(is_heard).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {output:?}"))
}

/// A folder that is not there, for this test alone.
fn folder(name: &str) -> PathBuf {
    let folder = format!("{name}-{}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::remove_dir_all(&folder).ok();
    folder
}

#[test]
fn on_postgresql_the_first_runs_make_the_tables() {
    let server = Postgres::start().unwrap();
    let url = server.url();
    let options = ["--database-url", &url];
    // All at once on an empty database: one makes the tables, the others wait for it.
    thread::scope(|scope| {
        for namespace in ["a", "b", "c", "d"] {
            let options = [&options[..], &["--namespace", namespace]].concat();
            scope.spawn(move || token_of(&options));
        }
    });
    let first = token_of(&options);
    assert!(first > ANCHORED, "{first}");
    assert!(token_of(&options) > first);
}

#[test]
fn on_a_cluster() {
    let cluster = RedisCluster::start(FullCoverage::NotRequired).unwrap();
    let seeds = cluster.urls().join(",").replace("redis://", "");
    let url = format!("redis+cluster://{seeds}");
    let options = ["--redis-url", &url];
    let first = token_of(&options);
    assert!(token_of(&options) > first);
}

/// Short ttls, so that the servers are soon old enough to vote, and longer than a machine stands still.
const YOUNG: [&str; 8] = [
    "--ttl",
    "10s",
    "--ttl-longest",
    "10s",
    "--grace",
    "200ms",
    "--wait",
    "1m",
];

#[test]
fn on_a_majority_of_servers() {
    let mut servers = Redis::independent(3).unwrap();
    let urls: Vec<String> = servers.iter().map(Redis::url).collect();
    let mut options: Vec<&str> = YOUNG.to_vec();
    options.extend(urls.iter().flat_map(|url| ["--redis-url", url]));
    let output = run(&options);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // A minority is gone, and the tokens come from a database whose tables are not there yet.
    servers[0].kill().unwrap();
    let (epochs, database) = (folder("tokens"), Postgres::start().unwrap());
    let (folder, database) = (epochs.to_str().unwrap(), database.url());
    for (namespace, source) in [
        ("a", ["--epochs", folder]),
        ("b", ["--database-url", &database]),
    ] {
        let options = [&options[..], &["--namespace", namespace], &source].concat();
        let first = token_of(&options);
        assert!(first > ANCHORED, "{first}");
        assert!(token_of(&options) > first);
    }
    std::fs::remove_dir_all(&epochs).unwrap();
}

#[test]
fn several_servers_may_stand_in_the_environment() {
    let mut command = soldonce(["lease", "run", "nightly", "--", "true"]);
    let command = command.env(
        "SOLDONCE_REDIS_URL",
        "redis://127.0.0.1:1 redis://127.0.0.1:2",
    );
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("3, 5 or 7 servers"),
        "{output:?}"
    );
}

#[test]
fn epochs_in_a_folder_or_a_database_outlive_the_data_of_redis() {
    let redis = Redis::start().unwrap();
    let (epochs, database) = (folder("epochs"), Postgres::start().unwrap());
    let (folder, database) = (epochs.to_str().unwrap(), database.url());
    let server = redis.url();
    for (namespace, source) in [
        ("a", ["--epochs", folder]),
        ("b", ["--database-url", &database]),
    ] {
        let options = ["--redis-url", &server, "--namespace", namespace];
        let options: Vec<&str> = options.into_iter().chain(source).collect();
        let before = token_of(&options);
        redis.cli(&["FLUSHALL"]).unwrap();
        let after = token_of(&options);
        assert!(before > ANCHORED && after > before, "{before} {after}");
    }
    std::fs::remove_dir_all(&epochs).unwrap();
}

#[test]
fn a_database_that_only_anchors_may_be_gone() {
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let mut database = Postgres::start().unwrap();
    let options = ["--redis-url", &url, "--database-url", &database.url()];
    let before = token_of(&options);
    database.kill().unwrap();
    let output = run(&[&options[..], &["--wait", "1m"]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).trim().parse::<u64>().unwrap() > before);
    assert!(text(&output.stderr).contains("PostgreSQL"), "{output:?}");
}

#[test]
fn options_that_contradict_each_other_are_a_usage_error() {
    let (redis, database) = ("redis://127.0.0.1:1", "postgres://app@127.0.0.1:1/app");
    let twice = ["--redis-url", redis, "--redis-url", redis];
    let thrice = [
        "--redis-url",
        redis,
        "--redis-url",
        redis,
        "--redis-url",
        redis,
    ];
    let epochs = ["--epochs", "nowhere"];
    let cases: [Vec<&str>; 6] = [
        vec![],
        twice.to_vec(),
        [&thrice[..], &["--database-url", database], &epochs].concat(),
        [&["--database-url", database][..], &epochs].concat(),
        [&twice[..2], &["--database-url", database], &epochs].concat(),
        vec!["--redis-url", "redis://127.0.0.1:1,127.0.0.1:2"],
    ];
    for options in cases {
        let output = run(&options);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {output:?}");
    }
}

/// A run that goes on, and the Redis with its lease.
struct Held {
    redis: Redis,
    run: Child,
}

impl Held {
    fn start() -> Self {
        let redis = Redis::start().unwrap();
        let url = redis.url();
        let times = ["--ttl", "10s", "--grace", "1s", "--wait", "1m"];
        let mut command = soldonce(["lease", "run", "nightly", "--redis-url", &url]);
        command.args(times).args(["--meta", "host=db-1"]);
        command.args(["--", "sleep", "60"]);
        let run = command.stderr(Stdio::null()).spawn().unwrap();
        let held = Self { redis, run };
        let is_held = || held.ask("inspect", &[]).status.code() == Some(0);
        until("the lease is held", PATIENCE, is_held).unwrap();
        held
    }

    fn ask(&self, what: &str, options: &[&str]) -> Output {
        let url = self.redis.url();
        let mut command = soldonce(["lease", what, "nightly", "--redis-url", &url]);
        heard(command.args(options))
    }
}

#[test]
fn an_operator_sees_the_holder_and_breaks_its_grant_and_no_other() {
    let mut held = Held::start();
    let shown = text(&held.ask("inspect", &[]).stdout);
    assert!(shown.starts_with("nightly: held for "), "{shown}");
    assert!(shown.contains("db-1"), "{shown}");
    let seen = json(&held.ask("inspect", &["--json"]));
    assert_eq!(seen["held"], true);
    assert_eq!(seen["meta"][0]["key"], "host");
    assert!(seen["remaining_ms"].as_u64().unwrap() <= 10_000);
    let token = seen["token"].as_str().unwrap();
    assert_eq!(token.len(), 16);

    let why = ["--why", "a test", "--json"];
    let wrong = held.ask("break", &[&["--token", "4711"][..], &why].concat());
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    assert_eq!(json(&wrong)["outcome"], "taken");
    assert_eq!(json(&wrong)["token"], token);
    let right = held.ask("break", &[&["--token", token][..], &why].concat());
    assert_eq!(right.status.code(), Some(0), "{right:?}");
    assert_eq!(json(&right)["outcome"], "released");

    assert_eq!(
        held.run.wait().unwrap().code(),
        Some(112),
        "the holder learns it"
    );
    let free = held.ask("inspect", &["--json"]);
    assert_eq!(free.status.code(), Some(1));
    assert_eq!(json(&free)["held"], false);
    let again = held.ask("break", &[&["--token", token][..], &why].concat());
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(json(&again)["outcome"], "already_gone");
}

#[test]
fn what_operators_ask_wrongly_is_a_usage_error() {
    let url = "redis://127.0.0.1:1";
    let no_reason = soldonce([
        "lease",
        "break",
        "nightly",
        "--token",
        "1",
        "--redis-url",
        url,
    ]);
    let no_token = ["--token", "one", "--why", "a", "--redis-url", url];
    let mut no_number = soldonce(["lease", "break", "nightly"]);
    no_number.args(no_token);
    let mut no_backend = soldonce(["lease", "inspect", "nightly"]);
    for command in [&mut { no_reason }, &mut no_number, &mut no_backend] {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let silent = soldonce(["lease", "inspect", "nightly", "--redis-url", url]).output();
    assert_eq!(silent.unwrap().status.code(), Some(3));
}

fn doctor(options: &[&str]) -> Output {
    let data = folder("no-data");
    let mut command = soldonce(["doctor", "--data", data.to_str().unwrap()]);
    heard(command.args(options))
}

/// The grade of the finding about `what`.
fn grade(findings: &Value, what: &str) -> String {
    let findings = findings.as_array().unwrap();
    let found = findings.iter().find(|finding| finding["what"] == what);
    let found = found.unwrap_or_else(|| panic!("nothing about {what}: {findings:?}"));
    found["grade"].as_str().unwrap().to_owned()
}

#[test]
fn the_doctor_tells_what_endangers_leases() {
    let redis = Redis::start().unwrap();
    let url = redis.url();
    let options = ["--redis-url", &url, "--json"];
    let healthy = doctor(&options);
    assert_eq!(healthy.status.code(), Some(0), "{healthy:?}");
    assert_eq!(grade(&json(&healthy), "role is primary"), "good");

    redis.cli(&["CONFIG", "SET", "maxmemory", "100mb"]).unwrap();
    redis
        .cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .unwrap();
    let evicting = doctor(&options);
    assert_eq!(evicting.status.code(), Some(1), "{evicting:?}");
    let shown = text(&doctor(&options[..2]).stdout);
    assert!(
        shown.contains("WRONG") && shown.contains("noeviction"),
        "{shown}"
    );
}

#[test]
fn the_doctor_of_a_server_that_hides_its_settings() {
    let users = "user default on nopass ~* &* +@all -config\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let output = doctor(&["--redis-url", &redis.url(), "--json"]);
    let findings = json(&output);
    let hidden = findings.as_array().unwrap().iter();
    let hidden = hidden.filter(|finding| finding["grade"] == "not_verifiable");
    assert!(hidden.count() > 0, "{findings:#}");
    assert_eq!(
        output.status.code(),
        Some(0),
        "what cannot be seen is not wrong"
    );
}

#[test]
fn the_doctor_tells_a_backend_that_is_not_there_or_not_prepared() {
    let gone = doctor(&["--redis-url", "redis://127.0.0.1:1", "--json"]);
    assert_eq!(gone.status.code(), Some(1), "{gone:?}");
    assert_eq!(grade(&json(&gone), "lease backend"), "wrong");
    let server = Postgres::options().durable().start().unwrap();
    let url = server.url();
    let options = ["--database-url", &url, "--json"];
    let mut free = soldonce(["lease", "inspect", "nightly", "--database-url", &url]);
    let free = heard(&mut free);
    assert_eq!(free.status.code(), Some(1), "{free:?}");
    assert_eq!(text(&free.stdout), "nightly: no process holds it\n");
    let mut nothing = soldonce(["lease", "break", "nightly", "--token", "1", "--why", "gone"]);
    let nothing = heard(nothing.args(&options[..2]));
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert!(
        text(&nothing.stdout).contains("no process holds it"),
        "{nothing:?}"
    );
    let bare = doctor(&options);
    assert_eq!(bare.status.code(), Some(0), "{bare:?}");
    assert_eq!(grade(&json(&bare), "lease backend"), "remark");
    let fix = "the first `soldonce lease run` makes them";
    assert!(text(&bare.stdout).contains(fix), "{bare:?}");
    token_of(&options[..2]);
    let prepared = doctor(&options);
    assert_eq!(prepared.status.code(), Some(0), "{prepared:?}");
}
