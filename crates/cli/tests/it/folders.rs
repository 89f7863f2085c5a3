//! What operators are told of a data folder that is empty, no folder, or holds no ledger.

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
