//! What the rules look at: the files of the workspace, and what `cargo` says about it. Follows no
//! symbolic link and reads neither build output nor anything that was fetched.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// What holds no source of ours: by name wherever they are, and by path.
const SKIPPED_NAMES: [&str; 2] = [".git", "node_modules"];
const SKIPPED_PATHS: [&str; 3] = ["target", "soldonce-demo", "data"];

/// A file of the workspace: path relative to its root with forward slashes, and its text.
#[derive(Debug)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

impl SourceFile {
    /// A file for the rules' own tests.
    pub(super) fn planted(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(super) fn extension(&self) -> &str {
        self.path
            .rsplit_once('.')
            .map_or("", |(_, extension)| extension)
    }

    /// Whether the file holds nothing but tests.
    pub(super) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    pub(super) fn violation(&self, line: usize, message: impl Into<String>) -> Violation {
        Violation {
            place: format!("{}:{line}", self.path),
            message: message.into(),
        }
    }
}

/// A broken rule: where, and what to do about it.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) place: String,
    pub(super) message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Every text file of the workspace, in path order.
pub(super) struct Tree {
    files: Vec<SourceFile>,
    index: BTreeMap<String, usize>,
}

impl Tree {
    pub(super) fn of_workspace() -> Self {
        let mut files = Vec::new();
        collect(root(), "", &mut files);
        let index = files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path.clone(), at))
            .collect();
        Self { files, index }
    }

    pub(super) fn files(&self) -> &[SourceFile] {
        &self.files
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.index.get(path).map(|&at| self.files[at].text.as_str())
    }

    /// Whether `path`, relative to the workspace, is a file or a folder.
    #[expect(
        clippy::unused_self,
        reason = "pictures are no text, so the disk is asked"
    )]
    pub(super) fn has(&self, path: &str) -> bool {
        root().join(path).exists()
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) {
    let mut entries: Vec<_> = folder.read_dir().unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let kind = entry.file_type().unwrap();
        let path = format!("{prefix}{name}");
        // In a second working tree `.git` is a file that names the first one.
        if SKIPPED_NAMES.contains(&name.as_str()) || SKIPPED_PATHS.contains(&path.as_str()) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files);
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            files.push(SourceFile { path, text });
        }
    }
}

/// What `cargo` prints for these arguments in the workspace.
pub(super) fn cargo(args: &[&str]) -> String {
    printed_by(Command::new(env!("CARGO")).args(args))
}

/// What `cargo metadata` says of every package that is built for this machine.
pub(super) fn metadata() -> String {
    let rustc = printed_by(Command::new("rustc").arg("-vV"));
    let host = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    cargo(&[
        "metadata",
        "--offline",
        "--format-version=1",
        "--filter-platform",
        host,
    ])
}

fn printed_by(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

/// A string literal of a Rust file, and the line it opens on.
#[derive(Debug, PartialEq)]
pub(super) struct Literal<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
}

/// The string literals of Rust source, escapes left as they are written. Skips line comments; a
/// double quote in a character literal or a block comment would confuse it, so neither is supported.
pub(super) fn literals(source: &str) -> Vec<Literal<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, tail) = rest.split_at(at);
        if tail.starts_with("//") {
            rest = tail.find('\n').map_or("", |end| &tail[end..]);
        } else if let Some(after) = tail.strip_prefix("'\"'").or(tail.strip_prefix("'\\\"'")) {
            rest = after;
        } else if let Some(body) = tail.strip_prefix('"') {
            let end = literal_end(body, before);
            let line = source[..source.len() - tail.len()].lines().count().max(1);
            found.push(Literal {
                line,
                text: &body[..end],
            });
            rest = body.get(end + 1..).unwrap_or("");
        } else {
            rest = &tail[1..];
        }
    }
    found
}

/// Where the literal whose body starts here ends; `before` tells whether it is raw.
fn literal_end(body: &str, before: &str) -> usize {
    let hashes = before.len() - before.trim_end_matches('#').len();
    let raw = before[..before.len() - hashes].ends_with('r');
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        return body.find(&close).unwrap_or(body.len());
    }
    let mut escaped = false;
    for (at, byte) in body.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    body.len()
}

#[test]
fn literals_are_found_with_their_line() {
    let source =
        "let a = \"x\";\n// \"no\"\nlet b = r#\"say \"hi\"\"#; let c = '\"'; let d = \"\\\"\";";
    let texts: Vec<(usize, &str)> = literals(source)
        .iter()
        .map(|literal| (literal.line, literal.text))
        .collect();
    assert_eq!(texts, [(1, "x"), (3, "say \"hi\""), (3, "\\\"")]);
}
