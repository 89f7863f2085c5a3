//! Which crate may use which dependency. The table is the whole permission: a new dependency is a
//! line here, in view of the reviewer (docs/decisions).

use serde_json::Value;

use super::source::Violation;

/// What every crate but core and lease may use, besides its own line below.
const EVERYWHERE: &str = "bytes jiff secrecy serde serde_json thiserror tokio tokio-util tracing";

/// What tests and examples of any crate may use, besides what their crate may and our own crates.
const TESTS: &str = "axum base64 hmac insta opentelemetry-proto prost proptest protox rslock rstest rusqlite rustls serde_json sha2 stateright tempfile tokio \
                     tracing-subscriber";

/// A crate, and the packages it may use.
const TABLE: [(&str, &str); 10] = [
    ("soldonce-core", ""),
    ("soldonce-clock", "getrandom rustix tokio"),
    (
        "soldonce-tls",
        "futures-util percent-encoding rustls rustls-native-certs sha2 tokio-postgres tokio-rustls",
    ),
    (
        "soldonce-lease",
        "soldonce-clock soldonce-tls futures-util metrics redis rustix serde sha2 thiserror tokio tokio-postgres tokio-util \
         tracing",
    ),
    (
        "soldonce-engine",
        "soldonce-clock soldonce-core soldonce-lease soldonce-tls \
         base64 deadpool-postgres hmac prometheus-client redis refinery reqwest rusqlite rustix \
         rustls sha2 subtle tokio-postgres uuid",
    ),
    (
        "soldonce-server",
        "soldonce-clock soldonce-core soldonce-lease soldonce-engine soldonce-tls \
         axum brotli flate2 futures-util http http-body http-body-util hyper hyper-util itoa \
         opentelemetry opentelemetry-http opentelemetry_sdk prometheus-client prost-reflect reqwest rust-embed rustix sha2 tokio-rustls tonic tonic-health tonic-reflection \
         tonic-types tower tracing-opentelemetry utoipa",
    ),
    (
        "soldonce",
        "soldonce-clock soldonce-core soldonce-lease soldonce-engine soldonce-server soldonce-tls fake-stripe \
         anyhow clap clap_complete clap_mangen comfy-table hyper indicatif nix opentelemetry opentelemetry-otlp opentelemetry_sdk \
         rustix strsim tikv-jemallocator toml tracing-opentelemetry tracing-subscriber",
    ),
    (
        "fake-stripe",
        "soldonce-clock anyhow hmac http-body-util hyper hyper-util sha2",
    ),
    (
        "soldonce-lab",
        "soldonce-clock soldonce-core soldonce-lease soldonce-engine soldonce-server \
         soldonce-testkit anyhow axum clap comfy-table deadpool-postgres hdrhistogram httparse \
         indicatif prost redis rusqlite rustix tonic tonic-prost tower",
    ),
    (
        "soldonce-testkit",
        "anyhow base64 hmac hyper rcgen rustix rustls sha2 toml \
         clap futures-util indexmap libc num-traits redis reqwest rust-embed serde_core tower \
         tracing-subscriber utoipa",
    ),
];

fn lists(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

/// Compares the packages each crate names with the table; `metadata` is what `cargo metadata` says.
pub(super) fn check(metadata: &str) -> Vec<Violation> {
    let metadata: Value = serde_json::from_str(metadata).expect("cargo prints JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo lists packages");
    packages.iter().flat_map(check_crate).collect()
}

fn check_crate(package: &Value) -> Vec<Violation> {
    let crate_name = package["name"].as_str().unwrap_or_default();
    let violation = |message| Violation {
        place: crate_name.to_owned(),
        message,
    };
    let Some((_, own)) = TABLE.iter().find(|(name, _)| *name == crate_name) else {
        return vec![violation(
            "is not in the table of tidy/dependencies.rs".to_owned(),
        )];
    };
    let alone = ["soldonce-core", "soldonce-clock", "soldonce-lease"].contains(&crate_name);
    let dependencies = package["dependencies"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter_map(|dependency| {
            let name = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            let allowed = lists(own, name)
                || (!alone && lists(EVERYWHERE, name))
                || (for_tests
                    && (lists(TESTS, name)
                        || (name.starts_with("soldonce-") || name == "fake-stripe")));
            (!allowed).then(|| violation(format!("may not use {name}")))
        })
        .collect()
}

/// The binary that users run holds neither the lab nor what tests need; `listing` is what
/// `cargo tree -p soldonce -e normal` says.
pub(super) fn check_product(listing: &str) -> Vec<Violation> {
    assert!(listing.starts_with("soldonce v"), "{listing}");
    let kept_out = ["soldonce-lab", "soldonce-testkit"];
    listing
        .lines()
        .filter(|line| {
            kept_out
                .iter()
                .any(|name| line.contains(&format!("{name} v")))
        })
        .map(|line| Violation {
            place: "soldonce".to_owned(),
            message: format!("depends on {line}"),
        })
        .collect()
}

/// Core stands on the standard library alone; `listing` is what `cargo tree -e normal` says.
pub(super) fn check_core(listing: &str) -> Vec<Violation> {
    let mut lines = listing.lines().filter(|line| !line.is_empty());
    assert!(
        lines
            .next()
            .is_some_and(|first| first.starts_with("soldonce-core ")),
        "{listing}"
    );
    lines
        .map(|line| Violation {
            place: "soldonce-core".to_owned(),
            message: format!("depends on {line}"),
        })
        .collect()
}

#[test]
fn catches_a_dependency_outside_the_table() {
    let count = |name: &str, dependency: &str, kind: &str| {
        let dependency = format!("{{\"name\": \"{dependency}\", \"kind\": {kind}}}");
        let package = format!("{{\"name\": \"{name}\", \"dependencies\": [{dependency}]}}");
        check(&format!("{{\"packages\": [{package}]}}")).len()
    };
    assert_eq!(count("soldonce-core", "serde", "null"), 1);
    assert_eq!(count("soldonce-core", "proptest", "\"dev\""), 0);
    assert_eq!(count("soldonce-lease", "soldonce-core", "null"), 1);
    assert_eq!(count("soldonce-server", "rusqlite", "null"), 1);
    assert_eq!(count("soldonce-server", "deadpool-postgres", "\"dev\""), 1);
    assert_eq!(count("soldonce-engine", "rusqlite", "null"), 0);
    assert_eq!(count("soldonce-engine", "serde", "null"), 0);
    assert_eq!(count("soldonce-unheard-of", "serde", "null"), 1);
}

#[test]
fn catches_the_lab_in_the_product() {
    let count =
        |below: &str| check_product(&format!("soldonce v0.1.0\n├── {below} v0.1.0\n")).len();
    assert_eq!(count("soldonce-engine"), 0);
    assert_eq!(count("soldonce-lab"), 1);
    assert_eq!(count("soldonce-testkit"), 1);
}

#[test]
fn catches_anything_under_core() {
    assert_eq!(check_core("soldonce-core v0.1.0 (crates/core)\n").len(), 0);
    assert_eq!(
        check_core("soldonce-core v0.1.0 (crates/core)\n└── tokio v1.54.1\n").len(),
        1
    );
}
