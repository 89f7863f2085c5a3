//! Bookings: confirm, sell, cancel, look; and what an idempotency key does.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Answer, Held, TestApp, hall, hall_with_floor, units};

async fn a_hold_becomes_a_booking() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("user-42", &["A-1"]).await;
    let path = format!("{}/confirm", held.path());
    let body = json!({"reference": "order-77", "fence": 1});
    let bare = app.post(&path).by(&app.sell).json(&body).send().await;
    bare.refused(400, "idempotency_key_missing");
    let booked = app
        .post(&path)
        .by(&app.sell)
        .key("k1")
        .json(&body)
        .send()
        .await;
    let booked = booked.expect(StatusCode::CREATED).json();
    let expected = json!({
        "id": booked["id"], "event": "hall", "holder": "user-42", "hold": held.id,
        "state": "confirmed", "fence": 1,
        "lines": [{"seat": "A-1", "price": 4500, "version": 2, "state": "sold"}],
        "total": 4500, "currency": "EUR", "reference": "order-77", "payment": null,
        "created_at": "2026-12-01T12:00:00.000Z", "confirmed_at": "2026-12-01T12:00:00.000Z",
        "seq": 2, "secret": booked["secret"], "server_time": "2026-12-01T12:00:00.000Z",
    });
    assert_eq!(booked, app.answer(expected));
    let other = app.post(&path).by(&app.sell).key("k2").send().await;
    assert_eq!(other.refused(409, "hold_consumed")["booking"], booked["id"]);
    let hold = app
        .get(&held.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&hold["state"], &hold["booking"]),
        (&json!("consumed"), &booked["id"])
    );
    let listed = app
        .get("/v1/bookings?holder=user-42")
        .by(&app.sell)
        .send()
        .await;
    assert_eq!(
        listed.expect(StatusCode::OK).json()["bookings"][0]["id"],
        booked["id"]
    );
    let seats = app.get("/v1/events/hall/seats").send().await.json();
    assert_eq!(
        (&seats["sold"], &seats["held"]),
        (&json!(["A-1"]), &json!([]))
    );
}

async fn booked(app: &TestApp, seat: &str) -> Value {
    let held = app.held("user-42", &[seat]).await;
    app.booked(&held).await
}

/// A buyer comes back by a link: another device, another session, weeks later. What the link carries
/// opens this booking and nothing else, and stands in no log.
async fn the_secret_of_a_booking_opens_it_for_every_bearer() {
    let app = TestApp::open().await.with_hall(1).await;
    let (first, second) = (booked(&app, "A-1").await, booked(&app, "A-2").await);
    let secret = first["secret"].as_str().unwrap();
    app.clock.advance(Duration::from_hours(24 * 30));
    let stranger = app.shopper().await;
    let read = async |booking: &Value, header: Option<&str>| {
        let path = format!("/v1/bookings/{}", booking["id"].as_str().unwrap());
        let mut ask = app.get(&path).by(&stranger);
        if let Some(secret) = header {
            ask = ask.header("booking-secret", secret);
        }
        ask.send().await
    };
    read(&first, None).await.refused(404, "booking_not_found");
    for wrong in ["", "bs_", "bs_00000000000000000000000000"] {
        let answer = read(&first, Some(wrong)).await;
        answer.refused(404, "booking_not_found");
    }
    let foreign = read(&second, Some(secret)).await;
    foreign.refused(404, "booking_not_found");
    let found = read(&first, Some(secret))
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&found["id"], &found["secret"]),
        (&first["id"], &first["secret"])
    );
    let cancel = format!("/v1/bookings/{}/cancel", first["id"].as_str().unwrap());
    let cancel = app.post(&cancel).by(&stranger).key("given-back");
    let cancel = cancel.header("booking-secret", secret).send().await;
    assert_eq!(cancel.expect(StatusCode::OK).json()["state"], "cancelled");
}

async fn a_confirm_is_never_late() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    app.clock.advance(Duration::from_mins(10));
    let path = format!("{}/confirm", held.path());
    let answer = app.post(&path).by(&app.sell).key("k").send().await;
    assert_eq!(answer.refused(409, "hold_expired")["advice"], "reacquire");
    let metrics = app.get("/metrics").send().await.text();
    assert!(
        metrics.contains("\nsoldonce_confirm_conflicts_total 1\n"),
        "{metrics}"
    );
    app.held("b", &["A-1"]).await;
}

async fn the_same_key_gives_the_same_answer() {
    let app = TestApp::open().await.with_hall(2).await;
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    let ask = async |key: &str, body: &Value| {
        app.post("/v1/events/hall/holds")
            .by(&app.sell)
            .key(key)
            .json(body)
            .send()
            .await
    };
    let first = ask("k", &body).await.expect(StatusCode::CREATED);
    assert_eq!(first.header("idempotency-replayed"), "");
    app.clock.advance(Duration::from_secs(2));
    let spelled = r#"{ "units":[{"seat":"A\u002d1"}],"holder":"a"}"#;
    let again = app.post("/v1/events/hall/holds").by(&app.sell).key("k");
    let again = again.body("application/json", spelled).send().await;
    let again = again.expect(StatusCode::CREATED);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(without_time(&first), without_time(&again));
    let other = json!({"holder": "a", "units": units(&["A-2"])});
    ask("k", &other)
        .await
        .refused(422, "idempotency_key_reused");
    let by_other = app
        .post("/v1/events/hall/holds")
        .by(&app.admin)
        .key("k")
        .json(&other);
    by_other.send().await.expect(StatusCode::CREATED);
    // Refusals are not pinned: the same key may be asked again.
    let taken = json!({"holder": "b", "units": units(&["A-1"])});
    ask("later", &taken).await.refused(409, "unit_unavailable");
    let held = Held::of(&first);
    let path = format!("{}/confirm", held.path());
    let booked = app.post(&path).by(&app.sell).key("k").send().await;
    let booked = booked.expect(StatusCode::CREATED);
    app.clock.advance(Duration::from_hours(1));
    let again = app.post(&path).by(&app.sell).key("k").send().await;
    let again = again.expect(StatusCode::CREATED);
    assert_eq!(without_time(&booked), without_time(&again));
    assert_eq!(again.header("idempotency-replayed"), "true");
}

/// The bytes of a body up to its last member, the server's time.
fn without_time(answer: &Answer) -> String {
    let text = answer.text();
    let end = text.rfind(",\"server_time\":").unwrap();
    text[..end].to_owned()
}

async fn a_key_is_visible_ascii_and_not_too_long() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    for key in ["", "a b", "é", &"x".repeat(256)] {
        let answer = app
            .post("/v1/events/hall/holds")
            .by(&app.sell)
            .key(key)
            .json(&body);
        let problem = answer.send().await.refused(400, "invalid_request");
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .starts_with("Idempotency-Key: ")
        );
    }
    let twice = app
        .post("/v1/events/hall/holds")
        .by(&app.sell)
        .key("a")
        .key("b")
        .json(&body);
    twice.send().await.refused(400, "invalid_request");
    let longest = app
        .post("/v1/events/hall/holds")
        .by(&app.sell)
        .key(&"x".repeat(255));
    longest.json(&body).send().await.expect(StatusCode::CREATED);
}

async fn lines_are_given_back_once() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    let body = json!({
        "holder": "a", "reference": "till 3",
        "units": [{"seat": "A-1"}, {"area": "floor", "quantity": 3}],
    });
    let sold = app
        .post("/v1/events/hall/sales")
        .by(&app.sell)
        .key("s")
        .json(&body)
        .send()
        .await;
    let sold = sold.expect(StatusCode::CREATED).json();
    assert_eq!(
        (&sold["hold"], &sold["total"]),
        (&Value::Null, &json!(13_500))
    );
    let path = format!("/v1/bookings/{}/cancel", sold["id"].as_str().unwrap());
    let cancel = async |key: &str, body: Value| {
        app.post(&path)
            .by(&app.sell)
            .key(key)
            .json(&body)
            .send()
            .await
    };
    // An entry as it was answered; its price and state do not count.
    let mut entry = sold["lines"][1].clone();
    assert_eq!(entry["place"], "floor.1");
    entry["price"] = json!(1);
    let one = cancel("c1", json!({"units": [entry]}))
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&one["state"], &one["lines"][1]["state"]),
        (&json!("partly_cancelled"), &json!("cancelled"))
    );
    let again = cancel("c2", json!({"units": [entry]}))
        .await
        .refused(409, "already_cancelled");
    assert_eq!(
        again["units"],
        json!([{"area": "floor", "place": "floor.1"}])
    );
    cancel("c3", json!({"units": []}))
        .await
        .refused(400, "invalid_request");
    cancel("c4", json!({"units": [{"seat": "Z-9"}]}))
        .await
        .refused(404, "unknown_unit");
    let two = cancel("c5", json!({"units": [{"area": "floor", "quantity": 1}]})).await;
    two.expect(StatusCode::OK);
    let all = cancel("c6", json!({})).await.expect(StatusCode::OK).json();
    assert_eq!(all["state"], "cancelled");
    cancel("c7", json!({}))
        .await
        .refused(409, "already_cancelled");
    let seats = app.get("/v1/events/hall/seats").send().await.json();
    assert_eq!(seats["free"], 22);
}

async fn a_seat_of_another_booking_is_not_unknown_to_the_chart() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    let sale = app.post("/v1/events/hall/sales").by(&app.sell).key("s");
    let sold = sale.json(&body).send().await.expect(StatusCode::CREATED);
    let path = format!(
        "/v1/bookings/{}/cancel",
        sold.json()["id"].as_str().unwrap()
    );
    let cancel = app.post(&path).by(&app.sell).key("c");
    let refused = cancel.json(&json!({"units": units(&["A-2"])})).send().await;
    let refused = refused.refused(404, "unknown_unit");
    let detail = "not in this booking, or not as many: A-2";
    assert_eq!(refused["detail"], detail);
}

async fn what_stands_in_the_way_of_staff_has_no_alternatives() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("a", &["A-1"]).await;
    let set = async |what: &str, seat: &str| {
        let path = format!("/v1/events/hall/{what}");
        let ask = app.post(&path).by(&app.admin);
        ask.json(&json!({"units": units(&[seat])})).send().await
    };
    set("block", "A-2").await.expect(StatusCode::OK);
    for (what, seat, advice) in [
        ("block", "A-1", "retry_after"),
        ("block", "A-2", "do_not_retry"),
        ("unblock", "A-3", "do_not_retry"),
    ] {
        let refused = set(what, seat).await.refused(409, "unit_unavailable");
        assert_eq!(refused["alternatives"], json!([]), "{what} {seat}");
        assert_eq!(refused["advice"], advice, "{what} {seat}");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("can be {what}ed")), "{detail}");
    }
}

async fn a_block_asked_for_again_with_its_key_is_the_same() {
    let app = TestApp::open().await.with_hall(1).await;
    let keyed = async |seat: &str| {
        let ask = app
            .post("/v1/events/hall/block")
            .by(&app.admin)
            .key("block-1");
        ask.json(&json!({"units": units(&[seat])})).send().await
    };
    let first = keyed("A-5").await.expect(StatusCode::OK).json();
    let again = keyed("A-5").await.expect(StatusCode::OK);
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json()["blocked"], first["blocked"]);
    keyed("A-6").await.refused(422, "idempotency_key_reused");
}

async fn staff_blocks_and_unblocks() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("a", &["A-1"]).await;
    let set = async |what: &str, seats: &[&str]| {
        let body = json!({"units": units(seats), "reason": "a pillar"});
        let path = format!("/v1/events/hall/{what}");
        app.post(&path).by(&app.admin).json(&body).send().await
    };
    let blocked = set("block", &["A-3", "A-2"])
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&blocked["blocked"], &blocked["seq"]),
        (
            &units(&["A-2", "A-3"]),
            &app.answer(json!({"seq": 2}))["seq"]
        )
    );
    let problem = set("block", &["A-1", "A-4"])
        .await
        .refused(409, "unit_unavailable");
    assert_eq!(problem["conflicts"][0]["state"], "held");
    let problem = set("unblock", &["A-2", "A-4"])
        .await
        .refused(409, "unit_unavailable");
    assert_eq!(
        problem["conflicts"],
        json!([{"seat": "A-4", "state": "free"}])
    );
    let unblocked = set("unblock", &["A-2"]).await.expect(StatusCode::OK).json();
    assert_eq!(unblocked["unblocked"], units(&["A-2"]));
    set("block", &["Z-9"]).await.refused(404, "unknown_unit");
    set("block", &[]).await.refused(400, "invalid_request");
    let path = "/v1/events/hall/units/A-2/history";
    let history = app
        .get(path)
        .by(&app.admin)
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    let first = &history["transitions"][0];
    assert_eq!(
        (&first["from"], &first["to"]),
        (&json!("free"), &json!("blocked"))
    );
    assert_eq!(
        (&first["reason"], &first["fence"]),
        (&json!("a pillar"), &json!(0))
    );
    assert_eq!(history["transitions"].as_array().unwrap().len(), 2);
    let unknown = app
        .get("/v1/events/hall/units/Z-9/history")
        .by(&app.admin)
        .send()
        .await;
    unknown.refused(404, "unknown_unit");
}

async fn a_request_id_reaches_the_audit() {
    let app = TestApp::open().await.with_hall(1).await;
    let body = json!({"holder": "a", "units": units(&["A-1"])});
    let ask = || app.post("/v1/events/hall/holds").by(&app.sell).json(&body);
    let held = ask()
        .header("request-id", "till-3.77")
        .send()
        .await
        .expect(StatusCode::CREATED);
    assert_eq!(held.header("request-id"), "till-3.77");
    let history = app
        .get("/v1/events/hall/units/A-1/history")
        .by(&app.admin)
        .send()
        .await;
    assert_eq!(history.json()["transitions"][0]["request_id"], "till-3.77");
    for illegal in ["a b", "", "x\"y", &"x".repeat(65)] {
        let answer = ask().header("request-id", illegal).send().await;
        assert!(answer.header("request-id").starts_with("req_"), "{illegal}");
    }
}

/// After an event has begun its buyers give nothing back and buy nothing, unless it says so.
async fn sale_and_cancelling_end_when_the_event_starts() {
    const STARTS: &str = "2026-12-01T12:05:00.000Z";
    let app = TestApp::open().await;
    let mut event = hall("hall", 1);
    event["starts_at"] = json!(STARTS);
    let created = app.create(&event).await.expect(StatusCode::CREATED).json();
    let ends = |event: &Value| {
        let policy = &event["policy"];
        [&policy["sale_closes_at"], &policy["cancel_until"]].map(Clone::clone)
    };
    assert_eq!(ends(&created), [json!(STARTS), json!(STARTS)]);
    let held = app.held("ann", &["A-1"]).await;
    let booking = app.booked(&held).await["id"].clone();
    let other = app.held("ann", &["A-2"]).await;
    app.clock.advance(Duration::from_mins(5));
    let cancel = format!("/v1/bookings/{}/cancel", booking.as_str().unwrap());
    let swap = json!({"booking": booking, "release": [{"seat": "A-1"}], "hold": other.id});
    let shopper = app.shopper().await;
    for ask in [
        app.post(&cancel).by(&app.sell),
        app.post(&cancel).by(&shopper).secret(&held.secret),
        app.post("/v1/exchanges").by(&app.sell).json(&swap),
    ] {
        let refused = ask.key("x").send().await.refused(409, "cancel_closed");
        assert_eq!(refused["cancel_until"], STARTS);
    }
    let body = json!({"holder": "bob", "units": units(&["A-3"])});
    let hold = || app.post("/v1/events/hall/holds").by(&app.sell).json(&body);
    hold().send().await.refused(409, "not_on_sale");
    let shown = app.get("/v1/events/hall").send().await.json();
    assert_eq!(shown["on_sale"], false);
    // For ever is said with `null`; what is not said stays.
    let sale = json!({"policy": {"sale_closes_at": null}});
    let patch = app.patch("/v1/events/hall").by(&app.admin).json(&sale);
    let patched = patch.send().await.expect(StatusCode::OK).json();
    assert_eq!(ends(&patched), [Value::Null, json!(STARTS)]);
    hold().send().await.expect(StatusCode::CREATED);
    // Staff cancels late.
    let staff = app.post(&cancel).by(&app.admin).key("s").send().await;
    staff.expect(StatusCode::OK);
}

async fn a_cancellation_repeated_with_its_key_a_day_later_cancels_nothing_more() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    let body = json!({"holder": "ann", "units": [{"area": "floor", "quantity": 3}]});
    let held = app.hold(&app.sell, &body).await;
    let booked = app.booked(&Held::of(&held)).await;
    let path = format!("/v1/bookings/{}", booked["id"].as_str().unwrap());
    let one = json!({"units": [{"area": "floor", "quantity": 1}]});
    let cancel = async || {
        let ask = app.post(&format!("{path}/cancel")).by(&app.sell).key("one");
        ask.json(&one).send().await.expect(StatusCode::OK)
    };
    let first = cancel().await.json();
    app.clock.advance(Duration::from_hours(26));
    // Something is stored, and old records are deleted with it.
    app.held("eve", &["A-1"]).await;
    let again = cancel().await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.json()["lines"], first["lines"]);
    let found = app.get(&path).by(&app.sell).send().await.json();
    assert_eq!(found["lines"], first["lines"]);
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        a_hold_becomes_a_booking,
        the_secret_of_a_booking_opens_it_for_every_bearer,
        a_confirm_is_never_late,
        the_same_key_gives_the_same_answer,
        a_key_is_visible_ascii_and_not_too_long,
        lines_are_given_back_once,
        a_seat_of_another_booking_is_not_unknown_to_the_chart,
        what_stands_in_the_way_of_staff_has_no_alternatives,
        a_block_asked_for_again_with_its_key_is_the_same,
        staff_blocks_and_unblocks,
        a_request_id_reaches_the_audit,
        sale_and_cancelling_end_when_the_event_starts,
        a_cancellation_repeated_with_its_key_a_day_later_cancels_nothing_more,
    }
}
