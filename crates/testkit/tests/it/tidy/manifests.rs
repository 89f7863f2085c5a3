//! Every crate inherits the lints, core adds its bans to them, and a lock file of npm names no host
//! (it would tie the build to the mirror its author used).

use super::source::{SourceFile, Violation};

pub(super) fn check(file: &SourceFile) -> Vec<Violation> {
    let package = file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
    if package && !inherits_lints(&file.text) {
        return vec![file.violation(1, "add `[lints]` with `workspace = true`")];
    }
    if file.path.ends_with("/package-lock.json") && file.text.contains("\"resolved\"") {
        return vec![file.violation(1, "names a host: keep `omit-lockfile-registry-resolved`")];
    }
    Vec::new()
}

fn inherits_lints(manifest: &str) -> bool {
    let manifest: toml::Table = manifest.parse().expect("cargo reads it, so it is TOML");
    let inherited = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    inherited.and_then(toml::Value::as_bool) == Some(true)
}

/// Clippy takes the nearest file and does not merge, so core's must repeat the workspace's.
pub(super) fn check_core_clippy(workspace: &str, core: &str) -> Vec<Violation> {
    let file = SourceFile::planted("crates/core/clippy.toml", core);
    let Some(own) = core.strip_prefix(workspace) else {
        return vec![file.violation(1, "does not begin with the text of clippy.toml")];
    };
    let banned = |path: &str| own.contains(&format!("\"{path}\""));
    let bans_hash_order = own.trim_start().starts_with("disallowed-types = [")
        && banned("std::collections::HashMap")
        && banned("std::collections::HashSet");
    if bans_hash_order {
        Vec::new()
    } else {
        vec![file.violation(1, "ban HashMap and HashSet")]
    }
}

#[test]
fn catches_a_crate_with_its_own_lints() {
    let count = |text| check(&SourceFile::planted("crates/a/Cargo.toml", text)).len();
    assert_eq!(
        count("[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"),
        0
    );
    assert_eq!(count("[package]\nname = \"a\"\n"), 1);
    assert_eq!(count("[lints.rust]\nunsafe_code = \"allow\"\n"), 1);
}

#[test]
fn catches_a_host_in_a_lock_file() {
    let count = |text| check(&SourceFile::planted("crates/a/package-lock.json", text)).len();
    assert_eq!(count("{\"integrity\": \"sha512-..\"}"), 0);
    assert_eq!(count("{\"resolved\": \"https://example.org/a.tgz\"}"), 1);
}

#[test]
fn catches_core_settings_that_drifted() {
    let bans = "disallowed-types = [\"std::collections::HashMap\", \"std::collections::HashSet\"]";
    let count = |core: &str| check_core_clippy("a = 1\n", core).len();
    assert_eq!(count(&format!("a = 1\n{bans}")), 0);
    assert_eq!(count(&format!("a = 2\n{bans}")), 1);
    assert_eq!(count("a = 1\n"), 1);
}
