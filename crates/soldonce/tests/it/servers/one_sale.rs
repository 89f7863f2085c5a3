//! Three servers are one: what begins at one goes on at another.

use serde_json::{Value, json};
use soldonce_clock::{Clock, SystemClock};

use super::fleet::{Fleet, SERVERS};
use super::{SEATS, ask, confirm, counted, hold, until};
use crate::crash::client::{Ask, Client};
use crate::shop::done;

#[test]
fn holds_keys_budgets_and_feeds_are_those_of_one_server() {
    let fleet = Fleet::start("fleet-one-sale", &["--limit-keys", "off"]);
    fleet.event(10, &json!({"units_per_holder_max": 3}));
    let mut clients: Vec<_> = (0..SERVERS)
        .map(|place| fleet.client(place, &format!("client-{place}")))
        .collect();
    let [one, two, three] = &mut clients[..] else {
        panic!("three servers")
    };

    // A hold made at one is seen, refused to others and confirmed elsewhere.
    let held = ask(one, &hold("ann", "A-1"));
    assert_eq!(held.status, 201, "{}", held.shown());
    let refused = ask(two, &hold("bob", "A-1"));
    assert_eq!(refused.code(), "unit_unavailable", "{}", refused.shown());
    let booked = ask(two, &confirm(&held.json()));
    assert_eq!(booked.status, 201, "{}", booked.shown());

    // One key, one effect, one answer, on every server.
    let again = ask(three, &confirm(&held.json()));
    assert!(again.replayed, "{}", again.shown());
    assert_eq!(again.fixed(), booked.fixed());
    let keyed = |seat| hold("cid", seat).keyed("cid-1");
    let first = ask(three, &keyed("B-1"));
    let twin = ask(one, &keyed("B-1"));
    assert_eq!((first.status, twin.replayed), (201, true));
    assert_eq!(twin.fixed(), first.fixed(), "the secret, too");
    assert_eq!(ask(two, &keyed("B-2")).code(), "idempotency_key_reused");

    // A budget is counted over all of them.
    for (client, seat) in [&mut *one, &mut *two, &mut *three].into_iter().zip(1..) {
        assert_eq!(ask(client, &hold("dora", &format!("C-{seat}"))).status, 201);
    }
    let over = ask(one, &hold("dora", "C-4"));
    assert_eq!(over.code(), "budget_exceeded", "{}", over.shown());

    // Every map ends at the same number with the same seats.
    let is_all = |seats: &Value| seats["sold"] == json!(["A-1"]) && seats["seq"] == json!(6);
    let maps = [one, two, three].map(|client| until(client, SEATS, is_all));
    let shown = |map: &Value| (map["sold"].clone(), map["held"].clone());
    assert!(
        maps.iter().all(|map| shown(map) == shown(&maps[0])),
        "{maps:?}"
    );
}

#[test]
fn a_session_of_one_server_is_known_to_all() {
    let fleet = Fleet::start("fleet-sessions", &[]);
    fleet.event(1, &json!({}));
    let session = |place: usize| -> &'static str {
        let made = Ask::post("/v1/sessions", json!({}));
        let made = done(&mut fleet.client(place, "maker"), &made);
        made["session"].as_str().unwrap().to_owned().leak()
    };
    let own = session(0);
    let shopper = |place: usize| Client::new(fleet.server(place).address, own, "shopper");
    let body = json!({"units": [{"seat": "A-7"}]});
    let wish = Ask::post("/v1/events/hamlet-1/holds", body);
    let held = ask(&mut shopper(1), &wish);
    assert_eq!(held.status, 201, "{}", held.shown());
    let id = held.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/holds/{id}");
    let seen = ask(&mut shopper(2), &Ask::get(path.clone()));
    assert_eq!(seen.json()["state"], "active", "{}", seen.shown());
    // Another session does not even learn that there is such a hold.
    let mut stranger = Client::new(fleet.server(2).address, session(1), "stranger");
    assert_eq!(ask(&mut stranger, &Ask::get(path)).status, 404);
}

#[test]
fn rate_budgets_hold_across_servers() {
    let fleet = Fleet::start("fleet-rates", &["--limit-keys", "30/1m"]);
    fleet.event(1, &json!({}));
    // Each server alone would let all of its thirty in.
    let (mut let_in, began) = (0, SystemClock.boot());
    for n in 0..90 {
        let mut client = fleet.client(n, &format!("client-{n}"));
        let heard = ask(&mut client, &Ask::get(SEATS.to_owned()));
        match heard.status {
            200 => let_in += 1,
            429 => assert!(heard.retry_after.is_some(), "{}", heard.shown()),
            _ => panic!("{}", heard.shown()),
        }
    }
    // A server that Redis does not answer in time counts for itself.
    let alone: u64 = (0..3)
        .map(|place| {
            counted(
                &mut fleet.client(place, "metrics"),
                "soldonce_rate_limits_unshared_total",
            )
        })
        .sum();
    // One more each two seconds, however long the machine takes.
    let more = SystemClock.boot().since(began).as_secs() / 2;
    assert!(
        let_in <= 45 + more + alone,
        "{let_in} of 90 were let in, {more} of them later, {alone} counted alone"
    );
}
