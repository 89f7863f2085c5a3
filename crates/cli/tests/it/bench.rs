//! `soldonce lab bench` through its own process and that of its server.

use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_soldonce");
    Command::new(program)
        .args(["lab", "bench"])
        .args(args)
        .output()
        .unwrap()
}

#[test]
fn every_request_of_the_echo_is_answered_and_accounted_for() {
    for more in [
        ["--server", "child"],
        ["--server", "here"],
        ["--rate", "20000"],
    ] {
        let args = [
            "--requests",
            "500",
            "--connections",
            "4",
            "--runs",
            "2",
            "--json",
        ];
        let output = bench(&[&args[..], &more[..]].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let echo = &report["scenarios"][0];
        assert_eq!(
            echo["statuses"],
            serde_json::json!({"200": 1_000}),
            "{more:?}"
        );
        assert_eq!(echo["errors"], serde_json::json!({}));
        assert_eq!(
            (&echo["ratio_permille"], &echo["missed"]),
            (&1_000.into(), &0.into())
        );
    }
}

#[test]
fn an_unknown_scenario_is_named_with_the_known_ones() {
    let output = bench(&["--scenarios", "ecko"]);
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("ecko") && error.contains("known are echo"),
        "{error}"
    );
}
