//! `soldonce lab race` as a user runs it, on servers that it starts itself and on those it is given.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::redis::Redis;
use soldonce_testkit::{PATIENCE, until};

fn race(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soldonce-lab"))
        .args(["race"])
        .args(args)
        .output()
        .unwrap()
}

fn report_of(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.is_empty(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A count, or the sum of counts by name.
fn sum(counts: &Value) -> u64 {
    match counts.as_object() {
        Some(counts) => counts.values().filter_map(Value::as_u64).sum(),
        None => counts.as_u64().unwrap(),
    }
}

/// Every cell with the name of its strategy.
fn cells(report: &Value) -> Vec<(&str, &Value)> {
    let strategies = report["strategies"].as_array().unwrap();
    let of = |strategy: &'_ Value| strategy["cells"].as_array().unwrap().len();
    assert!(strategies.iter().all(|strategy| of(strategy) > 0));
    strategies
        .iter()
        .flat_map(|strategy| {
            let name = strategy["name"].as_str().unwrap();
            let cells = strategy["cells"].as_array().unwrap();
            cells.iter().map(move |cell| (name, cell))
        })
        .collect()
}

/// Every request of a cell is accounted for.
fn is_accounted_for((name, cell): (&str, &Value)) {
    let all = sum(&cell["buyers"]) * sum(&cell["rounds"]);
    let parts = ["winners", "refused", "errors"].map(|part| sum(&cell[part]));
    assert_eq!(parts.iter().sum::<u64>(), all, "{name}: {cell}");
    assert_eq!(sum(&cell["requests"]), all, "{name}: {cell}");
}

/// Only `naive` sells twice, and is reported; every other strategy has one winner in each round.
fn judge((name, cell): (&str, &Value)) {
    is_accounted_for((name, cell));
    let counts = ["double_sales", "sold_twice", "violations"].map(|count| sum(&cell[count]));
    if name == "naive" {
        let [double_sales, sold_twice, violations] = counts;
        assert!(sold_twice >= double_sales, "{cell}");
        // The first winner of a round takes seats that are free.
        let [winners, rounds, seats] = ["winners", "rounds", "seats"].map(|of| sum(&cell[of]));
        assert!(double_sales <= (winners - rounds) * seats, "{cell}");
        assert!(violations >= sold_twice, "{cell}");
    } else {
        assert_eq!(counts, [0, 0, 0], "{name}: {cell}");
        assert_eq!(sum(&cell["errors"]), 0, "{name}: {cell}");
        // Any two buyers of a round want a seat in common: one of them has it. Votes of a Redlock may
        // split so often that none has.
        if !name.starts_with("redlock") {
            assert_eq!(cell["winners"], cell["rounds"], "{name}: {cell}");
        }
        assert_eq!(cell["acknowledged"], cell["recorded"], "{name}: {cell}");
    }
}

#[test]
fn naive_sells_twice_and_the_auditor_says_so_the_others_do_not() {
    let report = report_of(&race(&[
        "--strategies",
        "naive,naive+guards,pessimistic,constraint,queue",
        "--buyers",
        "5,20",
        "--rounds",
        "10",
        "--json",
    ]));
    assert_eq!(report["faults"], serde_json::json!([]));
    let cells = cells(&report);
    assert_eq!(
        cells.len(),
        5 * 2 * 3,
        "one seat, three, and three both ways"
    );
    cells.into_iter().for_each(judge);
    let naive = &report["strategies"][0];
    assert!(sum(&naive["double_sales"]) > 0, "{naive}");
    // In which cell it does so is up to the machine.
    let mut first = naive["cells"].as_array().unwrap().iter();
    let first = first.find_map(|cell| cell["first"][0].as_str()).unwrap();
    assert!(first.contains("VIOLATION"), "{first}");
}

#[test]
fn only_naive_sells_twice_in_the_whole_matrix() {
    let strategies = "naive,naive+guards,pessimistic,nowait,optimistic,constraint,lease,\
                      lease+guards,redlock,redlock+guards,queue";
    let report = report_of(&race(&[
        "--strategies",
        strategies,
        "--rounds",
        "1",
        "--json",
    ]));
    assert_eq!(report["faults"], serde_json::json!([]));
    let cells = cells(&report);
    let shapes = 3;
    let buyers = [5, 10, 20, 50, 200];
    assert_eq!(
        cells.len(),
        strategies.split(',').count() * buyers.len() * shapes
    );
    let asked: BTreeSet<u64> = cells.iter().map(|(_, cell)| sum(&cell["buyers"])).collect();
    assert_eq!(asked, BTreeSet::from(buyers));
    cells.into_iter().for_each(judge);
    assert!(sum(&report["strategies"][0]["double_sales"]) > 0);
}

#[test]
fn rows_locked_as_they_come_end_in_deadlocks_and_sell_nothing_twice() {
    let report = report_of(&race(&[
        "--strategies",
        "unsorted,pessimistic",
        "--buyers",
        "10",
        "--seats",
        "3",
        "--rounds",
        "5",
        "--json",
    ]));
    assert_eq!(report["faults"], serde_json::json!([]));
    let deadlocks = |name: &str, shape: &str| {
        let cells = cells(&report);
        let cell = cells
            .iter()
            .find(|(of, cell)| *of == name && cell["shape"] == shape);
        let (_, cell) = cell.unwrap();
        cell["errors"]["deadlock 40P01"].as_u64().unwrap_or(0)
    };
    assert!(deadlocks("unsorted", "crossed") > 0, "{report:#}");
    assert_eq!(deadlocks("unsorted", "same"), 0);
    assert_eq!(deadlocks("pessimistic", "crossed"), 0);
    cells(&report).into_iter().for_each(is_accounted_for);
}

#[test]
fn a_holder_that_is_stopped_sells_twice_without_guards_and_is_refused_with_them() {
    let report = report_of(&race(&[
        "--strategies",
        "lease,lease+guards,redlock,redlock+guards",
        "--buyers",
        "5",
        "--seats",
        "1",
        "--rounds",
        "1",
        "--json",
    ]));
    assert_eq!(report["faults"], serde_json::json!([]));
    let scene = |strategy: &str, guards: &str, refused: Option<&str>| {
        let sold_twice = refused.is_none();
        serde_json::json!({
            "strategy": strategy, "guards": guards, "sold_twice": sold_twice, "refused": refused,
        })
    };
    let expected = [
        scene("lease", "none", None),
        scene("lease+guards", "key_and_fence", Some("stale_fence")),
        scene("redlock", "none", None),
        scene("redlock+guards", "key_and_fence", Some("sold_already")),
    ];
    assert_eq!(report["stopped"], serde_json::json!(expected));
}

#[test]
fn on_given_servers_it_leaves_nothing_behind_and_tells_no_address() {
    let database = Postgres::options().durable().start().unwrap();
    let redis = Redis::start().unwrap();
    let nodes = Redis::independent(3).unwrap();
    let urls: Vec<_> = nodes.iter().map(Redis::url).collect();
    let output = race(&[
        "--strategies",
        "lease,redlock",
        "--buyers",
        "5",
        "--seats",
        "1",
        "--rounds",
        "1",
        "--database-url",
        &database.url(),
        "--redis-url",
        &redis.url(),
        "--redlock-urls",
        &urls.join(","),
    ]);
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    for word in ["lease", "redlock", "1 in 1", "the auditor agrees"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains("://"), "{text}");
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'soldonce%'";
    assert_eq!(database.query(left).unwrap(), "0");
}

#[test]
fn a_race_that_is_ended_by_a_signal_clears_up_behind_itself() {
    let database = Postgres::options().durable().start().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_soldonce-lab"))
        .args(["race", "--strategies", "queue", "--rounds", "1000"])
        .args(["--database-url", &database.url()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'soldonce%'";
    // The ledger's tables are there, and events in them.
    let events =
        "SELECT count(*) FROM pg_stat_user_tables WHERE relname = 'units' AND n_tup_ins > 0";
    until("the race runs", PATIENCE, || {
        database.query(events).is_ok_and(|count| count == "1")
    })
    .unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    let mut text = String::new();
    child.stderr.unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(3), "{text}");
    assert!(text.contains("ended by a signal"), "{text}");
    assert_eq!(database.query(schemas).unwrap(), "0");
}

#[test]
fn a_race_in_which_naive_sells_nothing_twice_is_refused() {
    let output = race(&["--strategies", "naive", "--buyers", "1", "--rounds", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("VIOLATION naive sold nothing twice"),
        "{text}"
    );
    assert_eq!(text.contains("A debug build"), cfg!(debug_assertions));
}

#[test]
fn an_unknown_strategy_is_named_with_the_known_ones() {
    let output = race(&["--strategies", "nave"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("--strategies nave: known are all, naive, naive+guards"),
        "{error}"
    );
}

#[test]
fn the_page_shows_every_strategy_that_raced() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("race.html");
    let output = race(&[
        "--strategies",
        "naive,queue",
        "--buyers",
        "5,20",
        "--rounds",
        "5",
        "--report",
        file.to_str().unwrap(),
    ]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let page = std::fs::read_to_string(&file).unwrap();
    for text in [
        "<h1>20 buyers want the same seat</h1>",
        "<article class=\"card naive\">",
        "<article class=\"card queue\">",
        "SELECT seat, buyer FROM lab_seats",
        "-- store_batch\n",
        "--strategies naive,queue --buyers 5,20 --seats 1,3 --rounds 5",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_eq!(
        page.matches("<polyline").count(),
        2 * 2 * 3,
        "strategies x plots x shapes"
    );
}

#[test]
fn ceilings_are_measured_beside_each_other_and_held_against_the_goals() {
    let report = report_of(&race(&[
        "--ceilings",
        "--strategies",
        "naive,pessimistic,queue",
        "--seconds",
        "1",
        "--runs",
        "1",
        "--json",
    ]));
    assert_eq!(report["faults"], serde_json::json!([]));
    let names = |part: &str| -> Vec<&str> {
        let all = report[part].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap()).collect()
    };
    assert_eq!(
        names("bare"),
        [
            "bare insert",
            "bare batch",
            "bare script",
            "engine, embedded",
            "engine, shared",
            "shield alone"
        ]
    );
    assert_eq!(names("strategies"), ["pessimistic", "queue"]);
    for one in report["bare"].as_array().unwrap() {
        assert!(sum(&one["per_s"]) > 0, "{one}");
        assert_eq!(one["failed"], serde_json::json!({}), "{one}");
    }
    for one in report["strategies"].as_array().unwrap() {
        for rate in ["holds_per_s", "refusals_per_s"] {
            assert!(sum(&one[rate]) > 0, "{rate}: {one}");
        }
        // The others sell at once.
        let confirms = sum(&one["confirms_per_s"]) > 0;
        assert_eq!(confirms, one["name"] == "queue", "{one}");
        assert_eq!(one["failed"], serde_json::json!({}), "{one}");
    }
    let goals = report["goals"].as_array().unwrap();
    let goals: Vec<_> = goals.iter().map(|goal| &goal["id"]).collect();
    assert_eq!(goals, ["P6", "P7", "P8"]);
}
