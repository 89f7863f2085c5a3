//! Size creeps in unless checked.

use super::source::{SourceFile, Violation};

const SOURCE_LINES_MAX: usize = 500;
const TEST_LINES_MAX: usize = 800;
const CODE: [&str; 10] = [
    "rs", "js", "mjs", "ts", "css", "html", "sql", "lua", "proto", "sh",
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    if !CODE.contains(&file.extension()) {
        return Vec::new();
    }
    let most = if file.is_test() {
        TEST_LINES_MAX
    } else {
        SOURCE_LINES_MAX
    };
    let lines = file.text.lines().count();
    if lines <= most {
        return Vec::new();
    }
    vec![file.violation(
        lines,
        format!("{lines} lines, at most {most}: split it by feature"),
    )]
}

#[test]
fn catches_a_long_file() {
    let count = |path, lines| check(&SourceFile::planted(path, &"x\n".repeat(lines))).len();
    assert_eq!(count("crates/a/src/hold.rs", 500), 0);
    assert_eq!(count("crates/a/src/hold.rs", 501), 1);
    assert_eq!(count("crates/a/tests/it/hold.rs", 800), 0);
    assert_eq!(count("crates/a/src/hold/tests.rs", 801), 1);
    assert_eq!(count("LICENSE-APACHE", 900), 0);
}
