//! What an operator sees: `status`, `top`, the dashboard, and the lines of the log.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;

use nix::pty::openpty;
use serde_json::Value;
use soldonce_testkit::workspace;

use crate::backup::run;
use crate::crash::client::Ask;
use crate::crash::server::{PROGRAM, Server, serving};
use crate::operate::sell_one;
use crate::store::folder;

/// A server that has sold a seat.
fn sold(name: &str) -> (Server, String) {
    let at = folder(name);
    let server = Server::run(serving(&at.join("data")), &at.join("server")).unwrap();
    sell_one(&mut server.client("ann"));
    let url = format!("http://{}", server.address);
    (server, url)
}

#[test]
fn status_and_top_show_a_sale_and_a_server_that_is_gone() {
    let (server, url) = sold("watch");
    let (code, said) = run(&["status", "--url", &url, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let told: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(told[0]["state"], "ready", "{told:#}");
    assert_eq!([&told[0]["sold"], &told[0]["held"]], [1, 1], "{told:#}");
    assert!(told[0]["commit_ms"]["p99"].as_f64() > Some(0.0), "{told:#}");
    let top = ["top", "--url", &url, "--every", "100ms", "--count", "2"];
    let (code, said) = run(&top);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("commit ms").count(), 2, "{said}");
    assert!(!said.contains('\x1b'), "no terminal, no codes: {said:?}");
    let gone = "http://127.0.0.1:1";
    let (code, said) = run(&["status", "--url", &url, "--url", gone]);
    assert_eq!(code, Some(1), "{said}");
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert!(lines[1].contains("ready"), "{said}");
    assert!(lines[2].contains("unreachable"), "{said}");
    assert!(lines[3].starts_with("all"), "{said}");
    assert!(lines[4].contains("cannot be reached"), "{said}");
    drop(server);
}

#[test]
fn top_draws_in_place_on_a_terminal_and_gives_the_screen_back() {
    let (server, url) = sold("watch-terminal");
    let pair = openpty(None, None).unwrap();
    let slave = || pair.slave.try_clone().unwrap();
    // A session of its own, whose terminal this is.
    let mut top = Command::new("setsid");
    top.args(["--ctty", PROGRAM, "top", "--every", "50ms", "--url", &url]);
    top.stdin(slave()).stdout(slave()).stderr(slave());
    let mut top = top.spawn().unwrap();
    let mut terminal = File::from(pair.master);
    let mut screen = String::new();
    let mut see = |terminal: &mut File, end: &str| {
        while !screen.ends_with(end) {
            let mut bytes = [0; 1_024];
            let count = terminal.read(&mut bytes).unwrap();
            screen += &String::from_utf8_lossy(bytes.get(..count).unwrap());
        }
        screen.clone()
    };
    let drawn = see(&mut terminal, "\x1b[J");
    assert!(drawn.starts_with("\x1b[?1049h\x1b[?25l\x1b[H"), "{drawn:?}");
    assert!(drawn.contains("ready"), "{drawn:?}");
    terminal.write_all(b"\x03").unwrap();
    assert!(top.wait().unwrap().success());
    see(&mut terminal, "\x1b[?1049l");
    drop((server, pair.slave));
}

/// What the panels of the dashboard ask.
pub(crate) fn asked_by_the_dashboard() -> Vec<String> {
    let board = workspace().unwrap().join("deploy/grafana/soldonce.json");
    let board: Value = serde_json::from_slice(&std::fs::read(board).unwrap()).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect()
}

/// The metrics in an expression, without what a histogram adds to their names.
fn metrics_of(asked: &str) -> impl Iterator<Item = &str> {
    let words = asked.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let names = words.filter(|word| word.starts_with("soldonce_"));
    names.map(|name| {
        let parts = ["_bucket", "_sum", "_count"];
        let whole = parts.iter().find_map(|part| name.strip_suffix(part));
        whole.unwrap_or(name)
    })
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_metrics_that_are_there() {
    let (server, _) = sold("watch-dashboard");
    let metrics = server
        .client("prometheus")
        .ask(&Ask::get("/metrics".to_owned()));
    let metrics = String::from_utf8(metrics.unwrap().body).unwrap();
    let mut asked = asked_by_the_dashboard();
    assert!(asked.len() >= 18, "{asked:#?}");
    let rules = workspace().unwrap().join("deploy/prometheus/alerts.yml");
    asked.push(std::fs::read_to_string(rules).unwrap());
    for name in asked.iter().flat_map(|asked| metrics_of(asked)) {
        let is_there = metrics.contains(&format!("# TYPE {name} "));
        assert!(is_there, "{name}: {metrics}");
    }
    // And the manual has all that are there.
    let manual = workspace().unwrap().join("docs/operations.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let kinds = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE soldonce_"));
    for name in kinds.filter_map(|kind| kind.split(' ').next()) {
        assert!(manual.contains(&format!("`{name}`")), "{name}");
    }
    drop(server);
}

#[test]
fn every_alert_has_a_section_for_who_is_called() {
    let root = workspace().unwrap();
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    let (rules, manual) = (
        read("deploy/prometheus/alerts.yml"),
        read("docs/operations.md"),
    );
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let mut count = 0;
    for alert in alerts {
        let section = manual.split(&format!("### {alert}\n")).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section of {alert}"));
        let section = section.split("\n##").next().unwrap();
        for part in ["**Means**", "**Look**", "**Do**"] {
            assert!(section.contains(part), "{alert}: {part} is missing");
        }
        count += 1;
    }
    assert!(count >= 8, "{count}");
}
