//! A file is named for what it decides; a drawer takes what has no place.

use super::source::{SourceFile, Violation};

const DRAWERS: [&str; 9] = [
    "util", "utils", "common", "helper", "helpers", "type", "types", "misc", "shared",
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    let stem = |part: &str| {
        part.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    file.path
        .split('/')
        .filter(|part| DRAWERS.contains(&stem(part).as_str()))
        .map(|part| {
            file.violation(
                1,
                format!("`{part}` is a drawer: name it for what it decides"),
            )
        })
        .collect()
}

#[test]
fn catches_a_drawer() {
    let count = |path| check(&SourceFile::planted(path, "")).len();
    assert_eq!(count("crates/core/src/utils.rs"), 1);
    assert_eq!(count("crates/server/web/common/map.js"), 1);
    assert_eq!(count("crates/core/src/hold.rs"), 0);
}
