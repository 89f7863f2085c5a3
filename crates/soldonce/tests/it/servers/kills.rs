//! A sale goes on while everything under it is killed in turn. Every acknowledged booking is there
//! in the end, no seat is sold twice, and all servers show the same.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use soldonce_testkit::{PATIENCE, until_some};

use super::fleet::{Fleet, SERVERS};
use super::{SEATS, ask, confirm, hold, soldonce, until};
use crate::crash::client::{Ask, HttpAnswer};

const BUYERS: usize = 6;
const ROWS: usize = 100;
const SEATS_PER_ROW: usize = 100;
/// So many buyers want the same seat.
const RIVALS: usize = 3;

/// What all buyers share.
#[derive(Default)]
struct Sale {
    next: AtomicUsize,
    sold: AtomicUsize,
    is_over: AtomicBool,
}

impl Sale {
    fn next_seat(&self) -> Option<String> {
        let n = self.next.fetch_add(1, Ordering::Relaxed) / RIVALS;
        let row = u8::try_from(n / SEATS_PER_ROW % 26).unwrap();
        let fold = n / SEATS_PER_ROW / 26;
        let letter = char::from(b'A' + row);
        let name = match fold {
            0 => letter.to_string(),
            _ => format!(
                "{}{letter}",
                char::from(b'A' + u8::try_from(fold - 1).unwrap())
            ),
        };
        (n < ROWS * SEATS_PER_ROW).then(|| format!("{name}-{}", n % SEATS_PER_ROW + 1))
    }

    /// Waits until some more seats are sold.
    fn goes_on(&self, after: &str) {
        let before = self.sold.load(Ordering::Relaxed);
        let more = || Ok((self.sold.load(Ordering::Relaxed) >= before + 10).then_some(()));
        until_some(&format!("the sale goes on after {after}"), PATIENCE, more).unwrap();
    }
}

/// Holds and confirms until the sale is over; gives the bookings that were acknowledged.
fn buy(fleet: &Fleet, sale: &Sale, buyer: usize) -> Vec<String> {
    let who = format!("buyer-{buyer}");
    let mut booked = Vec::new();
    for turn in buyer.. {
        if sale.is_over.load(Ordering::Relaxed) {
            break;
        }
        let Some(seat) = sale.next_seat() else { break };
        let asked = hold(&format!("{who}-{turn}"), &seat).keyed(&format!("{who}-{turn}"));
        let Some(held) = known(fleet, turn, &asked).filter(HttpAnswer::is_success) else {
            continue;
        };
        let Some(done) = known(fleet, turn + 1, &confirm(&held.json())) else {
            panic!("the outcome of a confirm stays unknown");
        };
        if done.is_success() {
            booked.push(done.json()["id"].as_str().unwrap().to_owned());
            sale.sold.fetch_add(1, Ordering::Relaxed);
        }
    }
    booked
}

/// The answer to a request with a key, asked at one server after another until one knows.
fn known(fleet: &Fleet, first: usize, asked: &Ask) -> Option<HttpAnswer> {
    let mut places = first..;
    let heard = until_some("a server that knows", PATIENCE, || {
        let place = places.next().unwrap_or(first);
        let heard = fleet.client(place, "buyer").ask(asked);
        Ok(heard.filter(|heard| heard.status < 500))
    });
    heard.ok()
}

#[test]
fn after_kills_no_booking_is_lost_and_no_seat_is_sold_twice() {
    let fleet = &Fleet::start("fleet-kills", &["--limit-keys", "off"]);
    fleet.event(ROWS, &json!({"hold_ttl_ms": 60_000}));
    let sale = Sale::default();
    let booked: Vec<String> = thread::scope(|scope| {
        let buyers: Vec<_> = (0..BUYERS)
            .map(|buyer| {
                let sale = &sale;
                scope.spawn(move || buy(fleet, sale, buyer))
            })
            .collect();
        sale.goes_on("the start");
        fleet.kill(&[0]);
        sale.goes_on("the end of one server");
        // All of them number commits, in turns.
        fleet.kill(&[1, 2]);
        sale.goes_on("the end of two servers");
        // Every zone of the hall has some of its keys there, or on its neighbours.
        let mut cluster = fleet.cluster.lock().unwrap();
        cluster.fail_soon().unwrap();
        cluster.node(0).unwrap().kill().unwrap();
        drop(cluster);
        sale.goes_on("the end of a Redis primary");
        let mut database = fleet.database.lock().unwrap();
        database.stop_immediately().unwrap();
        database.restart().unwrap();
        drop(database);
        sale.goes_on("an immediate stop of PostgreSQL");
        let mut cluster = fleet.cluster.lock().unwrap();
        for place in 1..6 {
            cluster.node(place).unwrap().kill().unwrap();
        }
        drop(cluster);
        sale.goes_on("the end of all of Redis");
        sale.is_over.store(true, Ordering::Relaxed);
        let booked = buyers.into_iter().map(|buyer| buyer.join().unwrap());
        booked.flatten().collect()
    });
    judge(fleet, &booked);
}

/// Every acknowledged booking is confirmed, each seat is in one of them, and all servers agree.
fn judge(fleet: &Fleet, booked: &[String]) {
    let mut client = fleet.client(0, "judge");
    for booking in booked {
        let found = ask(&mut client, &Ask::get(format!("/v1/bookings/{booking}")));
        assert_eq!(found.json()["state"], "confirmed", "{}", found.shown());
    }
    let distinct: BTreeSet<&String> = booked.iter().collect();
    assert_eq!(distinct.len(), booked.len(), "a booking was answered twice");
    let database = fleet.database.lock().unwrap();
    let sold = "SELECT count(*) FROM lines WHERE state = 1";
    let sold: usize = database.query(sold).unwrap().parse().unwrap();
    assert!(
        sold >= booked.len(),
        "{sold} sold, {} acknowledged",
        booked.len()
    );
    let is_all = |map: &Value| {
        map["sold"]
            .as_array()
            .is_some_and(|seats| seats.len() == sold)
    };
    let maps: Vec<Value> = (0..SERVERS)
        .map(|place| until(&mut fleet.client(place, "map"), SEATS, is_all))
        .collect();
    assert!(maps.iter().all(|map| map["sold"] == maps[0]["sold"]));
    // Every commit has its number and its link in the chain, and what they led to is what is stored.
    soldonce(&["verify"], &database);
}
