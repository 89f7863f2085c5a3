//! A citation of the specification resolves: `model.md 3` names a section of a document in `docs/spec`,
//! `I12` or `LT5` an id that is defined there (goals in `docs/performance.md`, `AR1` in `ARCHITECTURE.md`).

use std::collections::BTreeSet;

use super::source::{SourceFile, Tree, Violation};

const SPEC: &str = "docs/spec/";
/// Other documents that define ids.
const WITH_IDS: [&str; 2] = ["docs/performance.md", "ARCHITECTURE.md"];

/// What a decision says is not changed later, so it may cite a document that is gone.
const DECISIONS: &str = "docs/decisions/";

/// What the letters of an id are; digits follow.
const PREFIXES: [&str; 9] = ["LT", "T", "I", "L", "B", "R", "S", "P", "AR"];

/// Sections (`model 3`) and ids that the documents define.
#[derive(Default)]
pub(super) struct Spec {
    documents: BTreeSet<String>,
    sections: BTreeSet<String>,
    ids: BTreeSet<String>,
}

impl Spec {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut spec = Self::default();
        for file in tree.files() {
            spec.add(file);
        }
        spec
    }

    fn add(&mut self, file: &SourceFile) {
        let document = file.path.strip_prefix(SPEC);
        if document.is_none() && !WITH_IDS.contains(&file.path.as_str()) {
            return;
        }
        let name = document.unwrap_or_default();
        let mut section = String::new();
        for line in file.text.lines() {
            self.ids.extend(defined(line).map(str::to_owned));
            if let Some(title) = line.strip_prefix("##") {
                let number = title.trim_start_matches('#').trim_start();
                number_of(number.split(' ').next().unwrap_or_default()).clone_into(&mut section);
                self.sections.insert(format!("{name} {section}"));
            } else if let Some((item, _)) = line.split_once(". ")
                && item.bytes().all(|b| b.is_ascii_digit())
            {
                self.sections.insert(format!("{name} {section}.{item}"));
            }
        }
        self.documents.extend(document.map(str::to_owned));
    }
}

/// The id that a line defines: `| I1 | ..` in a table, `- **T1** ..` in a list.
fn defined(line: &str) -> Option<&str> {
    let row = line
        .strip_prefix("| ")
        .and_then(|rest| rest.split(' ').next());
    let item = line
        .strip_prefix("- **")
        .and_then(|rest| rest.split('*').next());
    row.or(item).filter(|word| is_id(word))
}

fn is_id(word: &str) -> bool {
    PREFIXES.iter().any(|prefix| {
        let number = word.strip_prefix(prefix).unwrap_or_default();
        (1..=2).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())
    })
}

pub(super) fn check(file: &SourceFile, spec: &Spec) -> Vec<Violation> {
    if !["rs", "lua", "sql", "md"].contains(&file.extension()) {
        return Vec::new();
    }
    let words: Vec<(usize, &str)> = (1..)
        .zip(file.text.lines())
        .flat_map(|(at, line)| line.split_whitespace().map(move |word| (at, word)))
        .filter(|(_, word)| !["//", "///", "//!", "--", "#", "*"].contains(word))
        .collect();
    let mut violations = Vec::new();
    for (index, (at, word)) in words.iter().enumerate() {
        let unknown = ids(word).filter(|id| !spec.ids.contains(*id));
        violations
            .extend(unknown.map(|id| file.violation(*at, format!("`{id}` is defined nowhere"))));
        let Some(document) = document(word) else {
            continue;
        };
        let is_old = file.path.starts_with(DECISIONS) && !spec.documents.contains(document);
        for section in sections(&words[index + 1..]) {
            if !is_old && !spec.sections.contains(&format!("{document} {section}")) {
                let message = format!("`{document} {section}` is no section of {SPEC}");
                violations.push(file.violation(*at, message));
            }
        }
    }
    violations
}

/// The ids in a word, which other letters, digits, `_` and `-` do not touch.
fn ids(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_alphanumeric() && !['_', '-'].contains(&c))
        .filter(|part| is_id(part))
}

/// The name of the document that a word names, when a section may follow: `` (`lease.md` ``, `[api.md](..)`.
fn document(word: &str) -> Option<&str> {
    let word = word.split("](").next()?;
    let word = word
        .trim_start_matches(['(', '[', '`'])
        .trim_end_matches('`');
    let name = word.rsplit('/').next()?;
    let stem = name.strip_suffix(".md")?;
    stem.bytes().all(|b| b.is_ascii_lowercase()).then_some(name)
}

/// The sections that the words after a document's name list: `4, 6.3 and 11.1`.
fn sections<'a>(words: &'a [(usize, &'a str)]) -> impl Iterator<Item = &'a str> {
    let mut is_over = false;
    words
        .iter()
        .map_while(move |(_, word)| {
            if is_over {
                return None;
            }
            let number = number_of(word);
            is_over = !number.is_empty() && !word.ends_with(',') && word.len() != number.len();
            (!number.is_empty() || ["and", "to"].contains(word)).then_some(number)
        })
        .filter(|number| !number.is_empty())
}

/// The section number that a word begins with: `6.3` of `6.3).`, nothing of `64` names or of `1,000`.
fn number_of(word: &str) -> &str {
    let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let parts = number.split('.');
    let is_number = parts
        .clone()
        .all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit()));
    if is_number && parts.count() <= 2 {
        number
    } else {
        ""
    }
}

#[cfg(test)]
fn planted() -> Spec {
    let mut spec = Spec::default();
    let text = "# A\n## 3. States\n- **T1** One clock\n### 3.1 More\n| I1 | once |\n## 11. Tests\n8. Waiters";
    spec.add(&SourceFile::planted("docs/spec/model.md", text));
    spec.add(&SourceFile::planted(WITH_IDS[0], "| P1 | holds |"));
    spec
}

#[test]
fn catches_a_citation_of_nothing() {
    let spec = planted();
    // `@` is `.md`: this file is looked at as well.
    let count = |path, text: &str| {
        let text = text.replace('@', ".md");
        check(&SourceFile::planted(path, &text), &spec).len()
    };
    let rust = |text| count("crates/a/src/b.rs", text);
    assert_eq!(
        rust("//! One unit (model@ 3). `model@` 3, 3.1 and 11.8; I1, (T1), P1."),
        0
    );
    assert_eq!(
        rust("/// See model@\n    /// 3.2, and model@ 3 and\n/// 4)."),
        2
    );
    assert_eq!(rust("//! `lease@` 8, LT5 and \"I29 gap\""), 3);
    assert_eq!(
        rust("/// The word of model@, 64 names; R0-70, a_T1, I1Sold, T100."),
        0
    );
    assert_eq!(
        count(
            "docs/a.md",
            "[model@](spec/model@) 9 and [b](b@) is 2 days old"
        ),
        1
    );
    assert_eq!(
        count("docs/decisions/0001-a.md", "architecture@ 5, model@ 7"),
        1
    );
    assert_eq!(count("crates/a/web/a.js", "M5 L1 model@ 77"), 0);
}
