//! What is installed: the Debian package and the root of the image, each unpacked and started without the
//! machine's own files, and what `init`, `completions` and `man` write.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use soldonce_testkit::{program, workspace};

use crate::backup::run;
use crate::crash::server::{PROGRAM, Server};
use crate::operate::sell_one;
use crate::store::folder;
use crate::watch::asked_by_the_dashboard;

/// Runs a program that must end well; what it says.
fn ends_well(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

fn deploy(name: &str) -> std::path::PathBuf {
    workspace().unwrap().join("deploy").join(name)
}

/// Sells a seat by a server that runs as `command` says.
fn sells(mut command: Command, data: &Path) {
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command, data).unwrap();
    sell_one(&mut server.client("ann"));
    assert!(server.stop().success());
}

#[test]
fn the_debian_package_has_what_a_service_needs_and_sells_a_seat() {
    let place = folder("packages-deb");
    ends_well(
        Command::new(deploy("deb/build"))
            .arg(PROGRAM)
            .arg(&place)
            .env("SOLDONCE_DEB_COMPRESSION", "none"),
    );
    let package = std::fs::read_dir(&place)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let told = ends_well(Command::new("dpkg-deb").arg("--info").arg(&package));
    for line in ["Package: soldonce", "Version: 0.", "Depends: libc6 (>= 2."] {
        assert!(told.contains(line), "{told}");
    }
    let root = place.join("root");
    ends_well(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let unit = root.join("lib/systemd/system/soldonce.service");
    let security = ends_well(
        Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--threshold=30", "--no-pager"])
            .arg(unit),
    );
    assert!(security.contains("Overall exposure level"), "{security}");
    let mut command = Command::new(root.join("usr/bin/soldonce"));
    command.env("SOLDONCE_CONFIG", root.join("etc/soldonce/soldonce.toml"));
    command.env("SOLDONCE_DATA", place.join("data"));
    sells(command, &place.join("server"));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_root_of_the_image_has_all_that_the_binary_needs() {
    let place = folder("packages-image");
    let root = place.join("root");
    ends_well(Command::new(deploy("image/rootfs")).arg(PROGRAM).arg(&root));
    let inside = |program: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--user", "--map-root-user", "--root"])
            .arg(&root);
        command.args(["--wd", "/tmp", "--", program]);
        command
    };
    assert!(
        !inside("/bin/sh").output().unwrap().status.success(),
        "there is a shell"
    );
    let mut command = inside("/usr/bin/soldonce");
    // /data is the user's of the image, who is unknown in a namespace of a test.
    command.env("SOLDONCE_DATA", "/tmp/data");
    sells(command, &place.join("server"));
    assert!(root.join("tmp/data/ledger.sqlite").exists());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_alerts_fire_and_are_silent() {
    let rules = deploy("prometheus/alerts.test.yml");
    ends_well(
        Command::new(program("promtool").unwrap())
            .args(["test", "rules"])
            .arg(rules),
    );
}

#[test]
fn the_dashboard_asks_what_prometheus_understands() {
    let place = folder("packages-dashboard");
    // Rules of the same name must differ in a label.
    let rules = asked_by_the_dashboard().into_iter().enumerate();
    let rules = rules.map(|(at, asked)| {
        let asked = asked.replace("$__rate_interval", "5m");
        json!({"record": "panel", "labels": {"at": at.to_string()}, "expr": asked})
    });
    let rules: Vec<Value> = rules.collect();
    // JSON is YAML, too.
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules}]});
    let file = place.join("rules.yml");
    std::fs::write(&file, rules.to_string()).unwrap();
    let mut check = Command::new(program("promtool").unwrap());
    ends_well(check.args(["check", "rules"]).arg(file));
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn init_completions_and_man_write_what_an_installation_needs() {
    let place = folder("packages-init");
    let at = place.display().to_string();
    let (code, said) = run(&["init", &at]);
    assert_eq!(code, Some(0), "{said}");
    let config = place.join("soldonce.toml");
    let settings = [
        "serve",
        "--print-settings",
        "--config",
        config.to_str().unwrap(),
    ];
    let (code, said) = run(&settings);
    assert_eq!(code, Some(0), "{said}");
    std::fs::write(&config, "feed_tick_ms = 50\n").unwrap();
    let (_, said) = run(&["init", &at]);
    assert!(said.contains("soldonce.toml stays as it is"), "{said}");
    assert_eq!(
        std::fs::read_to_string(&config).unwrap(),
        "feed_tick_ms = 50\n"
    );
    for shell in ["bash", "zsh", "fish"] {
        let (code, said) = run(&["completions", shell]);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("free-sales"), "{shell}");
    }
    let (code, said) = run(&["man", &at]);
    assert_eq!(code, Some(0), "{said}");
    let page = std::fs::read_to_string(place.join("soldonce-serve.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("tls"), "{page}");
    std::fs::remove_dir_all(&place).unwrap();
}
