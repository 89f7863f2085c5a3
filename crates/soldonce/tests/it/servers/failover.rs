//! The primary of a pair is killed while buyers buy. Each commit waits for its standby, which takes over, and
//! both servers follow it by the hosts of their address: no acknowledged booking is lost.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use soldonce_clock::{Clock, SystemClock};
use soldonce_testkit::postgres::PostgresPair;
use soldonce_testkit::{PATIENCE, until as wait_until, until_some};

use super::{SEATS, TWICE, ask, confirm, create, hold, logs, soldonce, until};
use crate::crash::client::{Ask, HttpAnswer};
use crate::crash::server::Server;
use crate::program::serving_on;

/// Buyers are served again this long after the loss of the primary, its detection left out.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(30);
const SEATS_OF_A_ROW: usize = 20;

fn pair_that_waits() -> PostgresPair {
    let pair = PostgresPair::start().unwrap();
    soldonce(&["migrate"], &pair.primary);
    let wait = "ALTER SYSTEM SET synchronous_standby_names = '*'";
    for statement in [wait, "SELECT pg_reload_conf()"] {
        pair.primary.query(statement).unwrap();
    }
    let sync = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
    let waits = || pair.primary.query(sync).is_ok_and(|count| count == "1");
    wait_until("commits wait for the standby", PATIENCE, waits).unwrap();
    pair
}

pub(super) fn serve(url: &str, log: &Path) -> Server {
    let mut command = serving_on(url);
    command.args(["--limit-keys", "off"]);
    Server::run(command, log).unwrap()
}

/// The answer to a request with a key, asked again until the server knows.
pub(super) fn known(server: &Server, who: &str, asked: &Ask) -> HttpAnswer {
    let heard = until_some("an answer", PATIENCE, || {
        let heard = server.client(who).ask(asked);
        Ok(heard.filter(|heard| heard.status < 500))
    });
    heard.unwrap()
}

/// Buys the seats of a row, one after the other; gives the bookings that were acknowledged.
fn buy(server: &Server, row: char, sold: &AtomicUsize) -> Vec<String> {
    let seats = (1..=SEATS_OF_A_ROW).map(|seat| format!("{row}-{seat}"));
    seats
        .map(|seat| {
            let held = known(server, &seat, &hold(&seat, &seat).keyed(&seat));
            assert!(held.is_success(), "{seat}: {}", held.shown());
            let booked = known(server, &seat, &confirm(&held.json()));
            assert!(booked.is_success(), "{seat}: {}", booked.shown());
            sold.fetch_add(1, Ordering::Relaxed);
            booked.json()["id"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[test]
fn a_synchronous_standby_that_takes_over_has_every_booking() {
    let (mut pair, logs) = (pair_that_waits(), logs("servers-failover"));
    let hosts = [&pair.primary, &pair.standby].map(|server| server.address().to_string());
    let url = format!("postgres://postgres@{}/postgres", hosts.join(","));
    let servers = ["one", "two"].map(|name| serve(&url, &logs.join(name)));
    create(&mut servers[0].client("maker"));
    until(&mut servers[1].client("looker"), SEATS, |_| true);
    let sold = AtomicUsize::new(0);
    let reaches = |count: usize, what: &str| {
        let reached = || sold.load(Ordering::Relaxed) >= count;
        wait_until(what, BACK_WITHIN, reached).unwrap();
    };
    let bookings: Vec<String> = thread::scope(|scope| {
        let rows = ['A', 'B', 'C', 'D'].into_iter().zip(servers.iter().cycle());
        let buyers: Vec<_> = rows
            .map(|(row, server)| {
                let sold = &sold;
                scope.spawn(move || buy(server, row, sold))
            })
            .collect();
        reaches(10, "something is sold");
        pair.primary.kill().unwrap();
        let (before, lost) = (sold.load(Ordering::Relaxed), SystemClock.boot());
        pair.promote().unwrap();
        reaches(before + 10, "the sale goes on at the standby");
        assert!(SystemClock.boot().since(lost) < BACK_WITHIN);
        let booked = buyers.into_iter().map(|buyer| buyer.join().unwrap());
        booked.flatten().collect()
    });
    assert_eq!(bookings.len(), 4 * SEATS_OF_A_ROW);
    for server in &servers {
        let mut client = server.client("judge");
        for booking in &bookings {
            let found = ask(&mut client, &Ask::get(format!("/v1/bookings/{booking}")));
            assert_eq!(found.json()["state"], "confirmed", "{}", found.shown());
        }
        let all = |seats: &Value| seats["sold"].as_array().unwrap().len() == bookings.len();
        until(&mut client, SEATS, all);
    }
    assert_eq!(pair.standby.query(TWICE).unwrap(), "0");
    soldonce(&["verify"], &pair.standby);
}
