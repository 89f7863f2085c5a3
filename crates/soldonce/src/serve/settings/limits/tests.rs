use soldonce_engine::ledger::postgres::PostgresOptions;
use soldonce_engine::rate::Quota;

use super::given::{read, written};
use crate::serve::settings::tests::{gathered, refused};

#[test]
fn the_defaults_are_those_that_help_tells() {
    let (_, text) = gathered(&[], "").unwrap();
    let connections = PostgresOptions::new("").connections.to_string();
    for (name, told) in [
        ("database_connections", connections.as_str()),
        ("limit_sessions", "300/1m"),
        ("limit_commands", "120/1m"),
        ("limit_address", "1200/1m"),
        ("limit_held", "200"),
        ("limit_share", "10%"),
        ("limit_checkouts", "20"),
        ("limit_lapses", "60/1h"),
        ("limit_reads", "6000/1m"),
        ("limit_keys", "off"),
        ("limit_streams", "256"),
        ("limit_connections", "10000"),
        ("limit_peer", "1250"),
        ("trusted_proxies", "none"),
        ("redis_url", "none"),
    ] {
        let told = format!("{name:<21} {told}  (default)\n");
        assert!(text.contains(&told), "{told}\n{text}");
    }
}

#[test]
fn a_flag_wins_over_the_file_and_off_is_no_limit() {
    let file = "limit_held = 'off'\nlimit_share = '25%'\nlimit_sessions = '1/s'\nlimit_keys = '90/90s'\nlimit_streams = '0'\n\
                limit_connections = '20000'\n\
                trusted_proxies = ['10.0.0.0/8', '::1']";
    let (settings, text) = gathered(&["--limit-sessions=off"], file).unwrap();
    let rates = settings.limits.rates;
    assert_eq!(rates.sessions, None);
    assert_eq!(
        (rates.held.units, rates.held.share_percent),
        (None, Some(25))
    );
    assert_eq!(rates.keys, Quota::new(90, 90).ok());
    assert_eq!(rates.trusted_proxies.len(), 2);
    let streams = settings.limits.streams;
    assert_eq!((streams.per_address, streams.total), (20_000, 20_000));
    assert!(text.contains("off  (flag or environment)"), "{text}");
    assert!(text.contains("90/90s  (file)"), "{text}");
    assert!(text.contains("10.0.0.0/8, ::1  (file)"), "{text}");
}

#[test]
fn a_quota_is_written_as_it_is_read() {
    for text in ["300/1m", "50/1s", "7/24h", "90/90s"] {
        assert_eq!(written(read(text).unwrap()), text);
    }
    assert_eq!(written(read("50/s").unwrap()), "50/1s");
}

#[test]
fn an_error_names_the_setting_the_value_and_the_mend() {
    for wrong in [
        "x", "5", "5/", "/1m", "-1/1m", "5/1w", "0/1m", "5/25h", "1/500ms",
    ] {
        let error = refused(&[&format!("--limit-reads={wrong}")], "");
        let told = ["limit_reads", wrong, "300/1m"];
        assert!(told.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = refused(&["--limit-streams=99999999"], "");
    assert!(
        error.contains("limit_streams: 99999999") && error.contains("off"),
        "{error}"
    );
    for wrong in ["101", "0%", "-1", "x", "10%%"] {
        let error = refused(&[&format!("--limit-share={wrong}")], "");
        let told = [format!("limit_share: {wrong}"), "1 to 100".to_owned()];
        assert!(told.iter().all(|part| error.contains(part)), "{error}");
    }
    let error = refused(&["--trusted-proxies=10.0.0.1/8"], "");
    assert!(error.contains("trusted_proxies: 10.0.0.1/8"), "{error}");
    assert!(error.contains("must be zero"), "{error}");
}

#[test]
fn a_wrong_address_of_redis_stops_the_start_and_is_not_shown() {
    let error = refused(&["--redis-url=http://:hidden@h"], "");
    assert!(
        error.contains("redis_url: write redis://") && error.contains("rediss for TLS"),
        "{error}"
    );
    assert!(!error.contains("hidden"), "{error}");
    let file = "redis_url = 'redis://:hidden@h'";
    let (settings, text) = gathered(&[], file).unwrap();
    assert!(settings.limits.rates.shared.is_some());
    let shown = format!("{text}{settings:?}");
    assert!(
        shown.contains("(hidden)  (file)") && !shown.contains(":hidden@"),
        "{shown}"
    );
}
