//! `soldonce lab bench` through its own process and that of its server.

use std::process::{Command, Output};

use serde_json::{Value, json};

fn bench(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_soldonce-lab");
    Command::new(program)
        .args(["bench"])
        .args(args)
        .output()
        .unwrap()
}

fn report_of(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// All answers of a scenario, of every status.
fn answers(scenario: &Value) -> u64 {
    let statuses = scenario["statuses"].as_object().unwrap();
    statuses.values().filter_map(Value::as_u64).sum()
}

#[test]
fn every_request_of_the_echo_is_answered_and_accounted_for() {
    for more in [&[][..], &["--rate", "20000"]] {
        let args = [
            "--scenarios",
            "echo",
            "--requests",
            "500",
            "--connections",
            "4",
            "--runs",
            "2",
            "--json",
        ];
        let report = report_of(&bench(&[&args[..], more].concat()));
        let echo = &report["scenarios"][0];
        assert_eq!(echo["statuses"], json!({"200": 1_000}), "{more:?}");
        assert_eq!(echo["errors"], json!({}));
        assert_eq!(
            (&echo["ratio_permille"], &echo["missed"]),
            (&1_000.into(), &0.into())
        );
    }
}

#[test]
fn a_quick_run_measures_everything_on_the_real_server_and_leaves_sound_ledgers() {
    let report = report_of(&bench(&[
        "--quick",
        "--connections",
        "8",
        "--runs",
        "1",
        "--json",
    ]));
    let names: Vec<_> = report["scenarios"]
        .as_array()
        .unwrap()
        .iter()
        .map(|scenario| scenario["name"].as_str().unwrap())
        .collect();
    let expected = [
        "echo",
        "refusals",
        "refusals-postgres",
        "refusals-postgres-keyed",
        "holds",
        "holds-spread",
        "confirm",
        "snapshot",
        "snapshot-moving",
        "sqlite",
    ];
    assert_eq!(names, expected);
    let open = report["open"]["scenarios"].as_array().unwrap();
    assert_eq!(open.len(), 2);
    for scenario in report["scenarios"].as_array().unwrap().iter().chain(open) {
        assert_eq!(scenario["as_expected"], json!(true), "{scenario}");
        assert_eq!(scenario["errors"], json!({}), "{scenario}");
        assert_eq!(answers(scenario), 300, "{scenario}");
        let has_ledger = !["echo", "sqlite"].contains(&scenario["name"].as_str().unwrap());
        let violations = if has_ledger { json!(0) } else { Value::Null };
        assert_eq!(scenario["violations"], violations, "{scenario}");
    }
    let only = |at: usize| report["scenarios"][at]["statuses"].clone();
    assert_eq!(
        [only(1), only(2), only(3), only(4)],
        [
            json!({"409": 300}),
            json!({"409": 300}),
            json!({"409": 300}),
            json!({"201": 300})
        ]
    );
    let goals: Vec<_> = report["goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| &goal["id"])
        .collect();
    assert_eq!(goals, ["P2", "P1", "P3", "P15", "P4"]);
}

#[test]
fn calls_are_measured_beside_a_bare_tonic_echo() {
    let args = ["--transport", "grpc", "--quick", "--connections", "8"];
    let report = report_of(&bench(&[&args[..], &["--runs", "1", "--json"]].concat()));
    assert!(report["open"].is_null());
    let scenarios = report["scenarios"].as_array().unwrap();
    let answered: Vec<_> = scenarios
        .iter()
        .map(|scenario| (&scenario["name"], &scenario["statuses"]))
        .collect();
    let (ok, refused) = (json!({"0": 300}), json!({"9": 300}));
    assert_eq!(
        answered,
        [
            (&json!("echo"), &ok),
            (&json!("refusals"), &refused),
            (&json!("holds"), &ok)
        ]
    );
    for scenario in scenarios {
        assert_eq!(scenario["as_expected"], json!(true), "{scenario}");
    }
    let goals = report["goals"].as_array().unwrap();
    let goals: Vec<_> = goals.iter().map(|goal| &goal["id"]).collect();
    assert_eq!(goals, ["P20", "P21"]);
}

#[test]
fn halls_are_compared_filled_and_started_again() {
    let report = report_of(&bench(&[
        "--scenarios",
        "halls",
        "--quick",
        "--runs",
        "1",
        "--json",
    ]));
    assert_eq!(report["seats"], json!(10_000));
    assert_eq!(report["violations"], json!(0));
    assert_eq!(report["small_per_s"].as_array().unwrap().len(), 1);
    assert_eq!(report["goals"].as_array().unwrap().len(), 3);
}

#[test]
fn an_unknown_scenario_is_named_with_the_known_ones() {
    let output = bench(&["--scenarios", "ecko"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("ecko") && error.contains("known are echo"),
        "{error}"
    );
}

#[test]
fn an_option_that_would_say_nothing_is_refused_with_its_name() {
    for (args, named) in [
        ("--viewers 5 --scenarios echo", "--scenarios"),
        ("--viewers 5 --transport grpc", "--transport"),
        ("--viewers 5 --servers 2 --data .", "--data"),
        ("--scenarios halls --transport grpc", "--transport grpc: "),
        ("--scenarios halls --rate 9", "--rate 9: "),
        ("--scenarios sqlite --rate 9", "known with --rate are echo"),
    ] {
        let output = bench(&args.split(' ').collect::<Vec<_>>());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args}: {error}");
        assert!(error.contains(named), "{args}: {error}");
    }
}

#[test]
fn a_short_endurance_has_every_answer_on_both_ledgers() {
    for ledger in ["folder", "postgres"] {
        let program = env!("CARGO_BIN_EXE_soldonce-lab");
        let args = ["endure", "--seconds", "3", "--rate", "300", "--json"];
        let output = Command::new(program)
            .args(args)
            .args(["--ledger", ledger])
            .output()
            .unwrap();
        let report = report_of(&output);
        assert_eq!(report["violations"], json!([]), "{report}");
        assert_eq!(answers(&report), 900, "{report}");
        assert_eq!(report["samples"].as_array().unwrap().len(), 30);
    }
}

#[test]
fn viewers_are_measured_beside_a_bare_fan_out() {
    let args = ["--viewers", "20", "--seconds", "1", "--runs", "1", "--json"];
    let on_a_folder = report_of(&bench(&args));
    let on_servers = report_of(&bench(&[&args[..], &["--servers", "2"]].concat()));
    for report in [on_a_folder, on_servers] {
        viewers_are_measured(&report);
    }
}

#[test]
fn viewers_come_back_to_a_server_that_was_killed() {
    let args = ["--viewers", "20", "--seconds", "1", "--runs", "1", "--json"];
    let report = report_of(&bench(&[&args[..], &["--restart"]].concat()));
    assert_eq!(report["violations"], 0);
    let run = &report["runs"][0];
    assert!(run["back_ms"].as_u64() > Some(0), "{run}");
    assert!(
        run["before_p99"].is_u64() && run["back_p99"].is_u64(),
        "{run}"
    );
}

fn viewers_are_measured(report: &Value) {
    assert_eq!(report["violations"], 0);
    let run = report.pointer("/runs/0").unwrap();
    for figure in [
        "alone_per_s",
        "watched_per_s",
        "frames_a_second",
        "delay_p99",
        "frame_cpu_ns",
    ] {
        assert!(run[figure].is_u64(), "{figure}: {run}");
    }
    // Each viewer gets a frame per tick, and so does each socket of the ceiling.
    let (frames, bytes) = (&run["frames_a_second"], &run["bytes_a_frame"]);
    assert!(
        frames.as_u64() > Some(20) && bytes.as_u64() > Some(60),
        "{run}"
    );
    let names: Vec<_> = report["goals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|goal| &goal["id"])
        .collect();
    assert_eq!(names, ["P12", "P17", "P17", "P17", "P17", "P18", "P18"]);
}
