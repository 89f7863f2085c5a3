//! The house rules that no compiler checks. Each rule is a pure function from a file's path and
//! text (or from the output of `cargo`) to violations, stands in a file of its own with a planted
//! violation it must catch, and is run here over the whole tree.

mod source;

mod circles;
mod citations;
mod dependencies;
mod drawers;
mod links;
mod machine_paths;
mod manifests;
mod planted;
mod prose;
mod sale;
mod size;
mod snapshots;
mod sql;
mod supply;
mod words;

use soldonce_testkit::planted::{PATCHES, Patch};
use source::{SourceFile, Tree, Violation};

/// Fails with every violation, one per line, so that one run shows all that is to be repaired.
#[track_caller]
fn assert_none(violations: &[Violation]) {
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} violations:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// Runs a rule that looks at one file at a time.
#[track_caller]
fn assert_each(rule: impl Fn(&SourceFile) -> Vec<Violation>) {
    let tree = Tree::of_workspace();
    assert!(
        !tree.files().is_empty(),
        "no file was read, so nothing was checked"
    );
    assert_none(&tree.files().iter().flat_map(rule).collect::<Vec<_>>());
}

#[test]
fn files_are_short() {
    assert_each(size::check);
}

#[test]
fn one_file_sells() {
    assert_each(sale::check);
}

#[test]
fn modules_have_no_circles() {
    assert_none(&circles::check(Tree::of_workspace().files()));
}

#[test]
fn there_are_no_drawers() {
    assert_each(drawers::check);
}

#[test]
fn sql_is_named() {
    assert_each(sql::check);
}

#[test]
fn nothing_is_named_with_an_avoided_word() {
    assert_each(words::check);
}

#[test]
fn words_are_plain() {
    assert_each(prose::check);
}

#[test]
fn nothing_names_a_place_on_one_machine() {
    assert_each(machine_paths::check);
}

#[test]
fn links_resolve() {
    let tree = Tree::of_workspace();
    assert_each(|file| links::check(file, |path| tree.has(path)));
}

#[test]
fn citations_resolve() {
    let spec = citations::Spec::of(&Tree::of_workspace());
    assert_each(|file| citations::check(file, &spec));
}

#[test]
fn planted_bugs_apply_and_are_complete() {
    let tree = Tree::of_workspace();
    let texts = tree.files().iter().map(|file| (&*file.path, &*file.text));
    let patches = Patch::all(&soldonce_testkit::workspace().unwrap()).unwrap();
    let table = tree.text(&format!("{PATCHES}/README.md")).unwrap();
    assert_none(&planted::check(table, &patches, &texts.collect()));
}

#[test]
fn snapshots_have_tests() {
    let tree = Tree::of_workspace();
    assert_each(|file| snapshots::check(file, |path| tree.text(path)));
}

#[test]
fn manifests_inherit_and_locks_name_no_host() {
    assert_each(manifests::check);
}

#[test]
fn core_repeats_the_lint_settings_and_bans_hash_order() {
    let tree = Tree::of_workspace();
    let read = |path| tree.text(path).unwrap_or_default();
    assert_none(&manifests::check_core_clippy(
        read("clippy.toml"),
        read("crates/core/clippy.toml"),
    ));
}

#[test]
fn core_depends_on_nothing() {
    let listing = source::cargo(&["tree", "-p", "soldonce-core", "-e", "normal", "--offline"]);
    assert_none(&dependencies::check_core(&listing));
}

#[test]
fn the_product_holds_no_lab_and_no_testkit() {
    let listing = source::cargo(&["tree", "-p", "soldonce", "-e", "normal", "--offline"]);
    assert_none(&dependencies::check_product(&listing));
}

#[test]
fn crates_use_only_what_they_may() {
    let metadata = source::cargo(&["metadata", "--no-deps", "--offline", "--format-version=1"]);
    assert_none(&dependencies::check(&metadata));
}

#[test]
fn the_locked_packages_obey_deny_toml() {
    let tree = Tree::of_workspace();
    let rules = supply::Rules::parse(tree.text("deny.toml").expect("deny.toml exists"));
    assert_none(&rules.check(&source::metadata()));
}
