//! Planted bugs: patches of the product's source, each with the test that must fail with it
//! (assurance.md 6). The product itself has none of them. A tidy test checks that every patch
//! applies to the source; the program `testkit-planted` builds a copy of the workspace with each of
//! them and runs its test.

mod copy;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

pub use copy::WorkspaceCopy;

/// The folder of the patches in the workspace.
pub const PATCHES: &str = "crates/testkit/planted";

/// A bug as a patch: a header with a `Test:` and a `Says:` for each test that detects it, then a
/// unified diff.
///
/// Line numbers do not count: the old lines of a hunk must be in their file exactly once.
#[derive(Debug)]
pub struct Patch {
    /// The bug's name, that of the file.
    pub name: String,
    /// The tests that must fail.
    pub tests: Vec<RedTest>,
    hunks: Vec<Hunk>,
}

/// A test that must fail with a bug.
#[derive(Debug)]
pub struct RedTest {
    /// Its package.
    pub package: String,
    /// Its full name.
    pub name: String,
    /// A text that it prints when it detects this bug, and no other one.
    pub says: String,
}

/// Lines of a file and those that replace them.
#[derive(Debug, Default)]
struct Hunk {
    path: String,
    old: String,
    new: String,
}

impl Patch {
    /// Reads the patch of the bug `name`.
    ///
    /// # Errors
    /// If a part of it is missing, or it is no unified diff.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let red_tests = red_tests(text).with_context(|| name.to_owned())?;
        ensure!(!red_tests.is_empty(), "{name}: there is no line Test: ");
        let hunks = hunks(text).with_context(|| name.to_owned())?;
        ensure!(!hunks.is_empty(), "{name}: it changes nothing");
        Ok(Self {
            name: name.to_owned(),
            tests: red_tests,
            hunks,
        })
    }

    /// Reads every patch of a workspace, in the order of their names.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn all(workspace: &Path) -> Result<Vec<Self>> {
        let mut patches = Vec::new();
        for entry in workspace.join(PATCHES).read_dir()? {
            let path = entry?.path();
            let Some(name) = path.to_str().and_then(|path| path.strip_suffix(".patch")) else {
                continue;
            };
            let name = name.rsplit('/').next().unwrap_or(name);
            patches.push(Self::parse(name, &std::fs::read_to_string(&path)?)?);
        }
        patches.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(patches)
    }

    /// Returns the changed files, by path in the workspace. `read` gives the text of a file.
    ///
    /// # Errors
    /// If a file is missing, or a hunk's old lines are not in it exactly once.
    pub fn apply(&self, read: impl Fn(&str) -> Option<String>) -> Result<BTreeMap<String, String>> {
        let mut changed = BTreeMap::new();
        for Hunk { path, old, new } in &self.hunks {
            let text = changed.get(path).cloned().or_else(|| read(path));
            let text = text.with_context(|| format!("{}: there is no {path}", self.name))?;
            let (mut lines, old): (Vec<&str>, Vec<&str>) =
                (text.lines().collect(), old.lines().collect());
            ensure!(!old.is_empty(), "{}: a hunk without old lines", self.name);
            let windows = lines.windows(old.len()).enumerate();
            let places: Vec<usize> = windows
                .filter(|(_, window)| **window == *old)
                .map(|(at, _)| at)
                .collect();
            let [at] = *places else {
                bail!(
                    "{}: {} times in {path}:\n{}",
                    self.name,
                    places.len(),
                    old.join("\n")
                );
            };
            drop(lines.splice(at..at + old.len(), new.lines()));
            changed.insert(path.clone(), lines.join("\n") + "\n");
        }
        Ok(changed)
    }
}

/// Parses the lines `Test:`, each with the line `Says:` below it.
fn red_tests(text: &str) -> Result<Vec<RedTest>> {
    let mut lines = text.lines();
    let mut tests = Vec::new();
    while let Some(line) = lines.next() {
        let Some(named) = line.strip_prefix("Test: ") else {
            continue;
        };
        let (package, name) = named
            .split_once(' ')
            .context("a test is a package and a name")?;
        let says = lines.next().and_then(|line| line.strip_prefix("Says: "));
        tests.push(RedTest {
            package: package.to_owned(),
            name: name.trim().to_owned(),
            says: says.context("no line Says: below Test:")?.trim().to_owned(),
        });
    }
    Ok(tests)
}

/// Parses the hunks of a unified diff, and skips the text before it.
fn hunks(text: &str) -> Result<Vec<Hunk>> {
    let mut path = None;
    let mut hunks: Vec<Hunk> = Vec::new();
    for line in text.lines() {
        if let Some(changed) = line.strip_prefix("+++ b/") {
            path = Some(changed.to_owned());
        } else if line.starts_with("--- a/")
            || line.starts_with("diff ")
            || line.starts_with("index ")
        {
            path = None;
        } else if let Some(path) = &path {
            if line.starts_with("@@") {
                let path = path.clone();
                hunks.push(Hunk {
                    path,
                    ..Hunk::default()
                });
                continue;
            }
            let hunk = hunks.last_mut().context("a line before the first @@")?;
            hunk.add(line)?;
        }
    }
    Ok(hunks)
}

impl Hunk {
    fn add(&mut self, line: &str) -> Result<()> {
        let kind = line.chars().next().unwrap_or(' ');
        let line = line.get(1..).unwrap_or_default();
        let sides: &mut [&mut String] = match kind {
            ' ' => &mut [&mut self.old, &mut self.new],
            '-' => &mut [&mut self.old],
            '+' => &mut [&mut self.new],
            other => bail!("a line of a hunk begins with {other:?}"),
        };
        for side in sides {
            side.push_str(line);
            side.push('\n');
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "A bug.\nTest: soldonce-core some::test\nSays: I4\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n\
                         @@ -7,2 +7,2 @@ fn f() {\n let a = 1;\n-let b = 2;\n+let b = 3;\n";

    fn applied(patch: &str, text: &str) -> Result<String> {
        let patch = Patch::parse("bug", patch)?;
        let mut changed = patch.apply(|path| (path == "x").then(|| text.to_owned()))?;
        Ok(changed.remove("x").unwrap_or_default())
    }

    #[test]
    fn a_patch_is_found_wherever_its_lines_stand_once() {
        let text = "let b = 2;\nlet a = 1;\nlet b = 2;\nend\n";
        let expected = "let b = 2;\nlet a = 1;\nlet b = 3;\nend\n";
        assert_eq!(applied(PATCH, text).unwrap(), expected);
        let twice = "let a = 1;\nlet b = 2;\nlet a = 1;\nlet b = 2;\n";
        for text in ["let a = 1;\n", "  let a = 1;\nlet b = 2;\n", twice] {
            assert!(applied(PATCH, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_patch_says_its_test_and_changes_something() {
        let patch = Patch::parse("bug", PATCH).unwrap();
        let [red] = &*patch.tests else {
            panic!("{patch:?}");
        };
        assert_eq!(
            (&*red.package, &*red.name, &*red.says),
            ("soldonce-core", "some::test", "I4")
        );
        let two = PATCH.replace("Says: I4\n", "Says: I4\nTest: a b::c\nSays: 2 of 1\n");
        assert_eq!(Patch::parse("bug", &two).unwrap().tests.len(), 2);
        for (part, instead) in [
            ("Test: ", ""),
            ("Says: ", ""),
            ("+++ b/x", ""),
            ("soldonce-core ", ""),
        ] {
            assert!(
                Patch::parse("bug", &PATCH.replace(part, instead)).is_err(),
                "{part}"
            );
        }
    }
}
