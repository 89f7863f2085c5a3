//! What is installed: the Debian package and the root of the image, each unpacked and started without the
//! machine's own files, and what `init`, `completions` and `man` write.

use std::path::Path;
use std::process::Command;

use soldonce_testkit::{program, workspace};

use crate::backup::run;
use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server};
use crate::operate::sell_one;
use crate::store::folder;

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
fn each_alert_is_explained_and_rests_on_metrics_that_exist() {
    let rules = std::fs::read_to_string(deploy("prometheus/alerts.yml")).unwrap();
    let explained =
        std::fs::read_to_string(workspace().unwrap().join("docs/operations.md")).unwrap();
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    for alert in alerts {
        assert!(explained.contains(&format!("| `{alert}` |")), "{alert}");
    }
    let place = folder("packages-alerts");
    let server = Server::start(&place.join("data")).unwrap();
    let metrics = server
        .client("prometheus")
        .ask(&Ask::get("/metrics".to_owned()));
    let metrics = String::from_utf8(metrics.unwrap().body).unwrap();
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    for (at, _) in rules.match_indices("soldonce_") {
        let name = rules[at..].split(|letter| !is_name(letter)).next().unwrap();
        assert!(
            metrics.contains(&format!("# TYPE {name} ")),
            "{name}: {metrics}"
        );
    }
    drop(server);
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
