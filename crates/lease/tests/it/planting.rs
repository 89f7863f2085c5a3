//! Runs a test once more, on a backend with a planted bug: the test must fail, and by its own words.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use soldonce_lease::backend::redis::{PlantedInRedis, RedisSettings, ScriptBug};

thread_local! {
    /// What the backends that this thread connects are to suffer from. A test runs on one thread.
    static BUG: RefCell<Option<PlantedInRedis>> = const { RefCell::new(None) };
}

/// What scripts that break say of themselves. A bug that was planted so clumsily shows nothing.
const BROKEN: [&str; 2] = ["user_script", "Error compiling script"];

/// Plants the bug of this thread. Every test that connects to Redis passes its settings here.
pub(crate) fn plant(settings: &mut RedisSettings) {
    settings.planted = BUG.with_borrow(Option::clone);
}

/// The text of a script, as this thread sends it.
pub(crate) fn script(file: &str) -> String {
    let planted = BUG.with_borrow(|bug| match bug {
        Some(PlantedInRedis::Script(bug)) if bug.file() == file => Some(bug.text().to_owned()),
        _ => None,
    });
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/backend/redis/scripts");
    planted.unwrap_or_else(|| std::fs::read_to_string(format!("{folder}/{file}")).unwrap())
}

/// Asserts that `test` fails when `line` of the script of `file` is replaced by `instead`.
pub(crate) fn caught((file, line, instead): (&'static str, &str, &str), test: fn()) {
    let bug = ScriptBug::new(file, line, instead).unwrap();
    BUG.set(Some(PlantedInRedis::Script(bug)));
    let outcome = catch_unwind(AssertUnwindSafe(test));
    BUG.set(None);
    let Err(panic) = outcome else {
        panic!("nobody sees that {file} has {instead:?} for {line:?}");
    };
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    let said = said.unwrap_or_default();
    let broken = BROKEN.iter().find(|word| said.contains(**word));
    assert_eq!(broken, None, "the script broke: {said}");
}
