//! The rules of deny.toml about licences, banned packages and sources, over every locked package.
//! `cargo deny` says more (advisories, duplicates) where it is installed; this says the essential
//! everywhere, from the same file.

use serde_json::Value;

use super::source::Violation;

/// What deny.toml permits.
pub(super) struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
}

impl Rules {
    pub(super) fn parse(deny: &str) -> Self {
        let deny: toml::Table = deny.parse().expect("deny.toml is TOML");
        let list = |section: &str, key: &str| {
            deny[section][key]
                .as_array()
                .expect("deny.toml has this list")
                .clone()
        };
        let licences = list("licenses", "allow");
        let banned = list("bans", "deny");
        Self {
            licences: licences
                .iter()
                .filter_map(|id| Some(id.as_str()?.to_owned()))
                .collect(),
            banned: banned
                .iter()
                .filter_map(|b| Some(b["crate"].as_str()?.to_owned()))
                .collect(),
        }
    }

    /// `metadata` is what `cargo metadata` says of the whole graph.
    pub(super) fn check(&self, metadata: &str) -> Vec<Violation> {
        let metadata: Value = serde_json::from_str(metadata).expect("cargo prints JSON");
        let packages = metadata["packages"]
            .as_array()
            .expect("cargo lists packages");
        packages
            .iter()
            .flat_map(|package| self.check_package(package))
            .collect()
    }

    fn check_package(&self, package: &Value) -> Vec<Violation> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = text("name");
        let source = package["source"].as_str();
        let mut complaints = Vec::new();
        if self.banned.iter().any(|banned| banned == name) {
            complaints.push("is banned by deny.toml".to_owned());
        }
        if !self.permits(text("license")) {
            complaints.push(format!("licence `{}` is not in deny.toml", text("license")));
        }
        if source.is_some_and(|source| !source.starts_with("registry+")) {
            complaints.push("does not come from the registry".to_owned());
        }
        let place = format!("{name} {}", text("version"));
        complaints
            .into_iter()
            .map(|message| Violation {
                place: place.clone(),
                message,
            })
            .collect()
    }

    /// Whether a licence expression can be met: any side of `OR`, all sides of `AND`.
    fn permits(&self, expression: &str) -> bool {
        let expression = expression.replace('/', " OR ");
        let inner = expression
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'));
        if let Some(inner) = inner.filter(|inner| is_balanced(inner)) {
            return self.permits(inner);
        }
        if let Some(sides) = split_outside(&expression, " AND ") {
            return sides.iter().all(|side| self.permits(side));
        }
        if let Some(sides) = split_outside(&expression, " OR ") {
            return sides.iter().any(|side| self.permits(side));
        }
        self.licences
            .iter()
            .any(|licence| *licence == expression.trim())
    }
}

/// The sides of an operator that stands outside of brackets, if there is one.
fn split_outside<'a>(expression: &'a str, operator: &str) -> Option<[&'a str; 2]> {
    expression.match_indices(operator).find_map(|(at, _)| {
        let (left, right) = (&expression[..at], &expression[at + operator.len()..]);
        is_balanced(left).then_some([left.trim(), right.trim()])
    })
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0_i32;
    for letter in text.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

#[test]
fn catches_a_banned_a_foreign_and_an_unlicensed_package() {
    let rules = Rules::parse(
        "[licenses]\nallow = [\"MIT\", \"Zlib\"]\n[bans]\ndeny = [{ crate = \"sqlx\", reason = \"r\" }]",
    );
    let count = |name: &str, licence: &str, source: &str| {
        let package = serde_json::json!({ "name": name, "license": licence, "source": source });
        rules
            .check(&serde_json::json!({ "packages": [package] }).to_string())
            .len()
    };
    assert_eq!(count("a", "MIT OR GPL-3.0", "registry+x"), 0);
    assert_eq!(count("a", "Unlicense/MIT", "registry+x"), 0);
    assert_eq!(count("a", "(GPL-3.0 OR MIT) AND Zlib", "registry+x"), 0);
    assert_eq!(count("a", "(GPL-3.0 OR MIT) AND BSL", "registry+x"), 1);
    assert_eq!(count("a", "", "registry+x"), 1);
    assert_eq!(count("sqlx", "MIT", "registry+x"), 1);
    assert_eq!(count("a", "MIT", "git+x"), 1);
}
