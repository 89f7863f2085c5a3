//! A relative link in a document names a file or folder that exists.

use super::source::{SourceFile, Violation};

pub(super) fn check(file: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    if file.extension() != "md" {
        return Vec::new();
    }
    let mut fenced = false;
    let mut violations = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced {
            continue;
        }
        let missing = targets(line)
            .filter(|target| !resolve(&file.path, target).is_some_and(|path| exists(&path)));
        violations
            .extend(missing.map(|to| file.violation(at + 1, format!("`{to}` does not exist"))));
    }
    violations
}

/// The relative targets of a line's links, without their anchors; text in backticks is no link.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split('`')
        .step_by(2)
        .flat_map(|prose| prose.split("](").skip(1))
        .filter_map(|tail| {
            let target = tail.split([')', ' ', '#']).next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            (!target.is_empty() && !elsewhere).then_some(target)
        })
}

/// `target` as seen from the document at `from`, relative to the workspace; `None` outside of it.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[test]
fn catches_a_dead_link() {
    let exists = |path: &str| ["docs/a.md", "README.md"].contains(&path);
    let count = |text| check(&SourceFile::planted("docs/b.md", text), exists).len();
    assert_eq!(
        count("[a](a.md), [a](./a.md#top), [up](../README.md \"title\")"),
        0
    );
    assert_eq!(
        count("[away](https://example.org/x), [here](#top), `[x](y)`"),
        0
    );
    assert_eq!(count("```\n[x](y)\n```"), 0);
    assert_eq!(
        count("[gone](gone.md) and [a](a.md) and [out](../../README.md)"),
        2
    );
}

#[test]
fn a_link_after_code_in_its_text_is_still_read() {
    let file = SourceFile::planted("README.md", "see [`tidy`](gone.md)");
    assert_eq!(check(&file, |_| false).len(), 1);
}
