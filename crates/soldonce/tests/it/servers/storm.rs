//! The storm over PostgreSQL and a Redis Cluster, at three servers at once: as many winners as seats
//! at each, everybody else refused, and every request accounted for.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::ask;
use super::fleet::{Fleet, SERVERS};
use crate::crash::client::Ask;
use crate::crash::server::{ADMIN_KEY, PROGRAM};

const SEATS: u64 = 3;

#[test]
fn a_storm_at_each_of_three_servers_has_as_many_winners_as_seats() {
    let fleet = Fleet::start("fleet-storm", &["--limit-keys", "off"]);
    let storms: Vec<_> = (0..SERVERS)
        .map(|place| {
            let url = format!("http://{}", fleet.server(place).address);
            let mut storm = Command::new(PROGRAM);
            storm
                .args(["lab", "storm", "--json", "--url", &url])
                .args(["--admin-key", ADMIN_KEY])
                .args(["--users", "200", "--seconds", "2"])
                .stdout(Stdio::piped());
            storm.spawn().unwrap()
        })
        .collect();
    for storm in storms {
        let output = storm.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["winners"], json!(SEATS), "{report}");
        assert_eq!(report["held"], json!(SEATS), "{report}");
        assert_eq!(report["errors"], json!({}), "{report}");
        let statuses = report["statuses"].as_object().unwrap();
        let is_right = |status: &str| ["201", "409"].contains(&status);
        assert!(statuses.keys().all(|status| is_right(status)), "{report}");
    }
    // What a storm leaves is on no shopper's list.
    let heard = ask(
        &mut fleet.server(0).client("looker"),
        &Ask::get("/v1/events".to_owned()),
    );
    let events = heard.json()["events"].as_array().unwrap().clone();
    let storms: Vec<&Value> = events
        .iter()
        .filter(|event| event["name"] == "Storm")
        .collect();
    assert_eq!(storms.len(), SERVERS);
    assert!(
        storms
            .iter()
            .all(|storm| storm["policy"]["listed"] == false)
    );
}
