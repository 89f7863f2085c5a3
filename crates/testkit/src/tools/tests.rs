use std::ffi::{OsStr, OsString};

use super::{Machine, Path, PathBuf, TOOL, Tool, debian, from_debian, listed, node, provide};

const SHELL: Tool = Tool {
    name: "shell",
    commands: &["no-such-shell", "sh"],
    source: from_debian(&["dash"], "bin/dash"),
    by_hand: "apt-get install dash",
    ..TOOL
};

fn machine(environment: &[(&str, &str)]) -> Machine {
    let environment = environment
        .iter()
        .map(|(k, v)| (OsString::from(k), OsString::from(v)));
    Machine::new(environment, PathBuf::from("/dev/null/deps"), |_| {})
}

#[test]
fn the_environment_wins() {
    let machine = machine(&[("SOLDONCE_SHELL", "/bin/sh"), ("PATH", "/nowhere")]);
    assert_eq!(provide(&SHELL, &machine).unwrap(), Path::new("/bin/sh"));
}

#[test]
fn an_environment_that_names_no_file_is_an_error_not_a_search() {
    let machine = machine(&[("SOLDONCE_SHELL", "/nowhere/sh"), ("PATH", "/bin")]);
    assert!(provide(&SHELL, &machine).is_err());
}

#[test]
fn the_path_is_searched_in_the_order_of_the_names() {
    let machine = machine(&[("PATH", "/nowhere:/bin")]);
    assert_eq!(provide(&SHELL, &machine).unwrap(), Path::new("/bin/sh"));
}

#[test]
fn what_cannot_be_had_names_its_mend() {
    let unsuited = Tool {
        suits: |_| false,
        ..SHELL
    };
    let error = provide(&unsuited, &machine(&[("PATH", "/bin")]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("apt-get install dash") && error.contains("SOLDONCE_SHELL"),
        "{error}"
    );
}

#[test]
fn apts_plan_is_read() {
    let plan = "NOTE: simulated\nInst libnss3 (2:3.87 Debian:12 [amd64])\n\
                Inst chromium [150.0] (156.0 Debian:12 [amd64]) []\nConf libnss3 (2:3.87)\n";
    assert!(debian::planned(plan).iter().eq(["chromium", "libnss3"]));
}

#[test]
fn versions_of_node_are_read() {
    assert_eq!(node::major("v18.20.4\n"), Some(18));
    assert_eq!(node::major("nonsense"), None);
}

#[test]
fn a_place_with_a_version_in_it_is_searched_after_the_path() {
    let nowhere = Tool {
        commands: &["no-such-shell"],
        places: &["/usr/*/no-such-shell", "/usr/*/sh"],
        ..SHELL
    };
    let found = provide(&nowhere, &machine(&[("PATH", "/bin")])).unwrap();
    assert!(
        found.starts_with("/usr") && found.ends_with("sh"),
        "{}",
        found.display()
    );
}

#[test]
fn what_only_a_long_run_fetches_is_refused_to_other_profiles() {
    let listed = |name, profile: Option<&str>| {
        let tool = listed(name, profile.map(OsStr::new));
        tool.map(|tool| tool.name)
            .map_err(|refused| refused.to_string())
    };
    assert_eq!(listed("nginx", Some("default")), Ok("nginx"));
    assert_eq!(listed("promtool", Some("long")), Ok("promtool"));
    assert_eq!(listed("promtool", None), Ok("promtool"));
    let refused = listed("promtool", Some("default")).unwrap_err();
    assert!(
        refused.contains("only ./test long fetches promtool"),
        "{refused}"
    );
    let unknown = listed("prometool", Some("default")).unwrap_err();
    assert_eq!(unknown, "no such tool is listed");
}
