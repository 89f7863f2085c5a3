//! Several processes of `soldonce serve` on one PostgreSQL, behind nothing but their ports.
#![expect(
    clippy::indexing_slicing,
    reason = "an answer without the member fails the test"
)]

mod dropped;
mod expiry;
mod failover;
mod feeds;
mod fleet;
mod grpc;
mod keys;
mod kills;
mod lists;
mod log;
mod one_sale;
mod patroni;
mod pool;
mod reads;
mod settled;
mod shield;
mod storm;
mod terms;
mod wrong;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use soldonce_testkit::postgres::Postgres;
use soldonce_testkit::{PATIENCE, until_some};

use crate::crash::client::{Ask, Client, HttpAnswer};
use crate::crash::server::{PROGRAM, Server};
use crate::program::{ends_well, said, serving_on};
use crate::shop::{self, hall, until};

/// A database with the tables in it.
fn database() -> Postgres {
    let database = Postgres::start().unwrap();
    let migrated = soldonce(&["migrate"], &database);
    assert!(migrated.contains("up to date"), "{migrated}");
    database
}

/// What the program says when it is run on the database, and ends well.
fn soldonce(arguments: &[&str], database: &Postgres) -> String {
    soldonce_at(arguments, &database.url())
}

fn soldonce_at(arguments: &[&str], url: &str) -> String {
    let mut command = Command::new(PROGRAM);
    ends_well(command.args(arguments).args(["--database-url", url]))
}

/// Where the servers of a test write their logs.
fn logs(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// One more server.
fn serve(database: &Postgres, log: &Path) -> Server {
    Server::run(serving_on(&database.url()), log).unwrap()
}

/// Two servers on one database.
fn two_servers(test: &str) -> (Postgres, Server, Server) {
    let (database, logs) = (database(), logs(test));
    let serve = |name: &str| serve(&database, &logs.join(name));
    let (one, two) = (serve("one"), serve("two"));
    (database, one, two)
}

fn create(client: &mut Client) {
    create_of(client, 20);
}

/// The event with ten rows of so many seats.
fn create_of(client: &mut Client, seats: usize) {
    let hall = hall("hamlet-1", 10, seats);
    let created = ask(client, &Ask::post("/v1/events", hall));
    assert_eq!(created.status, 201, "{}", created.shown());
}

fn ask(client: &mut Client, ask: &Ask) -> HttpAnswer {
    client.ask(ask).unwrap()
}

/// What a server's metric of this name and these labels counts; 0 where it has none.
fn counted(client: &mut Client, metric: &str) -> u64 {
    let told = ask(client, &Ask::get("/metrics".to_owned()));
    let text = String::from_utf8(told.body).unwrap();
    let mut lines = text
        .lines()
        .filter_map(|it| it.strip_prefix(metric)?.strip_prefix(' '));
    lines.next().map_or(0, |count| count.parse().unwrap())
}

fn hold(who: &str, seat: &str) -> Ask {
    shop::hold("hamlet-1", who, seat).moving()
}

fn confirm(held: &Value) -> Ask {
    shop::confirm(held).keyed(held["id"].as_str().unwrap())
}

/// How many units are sold twice.
const TWICE: &str = "SELECT count(*) FROM (SELECT 1 FROM lines WHERE state = 1 \
                     GROUP BY event_no, unit_no HAVING count(*) > 1) AS twice";

const SEATS: &str = "/v1/events/hamlet-1/seats";

#[test]
fn what_one_server_sells_the_other_has_sold() {
    let (_database, one, two) = two_servers("servers");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    until(&mut at_two, SEATS, |_| true);
    let held = ask(&mut at_two, &hold("ann", "A-1"));
    assert_eq!(held.status, 201, "{}", held.shown());
    let refused = ask(&mut at_one, &hold("bob", "A-1"));
    assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    let booked = ask(&mut at_one, &confirm(&held.json()));
    assert_eq!(booked.status, 201, "{}", booked.shown());
    let again = ask(&mut at_two, &confirm(&held.json()));
    assert!(again.replayed, "{}", again.shown());
    assert_eq!(again.fixed(), booked.fixed(), "byte for byte");
    let sold = |seats: &Value| seats["sold"] == json!(["A-1"]);
    let (left, right) = (
        until(&mut at_one, SEATS, sold),
        until(&mut at_two, SEATS, sold),
    );
    assert_eq!(left["seq"], right["seq"]);
}

/// One buyer wants every seat of a row; gives the bookings that were acknowledged.
fn buy(client: &mut Client, (who, row): (&str, char), bought: &AtomicUsize) -> Vec<String> {
    let mut bookings = Vec::new();
    for seat in 1..=20 {
        let Some(held) = client.ask(&hold(who, &format!("{row}-{seat}"))) else {
            return bookings;
        };
        if !held.is_success() {
            continue;
        }
        let Some(booked) = client.ask(&confirm(&held.json())) else {
            return bookings;
        };
        if booked.is_success() {
            bookings.push(booked.json()["id"].as_str().unwrap().to_owned());
            bought.fetch_add(1, Ordering::Relaxed);
        }
    }
    bookings
}

#[test]
fn a_server_that_is_killed_takes_no_booking_along() {
    let (database, logs) = (database(), logs("servers-killed"));
    let one = serve(&database, &logs.join("one"));
    let two = serve(&database, &logs.join("two"));
    create(&mut one.client("maker"));
    until(&mut two.client("looker"), SEATS, |_| true);
    let bought = AtomicUsize::new(0);
    let rows = ['A', 'B', 'C', 'D'];
    let bookings: Vec<String> = thread::scope(|scope| {
        let buyers: Vec<_> = rows
            .into_iter()
            .flat_map(|row| [(row, &one), (row, &two)])
            .map(|(row, server)| {
                let who = format!("{row}-{}", server.id());
                let mut client = server.client(&who);
                let bought = &bought;
                scope.spawn(move || buy(&mut client, (&who, row), bought))
            })
            .collect();
        let enough = || Ok((bought.load(Ordering::Relaxed) >= 10).then_some(()));
        until_some("something is sold", PATIENCE, enough).unwrap();
        one.signal_kill();
        let done = buyers.into_iter().map(|buyer| buyer.join().unwrap());
        done.flatten().collect()
    });
    let mut client = two.client("judge");
    for booking in &bookings {
        let found = ask(&mut client, &Ask::get(format!("/v1/bookings/{booking}")));
        assert_eq!(found.json()["state"], "confirmed", "{}", found.shown());
    }
    let again = serve(&database, &logs.join("again"));
    let all = |seats: &Value| seats["sold"].as_array().unwrap().len() >= bookings.len();
    let (left, right) = (
        until(&mut client, SEATS, all),
        until(&mut again.client("late"), SEATS, all),
    );
    assert_eq!(left["sold"], right["sold"]);
    assert_eq!(database.query(TWICE).unwrap(), "0");
}

#[test]
fn a_database_without_tables_is_named_with_its_mend() {
    let database = Postgres::start().unwrap();
    let mut serve = Command::new(PROGRAM);
    serve.args(["serve", "--database-url", &database.url()]);
    let (_, unsafe_one) = said(&mut serve);
    assert!(unsafe_one.contains("fsync"), "{unsafe_one}");
    let (code, told) = said(serve.arg("--accept-loss"));
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("soldonce migrate"), "{told}");
}
