//! No circles of modules: what a file uses never leads back to it. A folder's `mod.rs` may use what is below it, and
//! that may use the folder's names; every other way around is a violation.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{SourceFile, Violation};

/// Every file of a crate's `src` by the path of its module.
struct Modules<'a> {
    files: BTreeMap<Vec<&'a str>, &'a SourceFile>,
    /// What each file names: paths from the root of the crate.
    named: BTreeMap<&'a str, Vec<Vec<&'a str>>>,
    /// What each file gives on under a name of its own module.
    exported: BTreeMap<&'a str, Vec<Vec<&'a str>>>,
}

pub(super) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.extension() == "rs" && !file.is_test())
    {
        if let Some((of, _)) = file.path.split_once("/src/") {
            crates.entry(of).or_default().push(file);
        }
    }
    let circles = crates
        .values()
        .flat_map(|files| Modules::of(files).circles());
    circles.collect()
}

impl<'a> Modules<'a> {
    fn of(files: &[&'a SourceFile]) -> Self {
        let mut modules = Self {
            files: BTreeMap::new(),
            named: BTreeMap::new(),
            exported: BTreeMap::new(),
        };
        modules
            .files
            .extend(files.iter().map(|file| (module(&file.path), *file)));
        for file in files {
            // Tests of a file may use all of the crate.
            let text = file
                .text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            let own = module(&file.path);
            let paths = |line: &Line<'a>| {
                let paths = line.paths.iter();
                paths
                    .filter_map(|path| modules.whole(&own, path))
                    .collect::<Vec<_>>()
            };
            let (public, private): (Vec<_>, _) =
                uses(text).into_iter().partition(|line| line.is_public);
            let exported: Vec<_> = public.iter().flat_map(paths).collect();
            let named = private
                .iter()
                .flat_map(paths)
                .chain(exported.iter().cloned());
            let named = named.collect();
            modules.named.insert(&file.path, named);
            modules.exported.insert(&file.path, exported);
        }
        modules
    }

    /// The same path from the root of the crate; none where it leads to another crate.
    fn whole(&self, own: &[&'a str], path: &[&'a str]) -> Option<Vec<&'a str>> {
        let first = *path.first()?;
        let at = path
            .iter()
            .take_while(|step| ["super", "self"].contains(step))
            .count();
        let up = path[..at].iter().filter(|step| **step == "super").count();
        let (base, rest) = match first {
            "crate" => (&own[..0], &path[1..]),
            _ => (&own[..own.len().checked_sub(up)?], &path[at..]),
        };
        let is_here =
            first == "crate" || at > 0 || self.files.contains_key(&[own, &[first]].concat());
        is_here.then(|| [base, rest].concat())
    }

    /// The file in which what a path names is written, through what modules give on.
    fn file_of(&self, path: &[&'a str], hops: usize) -> Option<&'a SourceFile> {
        let at = (0..=path.len())
            .rev()
            .find(|&at| self.files.contains_key(&path[..at]))?;
        let file = self.files[&path[..at]];
        let Some(name) = path.get(at).filter(|_| hops > 0) else {
            return Some(file);
        };
        let exported = self.exported.get(file.path.as_str())?;
        match exported.iter().find(|given| given.last() == Some(name)) {
            Some(given) => self.file_of(given, hops - 1),
            None => Some(file),
        }
    }

    /// Which files a file uses. What is below a folder is the folder's own.
    fn uses_of(&self, file: &'a str) -> BTreeSet<&'a str> {
        let folder = file.strip_suffix("mod.rs").or(file.strip_suffix("lib.rs"));
        let folder = folder.or(file.strip_suffix("main.rs"));
        let is_below =
            |used: &str| folder.is_some_and(|folder| used.starts_with(folder)) || used == file;
        let named = self.named[file]
            .iter()
            .filter_map(|path| self.file_of(path, 6));
        named
            .map(|used| used.path.as_str())
            .filter(|used| !is_below(used))
            .collect()
    }

    fn circles(&self) -> Vec<Violation> {
        let uses: BTreeMap<_, _> = self
            .named
            .keys()
            .map(|file| (*file, self.uses_of(file)))
            .collect();
        // All that a file leads to.
        let leads_to = |file: &'a SourceFile| {
            let (mut open, mut seen) = (vec![file.path.as_str()], BTreeSet::new());
            while let Some(next) = open.pop() {
                open.extend(uses[next].iter().filter(|used| seen.insert(**used)));
            }
            seen
        };
        let is_in_circle = |file: &&&'a SourceFile| leads_to(file).contains(file.path.as_str());
        let in_circles = self.files.values().filter(is_in_circle);
        let told = in_circles.map(|file| {
            let names: Vec<_> = uses[file.path.as_str()].iter().copied().collect();
            file.violation(
                1,
                format!("it is used by what it uses: {}", names.join(", ")),
            )
        });
        told.collect()
    }
}

/// `crates/a/src/b/mod.rs` > `b`.
fn module(path: &str) -> Vec<&str> {
    let (_, inside) = path.split_once("/src/").unwrap_or_default();
    let mut parts: Vec<_> = inside.trim_end_matches(".rs").split('/').collect();
    parts.pop_if(|last| ["mod", "lib", "main"].contains(last));
    parts
}

/// What a line names, and whether others may have it from here.
#[derive(Debug, PartialEq)]
struct Line<'a> {
    is_public: bool,
    paths: Vec<Vec<&'a str>>,
}

/// The declarations `use`, and paths in the code that begin with `crate` or `super`.
fn uses(text: &str) -> Vec<Line<'_>> {
    let before = |at: usize| text[..at].rsplit('\n').next().unwrap_or_default();
    let declared = text.match_indices("use ").filter_map(|(at, word)| {
        let before = before(at).trim();
        let is_public = before.starts_with("pub");
        let tree = text[at + word.len()..].split(';').next()?;
        // A line of a text may begin so too.
        let is_part = |c: char| c.is_alphanumeric() || c.is_whitespace() || "_:{},*".contains(c);
        if (!before.is_empty() && !is_public) || !tree.chars().all(is_part) {
            return None;
        }
        let mut paths = Vec::new();
        expand(&[], tree, &mut paths);
        Some(Line { is_public, paths })
    });
    let is_begin =
        |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$".contains(c));
    let inline = ["crate::", "super::"]
        .into_iter()
        .flat_map(|word| text.match_indices(word));
    let inline = inline.filter(|(at, _)| is_begin(*at) && !before(*at).contains("//"));
    let inline = inline.map(|(at, _)| {
        let end = text[at..].find(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
        let path = &text[at..at + end.unwrap_or_default()];
        let path = path.split("::").filter(|part| !part.is_empty()).collect();
        Line {
            is_public: false,
            paths: vec![path],
        }
    });
    declared.chain(inline).collect()
}

/// `a::{b, c::d as e}` > `a::b`, `a::c::d`.
fn expand<'a>(before: &[&'a str], tree: &'a str, paths: &mut Vec<Vec<&'a str>>) {
    let (path, list) = match tree.split_once('{') {
        Some((path, list)) => (path, list.rsplit_once('}').map(|(list, _)| list)),
        None => (tree.split(" as ").next().unwrap_or_default(), None),
    };
    let parts = path
        .split("::")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let path: Vec<_> = before.iter().copied().chain(parts).collect();
    let Some(list) = list else {
        return paths.push(path);
    };
    let (mut depth, mut from) = (0_u32, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !list[from..at].trim().is_empty() {
                    expand(&path, &list[from..at], paths);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

#[test]
fn catches_a_circle_and_lets_a_folder_use_what_is_below() {
    let count = |files: &[(&str, &str)]| {
        let planted = files
            .iter()
            .map(|(path, text)| SourceFile::planted(&format!("crates/x/src/{path}"), text));
        check(&planted.collect::<Vec<_>>()).len()
    };
    let (a, b) = (
        ("a.rs", "use crate::b::{self, B};"),
        ("b.rs", "fn f() { super::a::g(); }"),
    );
    assert_eq!(count(&[("lib.rs", "mod a; mod b;"), a, b]), 2);
    assert_eq!(
        count(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", "// super::a::g")]),
        0
    );
    let by_name = ("b.rs", "use crate::{A, C};");
    let root = ("lib.rs", "mod a;\npub(crate) use a::{A, d::C as D};");
    assert_eq!(count(&[root, ("a.rs", "use crate::b::B;"), by_name]), 2);
    let folder = [
        ("a/mod.rs", "mod b;\nuse b::B;\npub(super) use b::C;"),
        ("a/b.rs", "use super::A;"),
    ];
    assert_eq!(count(&folder), 0);
    let outside = ("c.rs", "use crate::a::A;");
    assert_eq!(count(&[folder[0], ("a/b.rs", "use crate::c;"), outside]), 0);
    let through = ("a/mod.rs", "mod b;\nuse crate::c;");
    assert_eq!(count(&[through, ("a/b.rs", "use super::A;"), outside]), 2);
    let tests = ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}");
    assert_eq!(count(&[("lib.rs", ""), a, tests]), 0);
}
