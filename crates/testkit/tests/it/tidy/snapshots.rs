//! A snapshot whose test is gone is compared with nothing and believed by everybody.

use super::source::{SourceFile, Violation};

pub(super) fn check<'a>(
    file: &SourceFile,
    read: impl Fn(&str) -> Option<&'a str>,
) -> Vec<Violation> {
    if file.path.ends_with(".snap.new") {
        return vec![file.violation(1, "a snapshot without a judgement: accept or delete it")];
    }
    if file.extension() != "snap" {
        return Vec::new();
    }
    let source = file
        .text
        .lines()
        .find_map(|line| line.strip_prefix("source: "));
    let orphan = source
        .and_then(&read)
        .is_none_or(|test| !mentions(test, &name(&file.path)));
    if orphan {
        vec![file.violation(1, "no test compares this snapshot: delete it")]
    } else {
        Vec::new()
    }
}

/// `it__http__holds-2.snap` > `holds`: the name insta was given, or the test it stands in.
fn name(path: &str) -> String {
    let stem = path
        .rsplit(['/'])
        .next()
        .unwrap_or_default()
        .trim_end_matches(".snap");
    let last = stem.rsplit("__").next().unwrap_or_default();
    let unnumbered = last
        .rsplit_once('-')
        .filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    unnumbered.map_or(last, |(name, _)| name).to_owned()
}

fn mentions(test: &str, name: &str) -> bool {
    [
        format!("fn {name}("),
        format!("fn test_{name}("),
        format!("\"{name}\""),
    ]
    .iter()
    .any(|form| test.contains(form))
}

#[test]
fn catches_an_orphan() {
    let read =
        |path: &str| (path == "crates/a/tests/it/http.rs").then_some("fn holds() { x(\"seats\") }");
    let count = |name: &str, source: &str| {
        let path = format!("crates/a/tests/it/snapshots/{name}");
        check(
            &SourceFile::planted(&path, &format!("---\nsource: {source}\n---\n{{}}")),
            read,
        )
        .len()
    };
    assert_eq!(
        count("it__http__holds.snap", "crates/a/tests/it/http.rs"),
        0
    );
    assert_eq!(
        count("it__http__holds-2.snap", "crates/a/tests/it/http.rs"),
        0
    );
    assert_eq!(
        count("it__http__seats.snap", "crates/a/tests/it/http.rs"),
        0
    );
    assert_eq!(count("it__http__gone.snap", "crates/a/tests/it/http.rs"), 1);
    assert_eq!(
        count("it__http__holds.snap", "crates/a/tests/it/gone.rs"),
        1
    );
    assert_eq!(
        count("it__http__holds.snap.new", "crates/a/tests/it/http.rs"),
        1
    );
}
