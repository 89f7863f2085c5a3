use super::file::SettingsFile;
use super::*;

#[test]
fn a_flag_wins_over_the_default_and_says_so() {
    let args = ServeArgs {
        listen: Some("127.0.0.1:1".to_owned()),
        ..ServeArgs::default()
    };
    let settings = Settings::gather(&args).unwrap();
    assert_eq!(settings.listen.value, "127.0.0.1:1");
    let text = settings.describe();
    assert!(
        text.contains("127.0.0.1:1  (flag or environment)"),
        "{text}"
    );
    assert!(text.contains("closed  (default)"), "{text}");
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
