//! Runs a test once more, on a backend with a wrong script: the test must fail, and by its own words.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use soldonce_lease::backend::BackendContext;

thread_local! {
    /// The script that the backends of this thread send in place of the shipped one. A test runs on one thread.
    static WRONG: RefCell<Option<(&'static str, String)>> = const { RefCell::new(None) };
}

/// What scripts that break say of themselves. A bug that was planted so clumsily shows nothing.
const BROKEN: [&str; 2] = ["user_script", "Error compiling script"];

/// Plants the bug of this thread. Every test that connects to Redis passes its settings here.
pub(crate) fn plant(settings: &mut BackendContext) {
    settings.script = WRONG.with_borrow(Option::clone);
}

/// The text of a script, as this thread sends it.
pub(crate) fn script(file: &str) -> String {
    let wrong = WRONG.with_borrow(Option::clone);
    wrong.map_or_else(
        || shipped(file),
        |(of, text)| if of == file { text } else { shipped(file) },
    )
}

fn shipped(file: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/backend/redis/scripts");
    std::fs::read_to_string(format!("{folder}/{file}")).unwrap()
}

/// The script of `file` with `instead` in the place of its line `line`, which must stand there once. Indentation
/// does not matter.
fn replaced(file: &str, line: &str, instead: &str) -> String {
    let shipped = shipped(file);
    let is_it = |candidate: &str| candidate.trim() == line.trim();
    let found = shipped.lines().filter(|each| is_it(each)).count();
    assert_eq!(found, 1, "times in {file}: {line}");
    let lines = shipped
        .lines()
        .map(|each| if is_it(each) { instead } else { each });
    lines.collect::<Vec<_>>().join("\n")
}

/// Asserts that `test` fails when `line` of the script of `file` is replaced by `instead`.
pub(crate) fn caught((file, line, instead): (&'static str, &str, &str), test: fn()) {
    WRONG.set(Some((file, replaced(file, line, instead))));
    let outcome = catch_unwind(AssertUnwindSafe(test));
    WRONG.set(None);
    let Err(panic) = outcome else {
        panic!("nobody sees that {file} has {instead:?} for {line:?}");
    };
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or_default();
    let broken = BROKEN.iter().find(|word| said.contains(**word));
    assert_eq!(broken, None, "the script broke: {said}");
}
