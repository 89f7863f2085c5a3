//! What operators are told of settings that are wrong, and of a data folder that is empty, no folder, or
//! holds no ledger.

use std::path::Path;
use std::process::Command;

use crate::crash::server::PROGRAM;
use crate::store::folder;

/// The exit code of the program in this folder, and what it says.
fn run(place: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(place)
        .env_remove("SOLDONCE_DATA")
        .env_remove("SOLDONCE_DATABASE_URL")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
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
    for command in [&["verify"][..], &["why", "hamlet", "A-12"]] {
        let (code, said) = run(&place, command);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("cannot be used: Not a directory"), "{said}");
        assert!(!said.contains("there is no ledger"), "{said}");
    }
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
        ("serve --strategy lease", "--database-url"),
        ("serve --stripe-key foo", "stripe_key"),
        ("serve --database-connections 5", "database_url"),
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
