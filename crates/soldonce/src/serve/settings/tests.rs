use clap::Args;

use super::*;
use crate::env;

/// Reads these flags and this settings file, without an environment.
fn given(flags: &[&str], file: &str) -> anyhow::Result<Sources> {
    let command = env::without(ServeArgs::augment_args(clap::Command::new("serve")));
    let line = ["serve"].iter().chain(flags).map(Into::into);
    Sources::new(command, line, file)
}

/// Builds the settings from them. Returns what `--print-settings` shows, too.
pub(super) fn gathered(flags: &[&str], file: &str) -> anyhow::Result<(Settings, String)> {
    let given = given(flags, file)?;
    let settings = Settings::gather(&given.args)?;
    let shown = given.report(&settings.notes);
    Ok((settings, shown))
}

/// Returns the error of building settings from them.
pub(super) fn refused(flags: &[&str], file: &str) -> String {
    format!("{:#}", gathered(flags, file).unwrap_err())
}

/// Returns the names that `--print-settings` shows, sorted.
fn names() -> Vec<String> {
    let (_, shown) = gathered(&[], "").unwrap();
    let names = shown.lines().filter_map(|line| line.split(' ').next());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_flag_wins_over_the_file_and_that_over_the_default_and_each_says_so() {
    let file = "listen = '127.0.0.1:2'\ndata = 'elsewhere'\nfeed_tick_ms = 50";
    let (settings, text) = gathered(&["--listen=127.0.0.1:1"], file).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:1");
    for told in [
        "127.0.0.1:1  (flag or environment)",
        "elsewhere  (file)",
        "50  (file)",
        "closed  (default)",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

#[test]
fn every_setting_has_a_line_of_its_own_and_no_secret_is_in_it() {
    let flags = [
        "--database-url=postgres://:hush@db/x",
        "--database-connections=12",
        "--stripe-key=sk_test_hush0123456789",
    ];
    let file = "stripe_webhook_secret = ['whsec_hush0123456789']";
    let (_, text) = gathered(&flags, file).unwrap();
    assert!(!text.contains("hush"), "{text}");
    for (name, shown) in [
        ("database_connections", "12  (flag or environment)"),
        ("database_statements", "prepared  (default)"),
        ("stripe_key", "(hidden)  (flag or environment)"),
        ("stripe_webhook_secret", "(hidden)  (file)"),
        ("listen", "127.0.0.1:8080  (default)"),
        ("stripe_account", "that of the key  (default)"),
        ("stripe_capture", "manual  (default)"),
        ("stripe_url", "that of Stripe  (default)"),
        ("webhook_destinations", "public  (default)"),
        ("cookie", "secure unless on loopback  (default)"),
    ] {
        // One column for the names, another for the values.
        let line = format!("{name:<21} {shown}");
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
}

#[test]
fn the_file_that_init_writes_names_every_setting() {
    let text = include_str!("../../../../../deploy/soldonce.toml");
    let set = text.lines().filter_map(|line| line.strip_prefix('#'));
    let set: Vec<&str> = set
        .filter(|line| line.starts_with(char::is_alphabetic))
        .collect();
    given(&[], &set.join("\n")).unwrap();
    let mut named: Vec<&str> = set
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    named.sort_unstable();
    let mut shown = names();
    shown.retain(|name| !["config", "accept_loss"].contains(&name.as_str()));
    assert_eq!(named, shown);
}

/// Compares both lists: each setting in `--help` is printed, and the other way round.
#[test]
fn help_and_the_printed_settings_name_the_same() {
    let command = ServeArgs::augment_args(clap::Command::new("serve"));
    let helped = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut helped: Vec<String> = helped
        .filter_map(clap::Arg::get_long)
        .filter(|name| *name != "print-settings")
        .map(|name| name.replace('-', "_"))
        .collect();
    helped.sort();
    assert_eq!(names(), helped);
}

/// Compares with what the help and the manual say of variables that have several values.
#[test]
fn commas_separate_the_values_of_a_variable_and_spaces_the_addresses_of_leases() {
    let command = ServeArgs::augment_args(clap::Command::new("serve"));
    let several = command
        .get_arguments()
        .filter(|arg| matches!(arg.get_action(), clap::ArgAction::Append));
    let mut separated: Vec<_> = several
        .map(|arg| (arg.get_id().as_str(), arg.get_value_delimiter()))
        .collect();
    separated.sort_unstable();
    let expected = [
        ("lease_url", Some(' ')),
        ("origins", Some(',')),
        ("stripe_webhook_secret", Some(',')),
        ("trusted_proxies", Some(',')),
    ];
    assert_eq!(separated, expected);
}

#[test]
fn what_a_file_may_not_say_is_refused_by_name_though_a_flag_is_right() {
    for (file, told) in [
        ("lisen = 'x'", "lisen is no setting"),
        ("config = 'x'", "config is no setting"),
        ("accept_loss = true", "accept_loss is no setting"),
        ("listen = true", "listen: "),
        ("listen = ['a', 'b']", "listen: "),
        ("listen = 'a'\nlisten = 'b'", "line 2"),
        ("feed = 'pol'", "--feed"),
        ("feed_tick_ms = 'fast'", "--feed-tick-ms"),
    ] {
        let error = refused(&["--listen=x:1", "--feed=poll", "--feed-tick-ms=50"], file);
        assert!(error.contains(told), "{told}: {error}");
    }
}

#[test]
fn a_line_that_is_no_toml_is_named_and_never_shown() {
    for (file, told) in [
        ("stripe_key = sk_test_hush0123456789", "line 1: string"),
        (
            "listen = 'x:1'\nadmin_key = hush-hush-hush-hush\n",
            "line 2: string",
        ),
    ] {
        let error = refused(&[], file);
        assert!(error.contains(told) && !error.contains("hush"), "{error}");
    }
}

#[test]
fn a_short_admin_key_is_refused_and_never_shown() {
    let error = refused(&["--admin-key=hunter2"], "");
    assert!(
        error.contains("admin_key") && !error.contains("hunter2"),
        "{error}"
    );
    let key = AdminKey("0123456789abcdef".to_owned());
    assert!(!format!("{key:?}").contains("0123"));
}

const DATABASE: &str = "--database-url=postgres://db/x";
const REDIS: &str = "--redis-url=redis://:hidden@h";
const OWN: &str = "--shield-url=redis://:hidden@h";

#[test]
fn a_shield_between_servers_is_there_when_it_can_be() {
    let chosen = |flags: &[&str]| gathered(flags, "").unwrap().0.shield;
    assert!(chosen(&[DATABASE, REDIS]).is_some());
    for local in [
        &[DATABASE][..],
        &[REDIS],
        &[DATABASE, REDIS, "--shield=local"],
    ] {
        assert!(chosen(local).is_none(), "{local:?}");
    }
    assert!(refused(&[REDIS, "--shield=redis"], "").contains("--database-url"));
    assert!(refused(&[DATABASE, "--shield=redis"], "").contains("--redis-url"));
    let (settings, shown) = gathered(&[DATABASE, REDIS], "").unwrap();
    assert!(shown.contains("redis  (default)"));
    assert!(!format!("{settings:?}").contains(":hidden@"));
}

#[test]
fn a_shield_may_have_a_redis_of_its_own() {
    let (settings, shown) = gathered(&[DATABASE, OWN], "").unwrap();
    assert!(settings.shield.is_some());
    assert!(shown.contains("(hidden)  (flag or environment)"), "{shown}");
    assert!(!format!("{settings:?}").contains(":hidden@"));
    assert!(refused(&[OWN], "").contains("--database-url"));
    assert!(refused(&[DATABASE, OWN, "--shield=local"], "").contains("shield_url"));
    let text = refused(&[DATABASE, "--shield-url=http://:hidden@h"], "");
    assert!(text.contains("shield_url: write redis://"), "{text}");
}

#[test]
fn an_origin_has_a_scheme_and_no_path() {
    for origin in ["https://shop.example", "http://127.0.0.1:3000"] {
        let (settings, _) = gathered(&["--origins", origin], "").unwrap();
        assert_eq!(settings.origins, [origin]);
    }
    for wrong in [
        "foo",
        "https://",
        "shop.example",
        "https://shop.example/",
        "ftp://x",
    ] {
        let error = refused(&["--origins", wrong], "");
        assert!(error.starts_with(&format!("origins: `{wrong}`")), "{error}");
    }
}

#[test]
fn a_tick_of_the_feed_has_bounds() {
    let file = |tick_ms| format!("feed_tick_ms = {tick_ms}");
    for legal in [10, 100, 1_000] {
        let (settings, _) = gathered(&[], &file(legal)).unwrap();
        assert_eq!(settings.feed.tick_ms, legal);
    }
    for wrong in [0, 9, 1_001] {
        let error = refused(&[], &file(wrong));
        assert!(
            error.contains(&format!("feed_tick_ms: {wrong} ")),
            "{error}"
        );
    }
}
