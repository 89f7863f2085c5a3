//! What operators are told of settings that are wrong, and of a data folder that is empty, no folder, or
//! holds no ledger.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use soldonce_clock::{Clock, SystemClock};

use crate::crash::client::Ask;
use crate::crash::server::{ADMIN_KEY, PROGRAM, Server, serving, without_admin_key};
use crate::program::said;
use crate::store::folder;

/// The exit code of the program in this folder, and what it says.
fn run(place: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .current_dir(place)
        .env_remove("SOLDONCE_DATA")
        .env_remove("SOLDONCE_DATABASE_URL");
    said(&mut command)
}

#[test]
fn where_no_ledger_is_the_option_that_names_another_is_told() {
    let place = folder("no-ledger");
    for command in [&["verify"][..], &["why", "hamlet", "A-12"]] {
        let (code, said) = run(&place, command);
        assert_eq!(code, Some(3), "{said}");
        let hint = "there is no ledger in `./data`; name its folder with --data";
        assert!(said.contains(hint), "{said}");
    }
    let (code, said) = run(&place, &["migrate", "--data", "soldonce-demo"]);
    assert_eq!(code, Some(0), "{said}");
    for command in [&["verify"][..], &["why", "hamlet", "A-12"]] {
        let (_, said) = run(&place, command);
        assert!(said.contains("--data ./soldonce-demo"), "{said}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_folder_that_cannot_be_looked_into_is_not_called_empty() {
    let place = folder("closed");
    std::fs::write(place.join("data"), "").unwrap();
    for command in [
        &["verify"][..],
        &["why", "hamlet", "A-12"],
        &["keys", "list", "--data", "data"],
    ] {
        let (code, said) = run(&place, command);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("cannot be used: Not a directory"), "{said}");
        assert!(!said.contains("there is no ledger"), "{said}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_folder_of_a_flag_wins_over_a_database_of_the_environment() {
    let place = folder("flag-wins");
    let (_, said) = run(&place, &["migrate", "--data", "copy"]);
    let url = "postgres://app@127.0.0.1:1/none";
    let with_url = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(&place);
        command.env("SOLDONCE_DATABASE_URL", url);
        crate::program::said(&mut command)
    };
    for command in [&["verify"][..], &["keys", "list"]] {
        let named = with_url(&[command, &["--data", "copy"]].concat());
        assert_eq!(named.0, Some(0), "{said} {}", named.1);
        // As an image sets both.
        let mut equal = Command::new(PROGRAM);
        equal
            .args(command)
            .args(["--data", "copy"])
            .current_dir(&place);
        equal
            .env("SOLDONCE_DATA", "copy")
            .env("SOLDONCE_DATABASE_URL", url);
        let equal = crate::program::said(&mut equal);
        assert_eq!(equal.0, Some(0), "{}", equal.1);
        let unnamed = with_url(command);
        assert_eq!(unnamed.0, Some(3), "{}", unnamed.1);
        let both = with_url(
            &[
                command,
                &["--data", "copy", "--database-url", "postgres://h/x"],
            ]
            .concat(),
        );
        assert_eq!(both.0, Some(2), "{}", both.1);
        assert!(both.1.contains("leave one out"), "{}", both.1);
    }
    std::fs::remove_dir_all(&place).unwrap();
}

/// Programs that renew certificates send it to every server.
#[test]
fn a_hangup_ends_no_service() {
    let place = folder("hangup");
    let server = Server::start(&place.join("data")).unwrap();
    server.hang_up();
    // Longer than an idle server needs to end.
    let until = SystemClock.boot().plus(Duration::from_millis(500));
    while SystemClock.boot() < until {
        let ready = server.client("ann").ask(&Ask::get("/readyz".to_owned()));
        assert!(ready.unwrap().is_success());
    }
    let status = server.stop();
    assert_eq!(status.code(), Some(0), "{status:?}");
    std::fs::remove_dir_all(&place).unwrap();
}

/// It would put events on sale there, to everybody and for test cards.
#[test]
fn a_demo_leaves_the_ledger_of_a_shop_alone() {
    let place = folder("no-demo");
    run(&place, &["migrate", "--data", "shop"]);
    let (code, said) = run(
        &place,
        &["demo", "--data", "shop", "--listen", "127.0.0.1:0"],
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no demo made"), "{said}");
    assert!(!place.join("shop/provider.jsonl").exists());
    // Its own it knows, though no payment was made there.
    for _ in 0..2 {
        let mut command = Command::new(PROGRAM);
        command.args(["demo", "--listen", "127.0.0.1:0", "--data", "own"]);
        command.current_dir(&place).stdin(Stdio::null());
        let mut demo = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        assert!(lines.any(|line| line.contains("seat map")), "it sells");
        kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
        assert_eq!(demo.wait().unwrap().code(), Some(0));
    }
    assert!(!place.join("own/provider.jsonl").exists());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_doctor_tells_a_file_that_is_no_ledger() {
    let place = folder("no-sqlite");
    let (_, said) = run(&place, &["migrate"]);
    let (_, healthy) = run(&place, &["doctor"]);
    assert!(
        healthy.contains("ok      ledger: can be read"),
        "{said}{healthy}"
    );
    std::fs::write(place.join("data/ledger.sqlite"), [0xa7; 8_192]).unwrap();
    let (code, said) = run(&place, &["doctor"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("WRONG   ledger: "), "{said}");
    assert!(said.contains("ledger.sqlite is no ledger"), "{said}");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn wrong_settings_are_a_usage_error_and_named() {
    let place = folder("settings");
    std::fs::write(place.join("bad.toml"), "lisen = \"x\"").unwrap();
    for (line, named) in [
        ("serve --listen nonsense", "listen: nonsense"),
        ("serve --admin-listen :x", "admin_listen: :x"),
        ("serve --limit-commands 5/x", "limit_commands"),
        ("serve --trusted-proxies 10.0.0.0/99", "trusted_proxies"),
        ("serve --config bad.toml", "lisen"),
        ("serve --stripe-key foo", "stripe_key"),
        ("serve --database-connections 5", "database_url"),
        ("serve --database-url foo", "database_url"),
        ("keys list --url http://h", "SOLDONCE_ADMIN_KEY"),
        ("verify --database-connections 5", "database_url"),
        ("demo --bots 100000", "--bots"),
        ("demo --listen nonsense", "listen: nonsense"),
        ("lab race --strategies foo", "--strategies foo"),
        ("lab race --connections 1", "--connections 1"),
        ("lab bench --runs 0", "--runs 0"),
        ("lab storm --url foo", "--url foo"),
        ("keys list --url foo --admin-key k", "--url foo"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (code, said) = run(&place, &words);
        assert_eq!(code, Some(2), "{line}: {said}");
        assert!(said.contains(named), "{line}: {said}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

/// The mode of each file in a folder.
fn modes(data: &Path) -> Vec<(String, u32)> {
    let files = std::fs::read_dir(data).unwrap().map(Result::unwrap);
    let mode = |file: std::fs::DirEntry| {
        let name = file.file_name().to_string_lossy().into_owned();
        (name, file.metadata().unwrap().permissions().mode() & 0o777)
    };
    files.map(mode).collect()
}

#[test]
fn every_file_of_a_ledger_is_its_owners_alone_in_an_open_folder_too() {
    let place = folder("private");
    let data = place.join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, Permissions::from_mode(0o777)).unwrap();
    for start in ["a new ledger", "one that others could read"] {
        let server = Server::run(serving(&data), &place.join("server")).unwrap();
        let modes = modes(&data);
        let names = ["ledger.sqlite", "ledger.sqlite-wal", "high-water"];
        for name in names {
            assert!(modes.iter().any(|(found, _)| found == name), "{modes:?}");
        }
        for (name, mode) in &modes {
            assert_eq!(*mode, 0o600, "{start}: {name} has mode {mode:o}");
        }
        for (name, _) in &modes {
            let open = Permissions::from_mode(0o644);
            std::fs::set_permissions(data.join(name), open).unwrap();
        }
        drop(server);
    }
    std::fs::remove_dir_all(&place).unwrap();
}

/// A new ledger in its place would be served as if it were the shop's.
#[test]
fn a_folder_with_half_a_copy_is_not_started() {
    let place = folder("half-a-copy");
    let data = place.join("data");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("ledger.sqlite.part"), "half").unwrap();
    let log = place.join("server");
    let refused = Server::run(serving(&data), &log).err().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", refused.log);
    assert!(
        refused.log.contains("was cut off: make it again"),
        "{}",
        refused.log
    );
    assert!(!data.join("ledger.sqlite").exists());
    std::fs::remove_dir_all(&place).unwrap();
}

/// What a service prints is kept in logs for long.
#[test]
fn a_key_that_is_made_is_in_a_file_of_its_owner_and_not_in_the_output() {
    let place = folder("admin-key");
    let data = place.join("data");
    let serve = || Server::run(without_admin_key(&serving(&data)), &place.join("server")).unwrap();
    let server = serve();
    let path = data.join("admin-key");
    let key = std::fs::read_to_string(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600, "{mode:o}");
    let told = format!("admin key: in {}", path.display());
    assert!(server.said.contains(&told), "{}", server.said);
    assert!(!server.said.contains(key.trim()), "{}", server.said);
    let url = format!("http://{}", server.address);
    let by_key = ["keys", "list", "--url", &url, "--admin-key", key.trim()];
    let (code, said) = run(&place, &by_key);
    assert_eq!(code, Some(0), "{said}");
    drop(server);
    std::fs::remove_file(&path).unwrap();
    let again = serve();
    assert_eq!(again.said, "", "no second key is made");
    assert!(!path.exists());
    drop(again);
    std::fs::remove_dir_all(&place).unwrap();
}

/// An online copy has no such file: it is not wrong, and what starts it is said.
#[test]
fn a_ledger_without_its_high_water_file_is_verified_and_starts_by_its_flag() {
    let place = folder("high-water");
    let data = place.join("data");
    let log = place.join("server");
    let server = Server::run(serving(&data), &log).unwrap();
    assert!(server.stop().success());
    std::fs::remove_file(data.join("high-water")).unwrap();
    let (code, said) = run(&place, &["verify"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("remark high-water the file is missing"),
        "{said}"
    );
    assert!(said.contains("nothing is wrong"), "{said}");
    let (code, said) = run(&place, &["doctor"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("has no file `high-water`"), "{said}");
    let refused = Server::run(serving(&data), &log).err().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", refused.log);
    assert!(
        refused.log.contains("start it once with `--accept-loss`"),
        "{}",
        refused.log
    );
    let mut accepted = serving(&data);
    accepted.arg("--accept-loss");
    assert!(Server::run(accepted, &log).unwrap().stop().success());
    assert!(Server::run(serving(&data), &log).unwrap().stop().success());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_revoked_admin_key_in_the_setting_is_refused_at_the_start() {
    let place = folder("admin-key-revoked");
    let data = place.join("data");
    let server = Server::run(serving(&data), &place.join("server")).unwrap();
    let url = format!("http://{}", server.address);
    let through = |words: &[&str]| {
        let all = [words, &["--url", &url, "--admin-key", ADMIN_KEY]].concat();
        let (code, said) = run(&place, &all);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    let listed = through(&["keys", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["keys"][0]["id"].as_str().unwrap();
    through(&["keys", "create", "--scope", "admin"]);
    through(&["keys", "revoke", id]);
    assert!(server.stop().success());
    let refused = Server::run(serving(&data), &place.join("server"))
        .err()
        .unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", refused.log);
    assert!(
        refused
            .log
            .contains("admin_key: this key was revoked and stays so"),
        "{}",
        refused.log
    );
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn staff_make_list_and_call_off_events_by_commands() {
    let place = folder("events-by-commands");
    let server = Server::run(serving(&place.join("data")), &place.join("server")).unwrap();
    let url = format!("http://{}", server.address);
    let through = |words: &[&str], code: i32, said: &str| {
        let all = [
            &["events"],
            words,
            &["--url", &url, "--admin-key", ADMIN_KEY],
        ]
        .concat();
        let found = run(&place, &all);
        assert_eq!(found.0, Some(code), "{words:?}: {}", found.1);
        assert!(found.1.contains(said), "{words:?}: {}", found.1);
        found.1
    };
    through(&["list"], 0, "there is no event");
    let talk = |name: &str| {
        let chart = r#"{"format":"grid","rows":2,"seats_per_row":5,"category":"Standard"}"#;
        let body = format!(
            r#"{{"id":"talk-1","name":"{name}","currency":"EUR","chart":{chart},"prices":{{"Standard":0}}}}"#
        );
        std::fs::write(place.join("talk.json"), body).unwrap();
    };
    talk("A talk");
    for _ in 0..2 {
        let made = "talk-1  on sale  10 of 10 free  -  A talk";
        through(&["create", "talk.json"], 0, made);
    }
    talk("Another");
    through(&["create", "talk.json"], 1, "no event is made: 409");
    std::fs::write(place.join("talk.json"), "{").unwrap();
    through(&["create", "talk.json"], 2, "talk.json: no JSON");
    through(&["create", "no.json"], 2, "FILE no.json");
    let gone = through(&["cancel", "gone", "--reason", "flood", "--json"], 1, "404");
    let gone: serde_json::Value = serde_json::from_str(&gone).unwrap();
    assert!(
        gone["error"]
            .as_str()
            .unwrap()
            .starts_with("gone is not called off")
    );
    through(
        &["cancel", "talk-1", "--reason", "flood"],
        0,
        "talk-1 is called off",
    );
    through(&["list"], 0, "talk-1  cancelled  10 of 10 free");
    let (code, said) = run(&place, &["events", "list"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--url"), "{said}");
    assert!(server.stop().success());
    std::fs::remove_dir_all(&place).unwrap();
}
