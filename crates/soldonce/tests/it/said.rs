//! What the program says to people who ask for what cannot be: by the name of what they gave.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use soldonce_engine::keys::ADOPTED_NAME;
use soldonce_testkit::{PATIENCE, Port, until, workspace};

use crate::crash::server::{PROGRAM, Server};
use crate::program;
use crate::store::folder;

fn run(arguments: &[&str], at: &Path) -> (Option<i32>, String) {
    program::said(Command::new(PROGRAM).args(arguments).current_dir(at))
}

/// What the program says when it ends with this code.
fn said(arguments: &[&str], at: &Path, code: i32) -> String {
    let (ended, said) = run(arguments, at);
    assert_eq!(ended, Some(code), "{said}");
    said
}

#[test]
fn keys_make_no_ledger() {
    let at = folder("said-keys");
    let refused = said(&["keys", "create", "--scope", "sell"], &at, 3);
    let fix =
        "there is no ledger in ./data: name --data, --database-url, or --url of a running server";
    assert!(refused.contains(fix), "{refused}");
    assert!(!at.join("data").exists());
}

#[test]
fn a_scope_that_there_is_not_is_refused_with_those_that_there_are() {
    let at = folder("said-scope");
    let refused = said(&["keys", "create", "--scope", "root"], &at, 2);
    let words = "[possible values: admin, sell, read, lease]";
    assert!(refused.contains(words), "{refused}");
}

#[test]
fn a_name_that_no_key_may_have_is_refused_before_a_ledger_is_looked_for() {
    let at = folder("said-key-name");
    let line = ["keys", "create", "--scope", "sell", "--name"];
    for (name, rule) in [
        (" ", "it is blank"),
        ("two\nlines", "without control characters"),
        (ADOPTED_NAME, "keys of the setting `admin_key`"),
    ] {
        let refused = said(&[&line[..], &[name]].concat(), &at, 2);
        assert!(refused.contains(rule), "{refused}");
    }
}

#[test]
fn keys_through_a_server_name_what_is_wrong() {
    let at = folder("said-server");
    let server = Server::start(&at.join("data")).unwrap();
    let url = format!("http://{}", server.address);
    let through = |key: &str, arguments: &[&str], code| {
        let all = [arguments, &["--url", &url, "--admin-key", key]].concat();
        said(&all, &at, code)
    };
    let stranger = through("nobodys-admin-key", &["keys", "list"], 3);
    assert!(stranger.contains("--admin-key: "), "{stranger}");
    let admin = crate::crash::server::ADMIN_KEY;
    let mut within_an_image = Command::new(PROGRAM);
    within_an_image.args(["keys", "list", "--url", &url]);
    within_an_image
        .env("SOLDONCE_DATA", "/data")
        .env("SOLDONCE_ADMIN_KEY", admin);
    program::ends_well(&mut within_an_image);
    for flag in ["--data", "--database-url"] {
        let both = said(
            &["keys", "list", "--url", &url, flag, "postgres://elsewhere"],
            &at,
            2,
        );
        assert!(both.contains(&format!("--url and {flag}: ")), "{both}");
    }
    let no_id = said(&["keys", "revoke", "cal_nope", "--url", &url], &at, 2);
    assert!(no_id.contains("this is no key's id"), "{no_id}");
    let data = at.join("data").display().to_string();
    let busy = said(&["keys", "list", "--data", &data], &at, 3);
    assert!(busy.contains("a running server takes --url"), "{busy}");
    let revoke = ["keys", "revoke", "cal_00000000000000000000000000"];
    let why = "there is no API key of this id";
    let unknown = through(admin, &revoke, 1);
    assert!(unknown.contains(why), "{unknown}");
    let told = through(admin, &[&revoke[..], &["--json"]].concat(), 1);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert!(told["error"].as_str().unwrap().contains(why), "{told}");
}

#[test]
fn who_asks_the_public_address_is_told_of_that_for_operators() {
    let at = folder("said-admin-listen");
    let data = at.join("data");
    let mut command = crate::crash::server::serving(&data);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    let server = Server::run(command, &data).unwrap();
    let url = format!("http://{}", server.address);
    let key = crate::crash::server::ADMIN_KEY;
    let keys = said(&["keys", "list", "--url", &url, "--admin-key", key], &at, 3);
    assert!(keys.contains("give that of --admin-listen"), "{keys}");
    let drop = [
        "events",
        "drop",
        "hamlet",
        "--url",
        &url,
        "--admin-key",
        key,
    ];
    let drop = said(&drop, &at, 3);
    assert!(drop.contains("give that of --admin-listen"), "{drop}");
    let status = said(&["status", "--url", &url], &at, 1);
    assert!(status.contains("a server with --admin-listen"), "{status}");
}

#[test]
fn an_address_that_is_taken_names_its_flag() {
    let at = folder("said-address");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--admin-listen"] {
        // The last of two counts, and the other is free.
        let both = ["serve", "--listen", "127.0.0.1:0", flag, &taken];
        let alone = ["serve", flag, &taken];
        let arguments: &[&str] = if flag == "--listen" { &alone } else { &both };
        let refused = said(arguments, &at, 3);
        let fix = format!("choose another with {flag}");
        assert!(refused.contains(&fix), "{refused}");
    }
}

#[test]
fn an_empty_variable_is_none() {
    let at = folder("said-empty");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--print-settings"]).current_dir(&at);
    command
        .env("SOLDONCE_ADMIN_KEY", "")
        .env("SOLDONCE_LISTEN", "");
    let told = program::ends_well(&mut command);
    assert!(
        told.contains("made at the first start  (default)"),
        "{told}"
    );
    assert!(told.contains("127.0.0.1:8080  (default)"), "{told}");
}

/// A misspelt variable would leave its setting at the default without a word.
#[test]
fn a_variable_that_nothing_reads_is_told_at_the_start() {
    let at = folder("said-variable");
    let data = at.join("data");
    let mut command = crate::crash::server::serving(&data);
    command
        .env("SOLDONCE_LIMIT_HOLD", "12")
        .env("SOLDONCE_SOMETHING_ELSE", "x")
        .env("SOLDONCE_LIMIT_SHARE", "20%");
    let _server = Server::run(command, &data).unwrap();
    let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
    let told = |text: &str| log.lines().any(|line| line.contains(text));
    assert!(
        told(
            "SOLDONCE_LIMIT_HOLD is set and means nothing to this program; is it SOLDONCE_LIMIT_HELD?"
        ),
        "{log}"
    );
    assert!(told("SOLDONCE_SOMETHING_ELSE is set"), "{log}");
    for known in ["SOLDONCE_LIMIT_SHARE is", "SOLDONCE_ADMIN_KEY is"] {
        assert!(!told(known), "{log}");
    }
}

#[test]
fn a_redis_that_is_away_is_told_before_the_first_request() {
    let at = folder("said-redis");
    let closed = Port::reserve().unwrap();
    let url = format!("redis://127.0.0.1:{}", closed.number());
    let data = at.join("data");
    let mut command = crate::crash::server::serving(&data);
    command.args(["--redis-url", &url]);
    let _server = Server::run(command, &data).unwrap();
    let log = data.with_extension("log");
    let is_told = || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("rate limits are not shared")
    };
    until("the log tells it", PATIENCE, is_told).unwrap();
}

/// Everybody who opens the page would get tickets for nothing: that is said, or the server does not start.
#[test]
fn open_shoppers_without_a_provider_must_be_meant() {
    let at = folder("said-free");
    let refused = said(&["serve", "--shoppers", "open"], &at, 2);
    for word in ["free_sales: say `on` or `off`", "for nothing", "stripe_key"] {
        assert!(refused.contains(word), "{refused}");
    }
    assert!(!at.join("data").exists());
    for meant in ["--free-sales", "--free-sales=off"] {
        let all = ["serve", "--shoppers", "open", meant, "--print-settings"];
        let shown = said(&all, &at, 0);
        assert!(shown.contains("free_sales"), "{shown}");
    }
    std::fs::remove_dir_all(&at).unwrap();
}

/// Where servers, their database and their Redis talk in clear text is for the operator to know.
#[test]
fn a_link_to_another_machine_that_is_not_encrypted_is_told() {
    let at = folder("said-clear");
    // The kernel takes it for this machine, where nothing listens; it is no loopback address.
    let remote = "redis://:hush@0.0.0.0:9";
    let data = at.join("data");
    let mut command = crate::crash::server::serving(&data);
    command.args(["--redis-url", remote]);
    let _server = Server::run(command, &data).unwrap();
    let log = std::fs::read_to_string(data.with_extension("log")).unwrap();
    assert!(
        log.contains("a link to another machine: it is not encrypted"),
        "{log}"
    );
    assert!(
        log.contains("redis_url") && log.contains("0.0.0.0"),
        "{log}"
    );
    assert!(!log.contains("hush"), "{log}");
    let (_, told) = run(&["doctor", "--shield-url", remote], &at);
    assert!(
        told.contains("remark  link: shield_url leads to 0.0.0.0"),
        "{told}"
    );
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn a_plan_of_another_format_is_refused_with_what_to_write() {
    let at = folder("said-chart");
    let plan = workspace().unwrap().join("charts/chapel.pretix.json");
    let check = ["chart", "check", plan.to_str().unwrap()];
    let told = said(&check, &at, 1);
    assert!(told.contains("give --format pretix"), "{told}");
    let told = said(&[&check[..], &["--json"]].concat(), &at, 1);
    let told: Value = serde_json::from_str(&told).unwrap();
    let error = told["error"].as_str().unwrap();
    assert!(
        error.contains(r#"{"format":"pretix","plan":..}"#),
        "{error}"
    );
    let whole = said(
        &[&check[..], &["--format", "pretix", "--json"]].concat(),
        &at,
        0,
    );
    assert!(whole.contains("\"seats\""), "{whole}");
}
