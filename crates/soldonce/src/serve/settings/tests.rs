use clap::Args;

use super::file::SettingsFile;
use super::*;
use crate::serve::shield::ShieldWord;

#[test]
fn a_flag_wins_over_the_default_and_says_so() {
    let args = ServeArgs {
        listen: Some("127.0.0.1:1".to_owned()),
        ..ServeArgs::default()
    };
    let settings = Settings::gather(&args).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:1");
    let text = &settings.report;
    assert!(
        text.contains("127.0.0.1:1  (flag or environment)"),
        "{text}"
    );
    assert!(text.contains("closed  (default)"), "{text}");
}

#[test]
fn every_setting_has_a_line_of_its_own_and_no_secret_is_in_it() {
    let mut args = ServeArgs::default();
    args.database.url = Some("postgres://:hush@db/x".to_owned());
    args.database.connections = Some(12);
    args.payments.stripe_key = Some("sk_test_hush0123456789".to_owned());
    args.payments.stripe_webhook_secrets = vec!["whsec_hush0123456789".to_owned()];
    let text = Settings::gather(&args).unwrap().report;
    assert!(!text.contains("hush"), "{text}");
    for (name, shown) in [
        ("database_connections", "12  (flag or environment)"),
        ("database_statements", "prepared  (default)"),
        ("stripe_key", "(hidden)  (flag or environment)"),
        ("stripe_webhook_secret", "(hidden)  (flag or environment)"),
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
    toml::from_str::<SettingsFile>(&set.join("\n")).unwrap();
    let mut named: Vec<&str> = set
        .iter()
        .filter_map(|line| line.split(' ').next())
        .collect();
    named.sort_unstable();
    let shown = Settings::gather(&ServeArgs::default()).unwrap().report;
    let shown = shown.lines().filter_map(|line| line.split(' ').next());
    let mut shown: Vec<&str> = shown
        .filter(|name| !["config", "accept_loss"].contains(name))
        .collect();
    shown.sort_unstable();
    assert_eq!(named, shown);
}

/// What can be set can be seen, and the other way round.
#[test]
fn help_and_the_printed_settings_name_the_same() {
    let mut shown: Vec<String> = Settings::gather(&ServeArgs::default())
        .unwrap()
        .report
        .lines()
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    shown.sort();
    let command = ServeArgs::augment_args(clap::Command::new("serve"));
    let helped = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let mut helped: Vec<String> = helped
        .filter_map(clap::Arg::get_long)
        .filter(|name| *name != "print-settings")
        .map(|name| name.replace('-', "_"))
        .collect();
    helped.sort();
    assert_eq!(shown, helped);
}

#[test]
fn an_unknown_key_in_the_file_is_refused_by_name() {
    let error = toml::from_str::<SettingsFile>("lisen = \"x\"").unwrap_err();
    assert!(error.to_string().contains("lisen"), "{error}");
}

#[test]
fn a_short_admin_key_is_refused_and_never_shown() {
    let args = ServeArgs {
        admin_key: Some("hunter2".to_owned()),
        ..ServeArgs::default()
    };
    let error = format!("{:#}", Settings::gather(&args).unwrap_err());
    assert!(
        error.contains("admin_key") && !error.contains("hunter2"),
        "{error}"
    );
    let key = AdminKey("0123456789abcdef".to_owned());
    assert!(!format!("{key:?}").contains("0123"));
}

#[test]
fn a_shield_between_servers_is_there_when_it_can_be() {
    let gathered = |database: bool, redis: bool, shield: Option<ShieldWord>| {
        let mut args = ServeArgs::default();
        args.database.url = database.then(|| "postgres://db/x".to_owned());
        args.limits.redis_url = redis.then(|| "redis://:hidden@h".to_owned());
        args.shield.shield = shield;
        Settings::gather(&args)
    };
    let chosen = |database, redis, shield| gathered(database, redis, shield).unwrap().shield;
    for (database, redis, expected) in [
        (true, true, ShieldWord::Redis),
        (true, false, ShieldWord::Local),
        (false, true, ShieldWord::Local),
    ] {
        let shield = chosen(database, redis, None);
        assert_eq!(shield.word, expected);
        assert_eq!(shield.between.is_some(), expected == ShieldWord::Redis);
    }
    let local = chosen(true, true, Some(ShieldWord::Local));
    assert!(local.between.is_none());
    let error = |database, redis| {
        let error = gathered(database, redis, Some(ShieldWord::Redis)).unwrap_err();
        format!("{error:#}")
    };
    assert!(error(false, true).contains("--database-url"));
    assert!(error(true, false).contains("--redis-url"));
    let shown = gathered(true, true, None).unwrap();
    assert!(shown.report.contains("redis  (default)"));
    assert!(!format!("{shown:?}").contains(":hidden@"));
}

#[test]
fn a_shield_may_have_a_redis_of_its_own() {
    let gathered = |database: bool, shield: Option<ShieldWord>| {
        let mut args = ServeArgs::default();
        args.database.url = database.then(|| "postgres://db/x".to_owned());
        args.shield.shield = shield;
        args.shield.shield_url = Some("redis://:hidden@h".to_owned());
        Settings::gather(&args)
    };
    let settings = gathered(true, None).unwrap();
    assert_eq!(settings.shield.word, ShieldWord::Redis);
    let shown = &settings.report;
    assert!(shown.contains("(hidden)  (flag or environment)"), "{shown}");
    assert!(!format!("{settings:?}").contains(":hidden@"));
    let error = |database, shield| format!("{:#}", gathered(database, shield).unwrap_err());
    assert!(error(false, None).contains("--database-url"));
    assert!(error(true, Some(ShieldWord::Local)).contains("shield_url"));
    let mut wrong = ServeArgs::default();
    wrong.database.url = Some("postgres://db/x".to_owned());
    wrong.shield.shield_url = Some("http://:hidden@h".to_owned());
    let text = format!("{:#}", Settings::gather(&wrong).unwrap_err());
    assert!(text.contains("shield_url: write redis://"), "{text}");
}

#[test]
fn an_origin_has_a_scheme_and_no_path() {
    let gathered = |origin: &str| {
        Settings::gather(&ServeArgs {
            origins: vec![origin.to_owned()],
            ..ServeArgs::default()
        })
    };
    for origin in ["https://shop.example", "http://127.0.0.1:3000"] {
        assert_eq!(gathered(origin).unwrap().origins, [origin]);
    }
    for wrong in [
        "foo",
        "https://",
        "shop.example",
        "https://shop.example/",
        "ftp://x",
    ] {
        let error = format!("{:#}", gathered(wrong).unwrap_err());
        assert!(error.starts_with(&format!("origins: `{wrong}`")), "{error}");
    }
}

#[test]
fn a_tick_of_the_feed_has_bounds() {
    let gather = |feed_tick_ms| {
        Settings::gather(&ServeArgs {
            feed_tick_ms: Some(feed_tick_ms),
            ..ServeArgs::default()
        })
    };
    for legal in [10, 100, 1_000] {
        assert_eq!(gather(legal).unwrap().feed.tick_ms, legal);
    }
    for wrong in [0, 9, 1_001] {
        let error = gather(wrong).unwrap_err().to_string();
        assert!(
            error.contains(&format!("feed_tick_ms: {wrong} ")),
            "{error}"
        );
    }
}
