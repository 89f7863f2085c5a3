//! The comparison with other libraries, as its table in the README is made.

use std::path::PathBuf;
use std::process::Command;

/// The example, which is built with this test.
fn comparison() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.ancestors().nth(2).unwrap().join("examples/compare")
}

/// The cells of the rows that begin so, without their head.
fn cells<'t>(table: &'t str, head: &str) -> Vec<Vec<&'t str>> {
    let rows = table
        .lines()
        .filter(|row| row.starts_with(&format!("| {head}")));
    rows.map(|row| {
        row.trim_matches('|')
            .split('|')
            .skip(1)
            .map(str::trim)
            .collect()
    })
    .collect()
}

#[test]
fn only_a_token_keeps_a_late_writer_out() {
    let output = Command::new(comparison())
        .args(["--runs", "1"])
        .output()
        .unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(
        cells(&table, "|").concat(),
        ["soldonce-lease", "rslock", "redis-py", "node-redlock"],
    );
    // Stopped, flushed, failed over.
    assert_eq!(
        cells(&table, "**then it was sold twice**"),
        vec![["0 of 1", "1 of 1", "1 of 1", "1 of 1"]; 3],
        "{table}"
    );
}
