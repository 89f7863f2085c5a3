//! Lists of an event for staff, read at one server while another sells.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{SEATS, ask, create, two_servers, until};
use crate::crash::client::{Ask, Client};
use crate::shop::done;

/// Sells a seat of the hall of ten rows of twenty.
fn sell(client: &mut Client, seat: usize) -> String {
    let row = char::from(b'A' + u8::try_from(seat / 20).unwrap());
    let seat = format!("{row}-{}", seat % 20 + 1);
    let body = json!({"holder": "ann", "units": [{"seat": seat}]});
    let sale = Ask::post("/v1/events/hamlet-1/sales", body).keyed(&seat);
    let sold = done(client, &sale);
    sold["id"].as_str().unwrap().to_owned()
}

/// Every booking of the event, by pages of seven.
fn list(client: &mut Client) -> (BTreeSet<String>, u64) {
    let (mut seen, mut after, mut seq) = (BTreeSet::new(), String::new(), 0);
    loop {
        let path = format!("/v1/events/hamlet-1/bookings?state=confirmed&limit=7{after}");
        let heard = ask(client, &Ask::get(path));
        assert_eq!(heard.status, 200, "{}", heard.shown());
        let page = heard.json();
        seq = seq.max(page["seq"].as_u64().unwrap());
        for booking in page["bookings"].as_array().unwrap() {
            let id = booking["id"].as_str().unwrap().to_owned();
            assert!(seen.insert(id), "once: {booking}");
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return (seen, seq),
        }
    }
}

#[test]
fn a_list_has_every_booking_once_while_another_server_sells() {
    let (_database, one, two) = two_servers("servers-lists");
    let (mut at_one, mut at_two) = (one.client("one"), two.client("two"));
    create(&mut at_one);
    until(&mut at_two, SEATS, |_| true);
    let before: BTreeSet<String> = (0..100).map(|seat| sell(&mut at_one, seat)).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for seat in 100..200 {
                sell(&mut at_one, seat);
            }
            is_over.store(true, Ordering::Release);
        });
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            let (seen, _) = list(&mut at_two);
            assert!(seen.is_superset(&before));
            if was_over {
                assert_eq!(seen.len(), 200);
                break;
            }
        }
    });
    let numbered = |seats: &serde_json::Value| seats["seq"] == 200;
    until(&mut at_two, SEATS, numbered);
    assert_eq!(list(&mut at_two).1, 200);
}
