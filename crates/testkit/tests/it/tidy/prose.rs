//! Plain words: nothing is named with a metaphor that a reader would have to learn; no comment and no
//! document makes "whoever" or "nobody" its subject, says "whatever", or calls a client "he"; no comment is wider than
//! 120 columns; the doc of a function begins with a verb. `words.rs` has the words of the model.

use super::source::{SourceFile, Violation};
use super::words::{declared_type, snake};

/// Metaphors that the code had, and what each was.
const METAPHORS: [(&str, &str); 13] = [
    ("ailment", "fault"),
    ("beside", "with"),
    ("booth", "connection"),
    ("cashier", "provider"),
    ("courier", "batcher"),
    ("desk", "worker"),
    ("door", "client"),
    ("errand", "task"),
    ("freight", "item"),
    ("lane", "connection"),
    ("mend", "repair"),
    ("parcel", "message"),
    ("tray", "queue"),
];

/// Participles that say nothing as the name of a type.
const PARTICIPLES: [&str; 6] = ["Asked", "Heard", "Kept", "Said", "Shown", "Told"];

/// Subjects that hide who acts, and what.
const SUBJECTS: [&str; 5] = ["whoever", "nobody", "somebody", "anybody", "whatever"];

/// A client is a program and a buyer is anyone: "it" or "they".
const PRONOUNS: [&str; 6] = ["he", "him", "his", "she", "her", "hers"];

/// Columns of a comment; rustfmt leaves longer ones.
const COLUMNS_MAX: usize = 120;

/// Words that end as a verb does ("Returns") and are none.
const NO_VERBS: [&str; 10] = [
    "As", "Bytes", "Is", "Its", "Names", "Rows", "Seats", "This", "Units", "Was",
];

/// Migrations have checksums, and this file names the words.
const LEFT: [&str; 2] = [
    "crates/engine/migrations/",
    "crates/testkit/tests/it/tidy/prose.rs",
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    let mut violations = wide_comments(file);
    if file.path.contains("/src/") && !file.is_test() {
        violations.extend(metaphors(file));
    }
    violations.extend(participles(file));
    if file.path.contains("/src/") && file.extension() == "rs" {
        violations.extend(docs_without_verb(file));
    }
    if LEFT.iter().any(|path| file.path.starts_with(path)) {
        return violations;
    }
    let marks: &[&str] = match file.extension() {
        // Every line of it is prose.
        "md" => &[""],
        "rs" => &["//"],
        "js" | "mjs" | "ts" => &["//", "/*", " * "],
        "lua" | "sql" => &["--"],
        "py" => &["#"],
        _ => return violations,
    };
    for (at, line) in (1..).zip(file.text.lines()) {
        let comment = marks.iter().find_map(|mark| line.split_once(mark));
        let subject = comment.and_then(|(_, comment)| wrong_word(comment));
        violations.extend(subject.map(|message| file.violation(at, message)));
    }
    violations
}

fn metaphors(file: &SourceFile) -> impl Iterator<Item = Violation> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let lines = (1..).zip(file.text.lines());
    let declared = lines.flat_map(|(at, line)| {
        let names = [declared_type(line), declared_name(line)];
        names.into_iter().flatten().map(move |name| (at, name))
    });
    let names = std::iter::once((1, stem)).chain(declared);
    names.filter_map(|(at, name)| Some(file.violation(at, metaphor(name)?)))
}

fn participles(file: &SourceFile) -> impl Iterator<Item = Violation> {
    let types = (1..).zip(file.text.lines().map(declared_type));
    types.filter_map(|(at, name)| {
        let name = name.filter(|name| PARTICIPLES.contains(name))?;
        Some(file.violation(at, format!("`{name}` is no name of a type: say of what")))
    })
}

/// The function, variable, constant, module or field that a line declares.
fn declared_name(line: &str) -> Option<&str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = line.split(|c: char| c.is_whitespace() || "(<;,".contains(c));
    let keyword = words.find(|word| !word.is_empty())?;
    if let Some(field) = keyword
        .strip_suffix(':')
        .filter(|name| name.chars().all(is_name))
    {
        return Some(field);
    }
    let marks = [
        "pub", "crate)", "super)", "const", "static", "async", "fn", "let", "mut", "mod",
    ];
    let is_mark = |word: &&str| marks.contains(word) || word.is_empty();
    if !is_mark(&keyword) {
        return None;
    }
    let name = words.find(|word| !is_mark(word))?;
    Some(name.trim_end_matches(|c| !is_name(c))).filter(|name| name.chars().all(is_name))
}

fn metaphor(name: &str) -> Option<String> {
    let is_constant = !name.contains(char::is_lowercase);
    let plural = if is_constant {
        name.to_lowercase()
    } else {
        snake(name)
    };
    let plural = format!("_{plural}_");
    let segments = plural.replace("s_", "_");
    let (word, plain) = METAPHORS.iter().find(|(word, _)| {
        [&plural, &segments]
            .iter()
            .any(|name| name.contains(&format!("_{word}_")))
    })?;
    Some(format!(
        "`{name}`: `{word}` is a metaphor; plain is `{plain}` or the like"
    ))
}

fn wrong_word(comment: &str) -> Option<String> {
    let mut words = comment.split(|c: char| !c.is_alphabetic() && c != '_');
    words.find_map(|word| {
        let plain = word.to_lowercase();
        let better = if SUBJECTS.contains(&plain.as_str()) {
            "say who (the caller, a server, a buyer) or what, or that there is none"
        } else if PRONOUNS.contains(&plain.as_str()) {
            "a client is `it`, a buyer is `they`"
        } else {
            return None;
        };
        Some(format!("`{word}`: {better}"))
    })
}

/// Finds functions whose doc begins with another word than a verb in the third person.
fn docs_without_verb(file: &SourceFile) -> Vec<Violation> {
    let (mut violations, mut doc, mut is_inside) = (Vec::new(), None, false);
    for (at, line) in (1..).zip(file.text.lines().map(str::trim_start)) {
        let text = line.strip_prefix("///");
        if let Some(text) = text.filter(|_| !is_inside) {
            doc = Some((at, text.trim_start()));
        }
        is_inside = text.is_some();
        if is_inside || line.starts_with('#') {
            continue;
        }
        let found = doc.take().filter(|_| is_function(line));
        if let Some((at, text)) = found.filter(|(_, text)| !begins_with_verb(text)) {
            let message =
                format!("the doc of a function begins with a verb (\"Returns\"): `{text}`");
            violations.push(file.violation(at, message));
        }
    }
    violations
}

fn is_function(line: &str) -> bool {
    let marks = [
        "pub",
        "pub(crate)",
        "pub(super)",
        "const",
        "async",
        "unsafe",
    ];
    let inner = line
        .strip_prefix("pub(in ")
        .and_then(|path| path.split_once(") "));
    let mut words = inner.map_or(line, |(_, rest)| rest).split_whitespace();
    words.find(|word| !marks.contains(word)) == Some("fn")
}

fn begins_with_verb(doc: &str) -> bool {
    let word = doc
        .split(|c: char| !c.is_alphabetic())
        .next()
        .unwrap_or_default();
    let is_capital = word.starts_with(char::is_uppercase);
    is_capital && word.ends_with('s') && !NO_VERBS.contains(&word)
}

fn wide_comments(file: &SourceFile) -> Vec<Violation> {
    let is_wide =
        |line: &str| line.trim_start().starts_with("//") && line.chars().count() > COLUMNS_MAX;
    let lines = (1..).zip(file.text.lines());
    let wide = lines.filter(|(_, line)| file.extension() == "rs" && is_wide(line));
    wide.map(|(at, _)| file.violation(at, format!("a comment has more than {COLUMNS_MAX} columns")))
        .collect()
}

#[test]
fn catches_metaphors_and_hidden_subjects() {
    let count = |path, text| check(&SourceFile::planted(path, text)).len();
    let path = "crates/engine/src/a.rs";
    assert_eq!(count(path, "pub struct Desk;\nenum EventLane {}"), 2);
    assert_eq!(count("crates/engine/src/booth.rs", "struct Plain;"), 1);
    let names = "    pub(super) async fn lanes(&self) {\n    let mut desk = 1;\n    mend: &str,\nconst DESKS: u8 = 1;";
    assert_eq!(count(path, names), 4);
    assert_eq!(
        count(path, "    fn planes() {\n    let bend: u8 = mend();"),
        0
    );
    assert_eq!(
        count(
            path,
            "/// Wakes whoever waits.\n// Nobody is told, whatever comes.\n/// Whatever."
        ),
        3
    );
    assert_eq!(
        count(path, "struct Amendment; let nobody = 1; // no one"),
        0
    );
    assert_eq!(count(path, "// He asks for her seats."), 1);
    assert_eq!(
        count(path, "struct Kept {\nstruct KeptReply;\nenum Said {"),
        2
    );
    let test = "crates/engine/tests/it/a.rs";
    assert_eq!(count(test, "struct Desk; // For whoever asks."), 1);
    assert_eq!(count(test, "struct Kept;"), 1);
    let script = "// Nobody.\n/** Whatever. */\n * Somebody.\nlet nobody = 1;";
    assert_eq!(count("crates/server/web/js/a.js", script), 3);
    assert_eq!(count("crates/engine/migrations/a.sql", "-- nobody"), 0);
    let wide = format!("    // {}", "a".repeat(COLUMNS_MAX));
    assert_eq!(count(path, &wide), 1);
    assert_eq!(count(test, &wide), 1);
    assert_eq!(count("docs/decisions/0001-a.md", "Nobody is told."), 1);
    let riddle = "    /// What came.\n    #[must_use]\n    pub(super) async fn answer() {";
    assert_eq!(count(path, riddle), 1);
    assert_eq!(count(path, "/// Units of a hold.\nfn units() {"), 1);
    let plain = "/// Returns the answer.\n/// What came is in it.\nfn answer() {\n/// The time.\nat: u64,\nfn next() {";
    assert_eq!(count(path, plain), 0);
}
