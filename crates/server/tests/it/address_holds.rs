//! What shoppers at one address may hold, by real requests: a whole hall is not one stranger's, a
//! family is never refused, and what is over is not counted.

use std::time::Duration;

use axum::http::StatusCode;
use futures_util::poll;
use serde_json::{Value, json};
use soldonce_core::limits::ENDED_UNITS_MAX;
use soldonce_engine::rate::Quota;
use soldonce_server::{HeldLimits, Peer, RateLimits};
use tokio::task::yield_now;

use crate::harness::{Answer, Ask, Held, TestApp, units};

const HOLDS: &str = "/v1/events/hall/holds";
const ADDRESS: &str = "192.0.2.1";
/// As long as a hold lasts.
const HOLD: Duration = Duration::from_mins(10);

fn from<'a>(ask: Ask<'a>, address: &str) -> Ask<'a> {
    let peer: std::net::SocketAddr = format!("{address}:4000").parse().unwrap();
    ask.with(Peer(peer))
}

/// A server with these limits, open to shoppers, with a hall of so many rows of ten seats.
async fn limited(rates: RateLimits, rows: u32) -> TestApp {
    let app = TestApp::open_with(|settings| settings.rates = rates).await;
    drop(app.engine.clone().with_free_sales());
    app.with_hall(rows).await
}

fn held_at_most(units: u32) -> RateLimits {
    RateLimits {
        held: HeldLimits {
            units: Some(units),
            ..HeldLimits::default()
        },
        ..RateLimits::off()
    }
}

async fn best(app: &TestApp, by: &str, address: &str, quantity: u32) -> Answer {
    let body = json!({"best": {"quantity": quantity}});
    from(app.post(HOLDS), address)
        .by(by)
        .json(&body)
        .send()
        .await
}

/// Sends a request about a hold from the address.
async fn on(app: &TestApp, by: &str, held: &Held, verb: &str) -> Answer {
    let path = format!("{}/{verb}", held.path());
    from(app.post(&path), ADDRESS)
        .by(by)
        .key(&held.id)
        .send()
        .await
}

async fn release(app: &TestApp, by: &str, held: &Held) -> Answer {
    from(app.delete(&held.path()), ADDRESS).by(by).send().await
}

async fn a_stranger_with_many_sessions_does_not_hold_a_whole_hall() {
    let app = limited(RateLimits::default(), 100).await;
    let mut held = 0;
    for _ in 0..51 {
        let by = app.shopper_at(ADDRESS).await;
        for _ in 0..2 {
            let answer = best(&app, &by, ADDRESS, 10).await;
            if answer.status == StatusCode::CREATED {
                held += 10;
                continue;
            }
            assert!(answer.header("ratelimit").starts_with("\"share\";r=0;t="));
            assert_eq!(answer.header("ratelimit-policy"), "\"share\";q=100");
            let waits: u64 = answer.header("retry-after").parse().unwrap();
            assert!(
                (1..=600).contains(&waits),
                "until its first hold ends: {waits}"
            );
            answer.refused(429, "rate_limited");
        }
    }
    assert_eq!(held, 100, "a tenth of the hall");
    for (address, expected) in [("192.0.2.2", 201), ("[2001:db8::1]", 201)] {
        let by = app.shopper_at(address).await;
        let answer = best(&app, &by, address, 10).await;
        assert_eq!(answer.status.as_u16(), expected);
    }
    let text = app.get("/metrics").send().await.text();
    assert!(
        text.contains("soldonce_rate_limited_total{limit=\"share\"} 92"),
        "{text}"
    );
}

async fn a_network_of_ipv6_is_one_address_and_keys_are_not_counted() {
    let app = limited(held_at_most(10), 10).await;
    let (one, other) = ("[2001:db8::1]", "[2001:db8::ffff]");
    let by = app.shopper_at(one).await;
    best(&app, &by, one, 10).await.expect(StatusCode::CREATED);
    let by = app.shopper_at(other).await;
    best(&app, &by, other, 1).await.refused(429, "rate_limited");
    let body = json!({"holder": "ann", "best": {"quantity": 10}});
    let ask = from(app.post(HOLDS), one).by(&app.sell).json(&body);
    ask.send().await.expect(StatusCode::CREATED);
}

async fn behind_a_trusted_proxy_each_client_is_counted() {
    let rates = RateLimits {
        trusted_proxies: vec!["10.0.0.0/8".parse().unwrap()],
        ..held_at_most(10)
    };
    let app = limited(rates, 10).await;
    let by = app.shopper().await;
    for (client, status) in [("192.0.2.1", 201), ("192.0.2.1", 429), ("192.0.2.2", 201)] {
        let ask = from(app.post(HOLDS), "10.0.0.1").header("x-forwarded-for", client);
        let body = json!({"best": {"quantity": 10}});
        let answer = ask.by(&by).json(&body).send().await;
        assert_eq!(answer.status.as_u16(), status, "{client}");
    }
}

async fn a_family_of_six_is_never_refused_by_default() {
    let app = limited(RateLimits::default(), 4).await;
    let mut family = Vec::new();
    for row in ["A", "B", "C"] {
        for first in [1, 6] {
            let by = app.shopper_at(ADDRESS).await;
            // Each looks for seats by holding some and giving them back, six times.
            for seat in first..first + 5 {
                let body = json!({"units": units(&[&format!("{row}-{seat}")])});
                let ask = from(app.post(HOLDS), ADDRESS).by(&by).json(&body);
                let held = Held::of(&ask.send().await.expect(StatusCode::CREATED));
                release(&app, &by, &held).await.expect(StatusCode::OK);
            }
            let seats: Vec<String> = (first..first + 5)
                .map(|seat| format!("{row}-{seat}"))
                .collect();
            let seats: Vec<&str> = seats.iter().map(String::as_str).collect();
            let ask = from(app.post(HOLDS), ADDRESS).by(&by);
            let ask = ask.json(&json!({"units": units(&seats)}));
            family.push((by, Held::of(&ask.send().await.expect(StatusCode::CREATED))));
        }
    }
    // A hall of forty seats, thirty of them theirs.
    for (by, held) in &family {
        on(&app, by, held, "extend").await.expect(StatusCode::OK);
        on(&app, by, held, "confirm")
            .await
            .expect(StatusCode::CREATED);
    }
}

async fn what_is_released_bought_or_ended_is_not_counted_and_what_is_extended_is() {
    let app = limited(held_at_most(10), 10).await;
    let by = app.shopper_at(ADDRESS).await;
    let hold = async || best(&app, &by, ADDRESS, 10).await;
    let full = async || hold().await.refused(429, "rate_limited");
    let held = Held::of(&hold().await.expect(StatusCode::CREATED));
    full().await;
    release(&app, &by, &held).await.expect(StatusCode::OK);
    release(&app, &by, &held).await.expect(StatusCode::OK);
    let held = Held::of(&hold().await.expect(StatusCode::CREATED));
    full().await;
    on(&app, &by, &held, "confirm")
        .await
        .expect(StatusCode::CREATED);
    let held = Held::of(&hold().await.expect(StatusCode::CREATED));
    app.clock.advance(HOLD / 2);
    on(&app, &by, &held, "extend").await.expect(StatusCode::OK);
    app.clock.advance(HOLD / 2);
    full().await;
    app.clock.advance(HOLD / 2);
    let held = Held::of(&hold().await.expect(StatusCode::CREATED));
    // Staff ends it behind the address' back: the ledger is asked before anything is refused.
    app.clock.advance(Duration::from_secs(1));
    let revoke = format!("{}/revoke", held.path());
    app.post(&revoke)
        .by(&app.admin)
        .send()
        .await
        .expect(StatusCode::OK);
    hold().await.expect(StatusCode::CREATED);
}

/// It has more held units than one commit ends, and the sweeper has not come to this hold.
async fn a_hold_of_an_event_that_was_called_off_is_not_counted() {
    let app = limited(held_at_most(10), 10).await;
    let large = json!({
        "id": "large", "name": "Large", "currency": "EUR",
        "chart": {
            "format": "seats", "seats": [],
            "areas": [{"area": "floor", "capacity": 5_000, "category": "Standing"}],
        },
        "prices": {"Standing": 3000},
        "policy": {"units_per_hold_max": 64, "units_per_holder_max": 64},
    });
    let app = app.with_event(&large).await;
    let of_large = async |by: &str, mut wish: Value, quantity: usize| {
        wish["best"] = json!({"quantity": quantity});
        let ask = from(app.post("/v1/events/large/holds"), ADDRESS).by(by);
        let held = ask.json(&wish).send().await;
        held.expect(StatusCode::CREATED);
    };
    let by = app.shopper_at(ADDRESS).await;
    of_large(&by, json!({}), 10).await;
    // Those that end last are ended first.
    app.clock.advance(Duration::from_secs(1));
    for n in 0..ENDED_UNITS_MAX / 64 {
        let wish = json!({"holder": format!("buyer-{n}")});
        of_large(&app.sell, wish, 64).await;
    }
    let hold = async || best(&app, &by, ADDRESS, 10).await;
    hold().await.refused(429, "rate_limited");
    let cancel = app.post("/v1/events/large/cancel").by(&app.admin);
    let cancelled = cancel.json(&json!({"reason": "rain"})).send().await;
    cancelled.expect(StatusCode::OK);
    app.clock.advance(Duration::from_secs(1));
    hold().await.expect(StatusCode::CREATED);
}

async fn what_a_caller_took_who_hung_up_is_counted() {
    let app = limited(held_at_most(10), 10).await;
    let (one, other) = (app.shopper_at(ADDRESS).await, app.shopper_at(ADDRESS).await);
    let mut asking = Box::pin(best(&app, &one, ADDRESS, 10));
    // Until the ledger has it, and no further.
    assert!(poll!(asking.as_mut()).is_pending());
    yield_now().await;
    drop(asking);
    let refused = best(&app, &other, ADDRESS, 1).await;
    refused.refused(429, "rate_limited");
    // Stored after it.
    app.held("key", &["J-10"]).await;
    let hall = app.get("/v1/events/hall").by(&app.admin).send().await;
    assert_eq!(hall.json()["held"], 11, "the hold was made");
}

async fn units_that_a_change_adds_are_counted_and_those_it_drops_are_not() {
    let app = limited(held_at_most(3), 10).await;
    let by = app.shopper_at(ADDRESS).await;
    let body = json!({"units": units(&["A-1", "A-2"])});
    let held = from(app.post(HOLDS), ADDRESS).by(&by).json(&body);
    let answer = held.send().await.expect(StatusCode::CREATED);
    assert_eq!(answer.header("ratelimit"), "\"held\";r=1;t=600");
    let held = Held::of(&answer);
    let change = async |add: &[&str], drop: &[&str]| {
        let body = json!({"add": units(add), "drop": units(drop)});
        from(app.patch(&held.path()), ADDRESS)
            .by(&by)
            .json(&body)
            .send()
            .await
    };
    change(&["A-3", "A-4"], &[])
        .await
        .refused(429, "rate_limited");
    // One seat that is dropped makes room for one, however often it is named.
    change(&["A-3", "A-4", "A-5"], &["A-1", "A-1", "A-1"])
        .await
        .refused(429, "rate_limited");
    let added = change(&["A-3"], &[]).await.expect(StatusCode::OK);
    assert_eq!(added.header("ratelimit"), "\"held\";r=0;t=600");
    change(&["A-4"], &[]).await.refused(429, "rate_limited");
    change(&["A-4"], &["A-3"]).await.expect(StatusCode::OK);
    change(&[], &["A-2"]).await.expect(StatusCode::OK);
    change(&["A-5"], &[]).await.expect(StatusCode::OK);
    // The same hold again is not counted twice.
    let body = json!({"units": units(&["B-1"])});
    let again = from(app.post(HOLDS), ADDRESS).by(&by).json(&body);
    again.send().await.refused(429, "rate_limited");
}

async fn an_address_whose_holds_end_unpaid_again_and_again_waits() {
    let rates = RateLimits {
        lapses: Quota::new(2, 3_600).ok(),
        ..RateLimits::off()
    };
    let app = limited(rates, 10).await;
    let by = app.shopper_at(ADDRESS).await;
    let hold = async || best(&app, &by, ADDRESS, 10).await;
    // What is bought or given back counts for nothing.
    for verb in ["confirm", "release", "release"] {
        let held = Held::of(&hold().await.expect(StatusCode::CREATED));
        match verb {
            "confirm" => on(&app, &by, &held, verb).await.expect(StatusCode::CREATED),
            _ => release(&app, &by, &held).await.expect(StatusCode::OK),
        };
    }
    for _ in 0..2 {
        hold().await.expect(StatusCode::CREATED);
        app.clock.advance(HOLD);
        app.engine.sweep().await.unwrap();
    }
    let answer = hold().await;
    assert_eq!(answer.header("ratelimit-policy"), "\"lapses\";q=2;w=3600");
    assert_eq!(answer.header("retry-after"), "1200");
    answer.refused(429, "rate_limited");
    let other = app.shopper_at("192.0.2.2").await;
    best(&app, &other, "192.0.2.2", 10)
        .await
        .expect(StatusCode::CREATED);
    app.clock.advance(Duration::from_mins(20));
    hold().await.expect(StatusCode::CREATED);
}

async fn holds_that_were_asked_for_a_short_while_lapse_like_others() {
    let rates = RateLimits {
        lapses: Quota::new(2, 3_600).ok(),
        ..RateLimits::off()
    };
    let app = limited(rates, 10).await;
    let by = app.shopper_at(ADDRESS).await;
    let hold = async |seat: &str| {
        let body = json!({"units": units(&[seat]), "ttl_ms": 1_000});
        let ask = from(app.post(HOLDS), ADDRESS).by(&by).json(&body);
        ask.send().await
    };
    for seat in ["A-1", "A-2"] {
        hold(seat).await.expect(StatusCode::CREATED);
        app.clock.advance(Duration::from_secs(2));
        app.engine.sweep().await.unwrap();
    }
    hold("A-3").await.refused(429, "rate_limited");
}

async fn an_address_pays_for_the_commands_of_all_its_sessions() {
    let rates = RateLimits {
        commands: Quota::new(2, 60).ok(),
        address_commands: Quota::new(3, 60).ok(),
        ..RateLimits::off()
    };
    let app = limited(rates, 10).await;
    let shoppers = [app.shopper_at(ADDRESS).await, app.shopper_at(ADDRESS).await];
    for by in [0, 0, 1] {
        let answer = best(&app, &shoppers[by], ADDRESS, 1).await;
        let answer = answer.expect(StatusCode::CREATED);
        assert_eq!(answer.headers.get_all("ratelimit").iter().count(), 2);
    }
    let answer = best(&app, &shoppers[1], ADDRESS, 1).await;
    let told: Vec<_> = answer.headers.get_all("ratelimit").iter().collect();
    assert_eq!(told, ["\"commands\";r=0;t=60", "\"address\";r=0;t=20"]);
    answer.refused(429, "rate_limited");
    let moved = best(&app, &shoppers[1], "192.0.2.2", 1).await;
    moved.refused(429, "rate_limited");
}

crate::variant::run_over! {
    [over_http, over_grpc], workers: 0, {
        a_stranger_with_many_sessions_does_not_hold_a_whole_hall,
        a_network_of_ipv6_is_one_address_and_keys_are_not_counted,
        behind_a_trusted_proxy_each_client_is_counted,
        a_family_of_six_is_never_refused_by_default,
        what_is_released_bought_or_ended_is_not_counted_and_what_is_extended_is,
        a_hold_of_an_event_that_was_called_off_is_not_counted,
        what_a_caller_took_who_hung_up_is_counted,
        units_that_a_change_adds_are_counted_and_those_it_drops_are_not,
        holds_that_were_asked_for_a_short_while_lapse_like_others,
        an_address_whose_holds_end_unpaid_again_and_again_waits,
        an_address_pays_for_the_commands_of_all_its_sessions,
    }
}
