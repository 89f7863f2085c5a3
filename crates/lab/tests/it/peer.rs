//! `soldonce lab storm --peer` as a user runs it: the product and the peer, for real, on services that
//! the command starts itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use soldonce_testkit::{PEER, workspace};

const USERS: u64 = 20;
const SEATS: u64 = 3;

fn storm(peer: &Path, extra: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soldonce-lab"))
        .args(["storm", "--runs", "1", "--seconds", "1", "--json"])
        .args(["--users", &USERS.to_string(), "--peer"])
        .arg(peer)
        .args(extra)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn peer() -> PathBuf {
    workspace().unwrap().join(PEER)
}

fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("no count: {value}"))
}

/// Three winners in the one run, every other request refused, none without an answer; how many there were.
fn answered(contender: &Value) -> u64 {
    assert_eq!(contender["winners"], json!([SEATS]), "{contender}");
    assert_eq!(contender["errors"], json!({}), "{contender}");
    let statuses = contender["statuses"].as_object().unwrap();
    let named: Vec<_> = statuses.keys().map(String::as_str).collect();
    assert_eq!(named, ["201", "409"], "{contender}");
    let answered: u64 = statuses.values().map(count).sum();
    assert_eq!(answered, count(&contender["sent"]), "{contender}");
    assert_eq!(statuses.get("201"), Some(&json!(SEATS)), "{contender}");
    answered
}

#[test]
fn the_product_and_every_flow_of_the_peer_sell_each_seat_once() {
    // Two processes, so that what one of them keeps to itself would be sold twice.
    let output = storm(&peer(), &[], &[("PEER_PROCESSES", "2")]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["faults"], json!([]));
    let contenders = report["contenders"].as_array().unwrap();
    let names: Vec<_> = contenders.iter().map(|one| &one["name"]).collect();
    assert_eq!(
        names,
        [
            "embedded",
            "shared",
            "peer distributed",
            "peer fail-fast",
            "peer pessimistic",
            "peer redis"
        ]
    );
    let mut requests = 0;
    for contender in contenders {
        requests += answered(contender);
        for figure in [
            "rate_per_s",
            "rate_times_permille",
            "latency_times_permille",
        ] {
            assert!(count(&contender[figure]) > 0, "{figure}: {contender}");
        }
        assert!(count(&contender["latency_us"]["avg"]) > 0, "{contender}");
        assert_eq!(contender["rates_per_s"].as_array().unwrap().len(), 1);
    }
    // A machine that stands still for the second of one of them leaves its users one request each.
    let users = USERS * u64::try_from(contenders.len()).unwrap();
    assert!(requests > users, "users sent further requests: {report}");
    let rival = &contenders[2];
    assert_eq!(
        count(&rival["rate_times_permille"]),
        1_000,
        "compared with itself"
    );
    let setting = rival["setting"].as_str().unwrap();
    assert!(setting.contains("distributed (processes 2,"), "{setting}");
    let goals = report["goals"].as_array().unwrap();
    assert_eq!(
        goals.len(),
        8,
        "rate and latency of two, each compared with two"
    );
    for goal in goals {
        assert_eq!(goal["id"], "P10");
        assert!(["goal", "missed"].contains(&goal["met"].as_str().unwrap()));
    }
    assert_eq!(report["services"].as_array().unwrap().len(), 3);
    assert_eq!(report["article"]["rate_per_s"], json!(572));
}

/// A copy of the peer in which a hold in Redis takes over the one that is there.
fn peer_that_sells_twice() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peer-{}", std::process::id()));
    fs::create_dir_all(copy.join("flows")).unwrap();
    for folder in ["", "flows"] {
        for file in fs::read_dir(peer().join(folder)).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), copy.join(folder).join(file.file_name())).unwrap();
            }
        }
    }
    symlink(peer().join("node_modules"), copy.join("node_modules")).unwrap();
    let flow = copy.join("flows/redis.js");
    let right = fs::read_to_string(&flow).unwrap();
    let wrong = right.replace(r#"settings.holdMs, "NX")"#, "settings.holdMs)");
    assert_ne!(wrong, right, "nothing was planted");
    fs::write(flow, wrong).unwrap();
    copy
}

#[test]
fn a_peer_that_sells_twice_is_named_and_refused() {
    let planted = peer_that_sells_twice();
    let output = storm(&planted, &["--cluster"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let faults = report["faults"].as_array().unwrap();
    assert!(!faults.is_empty());
    for fault in faults {
        let fault = fault.as_str().unwrap();
        assert!(fault.starts_with("peer redis: "), "{fault}");
        assert!(
            fault.contains("winners of 3 seats") || fault.contains("are there"),
            "{fault}"
        );
    }
    fs::remove_dir_all(planted).unwrap();
}

#[test]
fn a_folder_without_a_peer_or_without_its_packages_is_named_with_its_remedy() {
    let bare = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-peer");
    fs::create_dir_all(&bare).unwrap();
    fs::write(bare.join("server.js"), "").unwrap();
    let error_of = |folder: &Path| {
        let output = storm(folder, &[], &[]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        text
    };
    let text = error_of(&bare);
    assert!(text.contains("npm ci --prefix"), "{text}");
    let text = error_of(&workspace().unwrap().join("deploy/k6"));
    assert!(text.contains("the folder is deploy/peer"), "{text}");
}
