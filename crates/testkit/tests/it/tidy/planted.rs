//! Every bug that tests must catch (assurance.md 6) has a patch, or a test that plants it by itself; every patch
//! applies to the source as it is and names a test that exists. Building with them is for `./test planted`.

use std::collections::BTreeMap;

use soldonce_testkit::planted::{PATCHES, Patch};

use super::source::Violation;

/// The bugs that the assurance is about.
const BUGS: [&str; 36] = [
    "naive",
    "expiry-boundary",
    "confirm-ignores-expiry",
    "sweep-limit",
    "clock-goes-back",
    "blind-release",
    "token-in-redis",
    "incr-then-set",
    "waiter-keeps-dead-lease",
    "partial-hold",
    "unsorted-units",
    "pick-outside-commit",
    "cap-check-early",
    "extend-without-cap",
    "shield-is-truth",
    "memory-ahead",
    "ack-before-commit",
    "sync-normal",
    "fsync-retry",
    "no-high-water",
    "outbox-after-commit",
    "feed-number-early",
    "key-outside-commit",
    "key-global",
    "key-no-fingerprint",
    "timeout-means-failed",
    "capture-before-sale",
    "refund-twice",
    "event-twice",
    "event-backwards",
    "late-money-dropped",
    "old-signature-ok",
    "forwarded-for-left",
    "secret-in-log",
    "timer-missing",
    "queue-unbounded",
];

/// What the third column says of a bug that is a patch.
const BY_PATCH: &str = "patch";

/// Holds the table of the bugs and their patches against the source. `texts` gives the path and the text of
/// every file.
pub(super) fn check(
    table: &str,
    patches: &[Patch],
    texts: &BTreeMap<&str, &str>,
) -> Vec<Violation> {
    let violation = |name: &str, message: String| Violation {
        place: format!("{PATCHES}/{name}"),
        message,
    };
    let has_test = |package: &str, test: &str| {
        let folder = format!("crates/{}/tests/", package.trim_start_matches("soldonce-"));
        let name = test.rsplit("::").next().unwrap_or(test);
        let mut of_package = texts.iter().filter(|(path, _)| path.starts_with(&folder));
        of_package.any(|(_, text)| {
            text.contains(&format!("{name}(")) || text.contains(&format!("{name}:"))
        })
    };
    let mut found = Vec::new();
    for patch in patches {
        let read = |path: &str| texts.get(path).map(|text| (*text).to_owned());
        if let Err(error) = patch.apply(read) {
            found.push(violation(&patch.name, format!("does not apply: {error:#}")));
        }
        for test in &patch.tests {
            if !has_test(&test.package, &test.name) {
                let message = format!("there is no test {}", test.name);
                found.push(violation(&patch.name, message));
            }
        }
    }
    let rows = rows(table);
    for bug in BUGS {
        if !rows.contains_key(bug) {
            found.push(violation("README.md", format!("{bug} has no row")));
        }
    }
    for (bug, by) in rows {
        let is_patch = patches.iter().any(|patch| patch.name == bug);
        let test = by.trim_matches('`').split_once(' ');
        let is_caught = match test {
            Some((package, test)) => !is_patch && has_test(package, test),
            None => is_patch && by == BY_PATCH,
        };
        if !is_caught {
            found.push(violation(
                "README.md",
                format!("{bug} is not caught by {by}"),
            ));
        }
    }
    found
}

/// The bugs of the table, each with what catches it.
fn rows(table: &str) -> BTreeMap<&str, &str> {
    let cells = |line| -> Option<(&str, &str)> {
        let mut cells = str::split(line, '|').map(str::trim);
        let name = cells.nth(1)?.strip_prefix('`')?.strip_suffix('`')?;
        Some((name, cells.nth(1)?))
    };
    table.lines().filter_map(cells).collect()
}

#[test]
fn catches_a_patch_that_is_old_and_a_bug_without_one() {
    let text =
        "One.\nTest: soldonce-core some::test\nSays: I4\n--- a/x\n+++ b/x\n@@ @@\n-old\n+new\n";
    let patches = [Patch::parse("naive", text).unwrap()];
    let rows = |skipped: &str, by: &str| -> String {
        let of = |bug: &&str| *bug != skipped;
        let row = |bug| match bug {
            "naive" => "| `naive` | text | patch |\n".to_owned(),
            _ => format!("| `{bug}` | text | {by} |\n"),
        };
        BUGS.iter()
            .copied()
            .filter(|bug| of(bug))
            .map(row)
            .collect()
    };
    let sound = "`soldonce-core some::test`";
    let red = ("crates/core/tests/it/some.rs", "fn test() {}");
    let count = |table: &str, files: &[(&'static str, &'static str)]| {
        let texts = files.iter().copied().collect();
        check(table, &patches, &texts).len()
    };
    let source = ("x", "old\n");
    assert_eq!(count(&rows("", sound), &[source, red]), 0);
    assert_eq!(count(&rows("", sound), &[("x", "older\n"), red]), 1);
    assert_eq!(count(&rows("key-global", sound), &[source, red]), 1);
    assert_eq!(count(&rows("", "patch"), &[source, red]), 35);
    assert_eq!(count(&rows("", sound), &[source]), 36);
}
