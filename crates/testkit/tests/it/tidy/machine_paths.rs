//! A file that names a folder of its author's machine works on no other.

use super::source::{SourceFile, Violation};

/// Written in two halves, or this file would be its own first violation.
const PLACES: [&str; 6] = [
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/bui", "lds/"),
    concat!("C:", "\\"),
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    file.text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| {
            let place = PLACES.iter().find(|place| names(line, place))?;
            Some(file.violation(at + 1, format!("`{place}` is a place on one machine")))
        })
        .collect()
}

/// Whether the line names `place` as the start of a path, not as the middle of another.
fn names(line: &str, place: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || "._-~}".contains(c);
    line.match_indices(place)
        .any(|(at, _)| !line[..at].ends_with(inner))
}

#[test]
fn catches_a_place_on_one_machine() {
    let found = |line: &str| !check(&SourceFile::planted("test", line)).is_empty();
    for place in PLACES {
        assert!(
            found(&format!("let path = \"{place}someone/file\";")),
            "{place}"
        );
    }
    assert!(!found(&format!(
        "https://example.org{}index.html",
        PLACES[0]
    )));
    assert!(!found("/usr/share/fonts"));
}
