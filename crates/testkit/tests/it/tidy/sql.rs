//! Every statement opens with `-- name`: the name shows in the server's log, and a reader of the
//! log finds the constant. Transaction control (`BEGIN IMMEDIATE`, `PRAGMA ..`) carries no data and
//! needs none; migrations are files and named by that.

use super::source::{SourceFile, Violation, literals};

const VERBS: [&str; 8] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "CREATE", "ALTER", "DROP",
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    if file.extension() != "rs" || file.is_test() {
        return Vec::new();
    }
    literals(&file.text)
        .iter()
        .filter_map(|literal| Some(file.violation(literal.line, complaint(literal.text)?)))
        .collect()
}

fn complaint(literal: &str) -> Option<String> {
    let text = literal.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
    if let Some(comment) = text.strip_prefix("-- ") {
        let name = comment.split(['\n', '\\']).next().unwrap_or_default();
        let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let good = !name.is_empty() && name.chars().all(snake);
        return (!good).then(|| format!("`{name}` names no statement: use snake_case"));
    }
    // A request line begins with one of the verbs too.
    if text.contains(" HTTP/1.1") {
        return None;
    }
    let (verb, _) = text.split_once(|c: char| c.is_whitespace() || c == '\\')?;
    VERBS
        .contains(&verb)
        .then(|| format!("this {verb} has no name: open it with `-- name`"))
}

#[test]
fn catches_a_nameless_statement() {
    let count = |text| check(&SourceFile::planted("crates/engine/src/hold.rs", text)).len();
    assert_eq!(count("const A: &str = \"SELECT 1 FROM holds\";"), 1);
    assert_eq!(
        count("const A: &str = \"\\\n    UPDATE holds SET x = 1\";"),
        1
    );
    assert_eq!(count("const A: &str = r#\"\nINSERT INTO holds\"#;"), 1);
    assert_eq!(
        count("const A: &str = \"-- Extend the hold\\nUPDATE holds\";"),
        1
    );
    assert_eq!(
        count("const A: &str = \"-- extend_hold\\nUPDATE holds\";"),
        0
    );
    assert_eq!(
        count("const A: &str = \"\\\n-- extend_hold\nUPDATE holds\";"),
        0
    );
    assert_eq!(count("let text = \"Select a seat\"; // \"DROP it\""), 0);
    assert_eq!(count("let head = \"DELETE /v1/holds HTTP/1.1\";"), 0);
}
