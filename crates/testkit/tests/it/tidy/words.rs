//! One word per thing: no type, table, column or metric is named with a word the model avoids.
//!
//! The model's list, with two judgements. `map` is the standard library's word and `database` that
//! of PostgreSQL and SQLite themselves (`--database-url`), so both stay free; of `map`, only "seat
//! map" as the name of a chart is refused. A word counts as a whole segment: `Ordering` and
//! `booked_at` are not `order` and `book`.

use super::source::{Literal, SourceFile, Violation, literals};

/// Avoided words, and the word of the model in their place.
const AVOIDED: [(&str, &str); 17] = [
    ("layout", "chart"),
    ("seat_map", "chart"),
    ("object", "unit"),
    ("item", "unit"),
    ("reservation", "hold"),
    ("cart", "hold"),
    ("modify", "change"),
    ("edit", "change"),
    ("renew_hold", "extend"),
    ("hold_renew", "extend"),
    ("hold_renewal", "extend"),
    ("refresh", "extend"),
    ("claim", "confirm"),
    ("book", "confirm"),
    ("order", "booking"),
    ("orders", "booking"),
    ("store", "ledger"),
];

/// Names that are right all the same, because the word means something else there.
const RIGHT: [(&str, &str); 2] = [
    ("Object", "an object of JSON"),
    ("FenceStore", "what a user of the lease library keeps"),
];

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    if file.is_test() {
        return Vec::new();
    }
    let names = match file.extension() {
        "rs" => rust_names(&file.text),
        "sql" => sql_names(&file.text, 1),
        _ => return Vec::new(),
    };
    names
        .iter()
        .filter(|(_, name)| !RIGHT.iter().any(|(right, _)| right == name))
        .filter_map(|(line, name)| {
            let (avoided, better) = avoided_in(name)?;
            let message = format!("`{name}`: not `{avoided}`, the word is `{better}`");
            Some(file.violation(*line, message))
        })
        .collect()
}

fn avoided_in(name: &str) -> Option<(&'static str, &'static str)> {
    let segments = format!("_{}_", snake(name));
    AVOIDED
        .into_iter()
        .find(|(word, _)| segments.contains(&format!("_{word}_")))
}

/// `HoldState` > `hold_state`.
pub(super) fn snake(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

/// Declared types, tables and columns of embedded SQL, metrics; each with its line.
fn rust_names(text: &str) -> Vec<(usize, String)> {
    let mut names: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, declared_type(line)?.to_owned())))
        .collect();
    for Literal { line, text } in literals(text) {
        if text.contains("CREATE TABLE") {
            names.extend(sql_names(text, line));
        }
        if is_metric(text) {
            names.push((line, text.to_owned()));
        }
    }
    names
}

pub(super) fn declared_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.split_once(' ')?.1,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "type "]
        .iter()
        .find_map(|k| line.strip_prefix(k))?;
    let name = rest
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let of_the_standard_library = rest.starts_with("Item =");
    (!of_the_standard_library).then_some(name)
}

fn is_metric(literal: &str) -> bool {
    let body = literal.strip_prefix("soldonce_").unwrap_or_default();
    !body.is_empty() && body.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// Tables and their columns: one declaration per line, as the migrations are written.
fn sql_names(text: &str, first_line: usize) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let mut in_table = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.split("--").next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let (name, opens) = match words.as_slice() {
            ["CREATE", "TABLE", "IF", "NOT", "EXISTS", name, ..]
            | ["CREATE", "TABLE", name, ..] => (Some(bare(name)), true),
            ["ALTER", "TABLE", _, "ADD", "COLUMN", name, ..] => (Some(bare(name)), false),
            [name, _, ..] if in_table && name.starts_with(char::is_lowercase) => {
                (Some(bare(name)), false)
            }
            _ => (None, false),
        };
        in_table = (in_table || opens) && !line.ends_with(';');
        names.extend(name.map(|name| (first_line + at, name)));
    }
    names
}

#[test]
fn catches_avoided_types() {
    let count = |text| check(&SourceFile::planted("crates/core/src/a.rs", text)).len();
    assert_eq!(
        count("pub struct CartHold;\npub(crate) enum OrderState {}"),
        2
    );
    assert_eq!(
        count("pub struct SeatMap<'a> {}\ntype LedgerStore = ();"),
        2
    );
    assert_eq!(count("impl Iterator for A { \n type Item = u8;\n"), 0);
    assert_eq!(
        count("struct Ordering; struct UnitMap; struct Booking; struct HoldStored;"),
        0
    );
    assert_eq!(
        count("/// A `struct Order` would be wrong.\npub fn order() {}"),
        0
    );
}

#[test]
fn catches_avoided_tables_columns_and_metrics() {
    let count = |path, text| check(&SourceFile::planted(path, text)).len();
    let sql = "CREATE TABLE orders (\n  id text, -- the item\n  item text,\n  PRIMARY KEY (id)\n);";
    assert_eq!(count("crates/engine/migrations/V1__a.sql", sql), 2);
    let rust = format!("const A: &str = \"-- a\n{sql}\";\nlet m = \"soldonce_reservations\";");
    assert_eq!(count("crates/engine/src/a.rs", &rust), 2);
    assert_eq!(
        count(
            "crates/engine/src/a.rs",
            "let m = \"soldonce_cart_seconds\";"
        ),
        1
    );
    assert_eq!(
        count(
            "crates/engine/migrations/V1__a.sql",
            "SELECT item FROM units ORDER BY x;"
        ),
        0
    );
}
