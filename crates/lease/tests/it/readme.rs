//! The README promises nothing that no test shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Names of functions that stand right behind a test attribute, in all files below `folder`.
fn tests_in(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_in(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(tests_of(&fs::read_to_string(path).unwrap()));
        }
    }
}

fn tests_of(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let line = line.strip_prefix("pub(super) ").unwrap_or(line);
        let function = line
            .strip_prefix("async fn ")
            .or_else(|| line.strip_prefix("fn "));
        if let Some(rest) = function {
            let name = rest.split('(').next().unwrap_or_default();
            // A law is a test of every backend.
            if is_test || rest.ends_with("(bench: &dyn Bench) {") {
                names.push(name.to_owned());
            }
            is_test = false;
        } else if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
    }
    names
}

/// Second cells of the table of promises.
fn promised(readme: &str) -> Vec<String> {
    let (_, after) = readme
        .split_once("\n## Promises and their tests\n")
        .unwrap();
    let table = after.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_suffix("` |"));
    rows.filter_map(|row| row.rsplit_once('`'))
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[test]
fn every_promise_of_the_readme_has_its_test() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tests = BTreeSet::new();
    tests_in(&crate_folder.join("tests"), &mut tests);
    tests_in(&crate_folder.join("src"), &mut tests);
    let promised = promised(&fs::read_to_string(crate_folder.join("README.md")).unwrap());
    assert!(
        promised.len() >= 20,
        "only {} promises were found",
        promised.len()
    );
    let without: Vec<_> = promised
        .into_iter()
        .filter(|name| !tests.contains(name))
        .collect();
    assert!(without.is_empty(), "promised and not shown: {without:?}");
}

#[test]
fn a_promise_without_a_test_is_seen() {
    let found = tests_of(
        "#[test]\nfn a() {}\nfn b() {}\n#[tokio::test]\nasync fn c() {}\n\
         #[tokio::test]\npub(super) async fn d() {}",
    );
    assert_eq!(found, ["a", "c", "d"]);
    let readme = "x\n## Promises and their tests\n\n| promise | test |\n|---|---|\n| p | `b` |\n\n## Y\n| q | `z` |\n";
    assert_eq!(promised(readme), ["b"]);
}
