//! Holds: hold, look, change, extend, release, revoke.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Held, TestApp, hall_with_floor, units};

async fn a_hold_is_answered_with_its_secret_once() {
    let app = TestApp::open().await.with_hall(2).await;
    let held = app.held("user-42", &["A-1", "A-2"]).await;
    assert!(held.secret.starts_with("hs_"));
    let expected = json!({
        "id": held.id, "secret": held.secret, "event": "hall", "holder": "user-42",
        "state": "active", "fence": 1,
        "units": [
            {"seat": "A-1", "price": 4500, "version": 1},
            {"seat": "A-2", "price": 4500, "version": 1},
        ],
        "total": 9000, "currency": "EUR", "created_at": "2026-12-01T12:00:00.000Z",
        "expires_at": "2026-12-01T12:10:00.000Z", "max_expires_at": "2026-12-01T12:30:00.000Z",
        "server_time": "2026-12-01T12:00:00.000Z", "booking": null, "seq": 1,
    });
    assert_eq!(held.body, app.answer(expected));
    let read = app
        .get(&held.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK);
    assert!(!read.text().contains(&held.secret));
    assert_eq!(read.json()["state"], "active");
}

async fn a_conflict_names_every_unit_and_what_could_be_had() {
    let app = TestApp::open().await.with_hall(3).await;
    app.held("a", &["A-1"]).await;
    app.settle().await;
    let body = json!({"holder": "b", "units": units(&["A-1", "A-2"])});
    let answer = app.hold(&app.sell, &body).await;
    let problem = answer.refused(409, "unit_unavailable");
    let conflict = json!([{"seat": "A-1", "state": "held", "retry_after_ms": 600_000}]);
    assert_eq!(
        (&problem["conflicts"], &problem["seq"]),
        (&conflict, &json!(1))
    );
    let alternative = &problem["alternatives"][0];
    assert_eq!(
        alternative["units"].as_array().unwrap().len(),
        2,
        "{problem:#}"
    );
    assert_eq!(alternative["together"], true);
    assert_eq!(problem["type"], "/problems/unit-unavailable");
    assert_eq!(problem["advice"], "retry_after");
}

async fn the_own_hold_comes_back_with_its_secret() {
    let app = TestApp::open().await.with_hall(1).await;
    let shopper = app.shopper().await;
    let ask = async |seats: &[&str]| {
        let body = json!({"units": units(seats)});
        app.hold(&shopper, &body).await
    };
    let first = Held::of(&ask(&["A-1", "A-2"]).await.expect(StatusCode::CREATED));
    app.clock.advance(Duration::from_secs(5));
    let again = Held::of(&ask(&["A-2", "A-1"]).await.expect(StatusCode::OK));
    assert_eq!((&first.id, &first.secret), (&again.id, &again.secret));
    assert_eq!(first.body["expires_at"], again.body["expires_at"]);
    let part = ask(&["A-2", "A-3"]).await.refused(409, "unit_unavailable");
    assert_eq!(part["conflicts"][0]["state"], "yours");
    let listed = app
        .get("/v1/holds")
        .by(&shopper)
        .send()
        .await
        .expect(StatusCode::OK);
    assert!(!listed.text().contains(&first.secret));
    assert_eq!(listed.json()["holds"][0]["id"], json!(first.id));
    assert_eq!(listed.json()["next"], Value::Null);
}

async fn areas_and_the_best_are_held() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    let ask = async |wish: Value| {
        let mut body = wish;
        body["holder"] = json!("a");
        app.hold(&app.sell, &body).await
    };
    let floor = json!({"units": [{"area": "floor", "quantity": 2}]});
    let held = ask(floor).await.expect(StatusCode::CREATED).json();
    assert_eq!(held["units"][1]["area"], "floor");
    assert_eq!(
        (&held["units"][1]["place"], &held["total"]),
        (&json!("floor.2"), &json!(6000))
    );
    let best = json!({"best": {"quantity": 2, "category": "Seated", "together": "required"}});
    let held = ask(best).await.expect(StatusCode::CREATED).json();
    assert_eq!(
        (&held["together"], &held["units"][0]["seat"]),
        (&json!(true), &json!("A-1"))
    );
    let full = ask(json!({"units": [{"area": "floor", "quantity": 10}]})).await;
    full.expect(StatusCode::CREATED);
    let full = ask(json!({"units": [{"area": "floor", "quantity": 7}]})).await;
    let problem = full.refused(409, "budget_exceeded");
    assert_eq!(
        (&problem["limit"], &problem["used"]),
        (&json!(20), &json!(14))
    );
    let category = ask(json!({"best": {"quantity": 1, "category": "Royal"}})).await;
    category.refused(400, "invalid_request");
}

/// Two wings, listed before the middle block between them.
async fn the_best_seats_face_the_stage() {
    let app = TestApp::open().await;
    let row = |zone: &str, left: u32| {
        let seat = |n: u32| json!({"seat": format!("{zone}-{n}"), "category": "Circle", "x": left + n, "y": 0});
        let seats: Vec<Value> = (1..=6).map(seat).collect();
        json!({"zone": zone, "rows": [{"row": "A", "seats": seats}]})
    };
    let mut chart = json!({
        "format": "soldonce", "name": "Wings",
        "zones": [row("left", 0), row("right", 20), row("middle", 10)],
    });
    for (id, focus, expected) in [
        ("stage", None, ["middle-3", "middle-4"]),
        (
            "catwalk",
            Some(json!({"x": 25, "y": -1.5})),
            ["right-5", "right-6"],
        ),
    ] {
        if let Some(focus) = focus {
            chart["focus"] = focus;
        }
        let event = json!({"id": id, "name": "Wings", "currency": "EUR", "chart": chart,
            "prices": {"Circle": 5_000}});
        let created = app.post("/v1/events").by(&app.admin).json(&event).send();
        created.await.expect(StatusCode::CREATED);
        let best = json!({"holder": "ann", "best": {"quantity": 2, "category": "Circle"}});
        let ask = app.post(&format!("/v1/events/{id}/holds")).by(&app.sell);
        let held = ask.json(&best).send().await.expect(StatusCode::CREATED);
        let held = held.json();
        let seats = [&held["units"][0]["seat"], &held["units"][1]["seat"]];
        assert_eq!(seats, expected);
        let shown = app.get(&format!("/v1/events/{id}/chart")).send().await;
        assert_eq!(shown.json()["focus"], chart["focus"]);
    }
}

async fn a_full_area_says_how_many_are_free() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    for (holder, quantity) in [("a", 10), ("b", 8)] {
        let body = json!({"holder": holder, "units": [{"area": "floor", "quantity": quantity}]});
        app.hold(&app.sell, &body).await.expect(StatusCode::CREATED);
    }
    let body = json!({"holder": "c", "units": [{"area": "floor", "quantity": 3}]});
    let answer = app.hold(&app.sell, &body).await;
    let problem = answer.refused(409, "unit_unavailable");
    assert_eq!(
        problem["conflicts"],
        json!([{"area": "floor", "state": "full", "free": 2}])
    );
}

async fn what_cannot_be_held_is_named() {
    let app = TestApp::open().await.with_hall(1).await;
    let refused = [
        (json!({}), 400, "invalid_request"),
        (
            json!({"units": [], "best": {"quantity": 1}}),
            400,
            "invalid_request",
        ),
        (json!({"units": []}), 400, "invalid_request"),
        (
            json!({"units": [{"seat": "A-1"}], "price": 1}),
            400,
            "invalid_request",
        ),
        (
            json!({"units": [{"seat": "A-1", "price": 1}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"units": [{"seat": "A-1", "area": "x"}]}),
            400,
            "invalid_request",
        ),
        (json!({"units": [{"area": "x"}]}), 400, "invalid_request"),
        (
            json!({"units": [{"area": "x", "quantity": 0}]}),
            400,
            "invalid_request",
        ),
        (
            json!({"units": [{"seat": "Z-9"}, {"area": "x", "quantity": 1}]}),
            404,
            "unknown_unit",
        ),
        (
            json!({"units": [{"seat": "A-1"}], "ttl_ms": 999}),
            400,
            "invalid_request",
        ),
        (
            json!({"units": [{"seat": "A-1"}], "ttl_ms": 1_800_001}),
            400,
            "invalid_request",
        ),
        (json!({"best": {"quantity": 11}}), 400, "too_many_units"),
        (json!({"best": {"quantity": 0}}), 400, "invalid_request"),
        (
            json!({"best": {"quantity": 1, "together": "maybe"}}),
            400,
            "invalid_request",
        ),
    ];
    for (mut body, status, code) in refused {
        body["holder"] = json!("a");
        let answer = app.hold(&app.sell, &body).await;
        let problem = answer.refused(status, code);
        if body["best"]["quantity"] == 0 {
            assert_eq!(problem["detail"], "best.quantity: ask for at least 1");
        }
    }
}

async fn a_key_names_the_holder_and_a_session_does_not() {
    let app = TestApp::open().await.with_hall(1).await;
    let wish = json!({"units": [{"seat": "A-1"}]});
    app.hold(&app.sell, &wish)
        .await
        .refused(400, "invalid_request");
    let shopper = app.shopper().await;
    let named = json!({"holder": "x", "units": [{"seat": "A-1"}]});
    app.hold(&shopper, &named)
        .await
        .refused(400, "invalid_request");
    let long = json!({"units": [{"seat": "A-1"}], "ttl_ms": 600_001});
    let answer = app.hold(&shopper, &long).await;
    let problem = answer.refused(400, "invalid_request");
    assert_eq!(
        problem["detail"],
        "ttl_ms: 600001 is outside 1000 ..= 600000"
    );
}

async fn seats_are_added_and_dropped_in_one_step() {
    let app = TestApp::open().await.with_hall(2).await;
    let held = app.held("a", &["A-1", "A-2"]).await;
    app.held("b", &["A-5"]).await;
    let change = async |body: Value| {
        app.patch(&held.path())
            .by(&app.sell)
            .json(&body)
            .send()
            .await
    };
    let body = json!({"add": [{"seat": "A-3"}], "drop": [held.body["units"][0]]});
    let changed = change(body).await.expect(StatusCode::OK).json();
    let seats: Vec<_> = changed["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| &unit["seat"])
        .collect();
    assert_eq!(seats, ["A-2", "A-3"]);
    assert!(changed.get("secret").is_none());
    let body = json!({"add": [{"seat": "A-4"}, {"seat": "A-5"}], "drop": []});
    let problem = change(body).await.refused(409, "unit_unavailable");
    assert_eq!(problem["conflicts"][0]["seat"], "A-5");
    let problem = change(json!({"drop": [{"seat": "A-5"}]})).await;
    let problem = problem.refused(404, "unknown_unit");
    assert_eq!(problem["detail"], "not in this hold, or not as many: A-5");
    let problem = change(json!({"drop": [{"seat": "Z-9"}]})).await;
    let problem = problem.refused(404, "unknown_unit");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("The chart of the event"), "{detail}");
    let stale = json!({"add": [{"seat": "A-4"}], "fence": 1});
    let fence = change(stale).await;
    assert_eq!(
        fence.status.as_u16(),
        if changed["fence"] == 1 { 200 } else { 409 }
    );
    let all = json!({"drop": units(&["A-2", "A-3"])});
    let answer = change(all).await;
    assert!(answer.status.is_client_error() || answer.json()["units"][0]["seat"] == "A-4");
}

async fn a_hold_is_extended_to_its_cap_and_not_beyond() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let path = format!("{}/extend", held.path());
    app.clock.advance(Duration::from_mins(5));
    let extended = app
        .post(&path)
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(extended["expires_at"], "2026-12-01T12:15:00.000Z");
    let body = json!({"ttl_ms": 1_800_000});
    let capped = app.post(&path).by(&app.sell).json(&body).send().await;
    assert_eq!(
        capped.expect(StatusCode::OK).json()["expires_at"],
        "2026-12-01T12:30:00.000Z"
    );
    let again = app.post(&path).by(&app.sell).send().await;
    let problem = again.refused(409, "cap_reached");
    assert_eq!(problem["max_expires_at"], "2026-12-01T12:30:00.000Z");
    app.clock.advance(Duration::from_mins(25));
    app.post(&path)
        .by(&app.sell)
        .send()
        .await
        .refused(409, "hold_expired");
    let read = app
        .get(&held.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK);
    assert_eq!(read.json()["state"], "expired");
}

async fn a_release_may_be_repeated_and_frees_the_seat() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let stale = app
        .delete(&format!("{}?fence=9", held.path()))
        .by(&app.sell)
        .send()
        .await;
    let problem = stale.refused(409, "stale_fence");
    assert_eq!(
        (&problem["fence"], &problem["advice"]),
        (&json!(1), &json!("ask_state"))
    );
    let released = async || {
        let answer = app
            .delete(&format!("{}?fence=1", held.path()))
            .by(&app.sell)
            .send()
            .await;
        answer.expect(StatusCode::OK).json()
    };
    let mut first = released().await;
    assert_eq!(first["state"], "released");
    let mut again = released().await;
    for body in [&mut first, &mut again] {
        body.as_object_mut().unwrap().remove("seq");
    }
    assert_eq!(first, again);
    app.held("b", &["A-1"]).await;
    let extend = app
        .post(&format!("{}/extend", held.path()))
        .by(&app.sell)
        .send()
        .await;
    extend.refused(409, "hold_released");
}

async fn staff_ends_a_hold_with_a_reason() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let path = format!("{}/revoke", held.path());
    let body = json!({"reason": "a bot"});
    app.post(&path)
        .by(&app.sell)
        .json(&body)
        .send()
        .await
        .refused(403, "forbidden");
    let revoked = app.post(&path).by(&app.admin).json(&body).send().await;
    let revoked = revoked.expect(StatusCode::OK).json();
    assert_eq!(
        (&revoked["state"], &revoked["reason"]),
        (&json!("revoked"), &json!("a bot"))
    );
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        a_hold_is_answered_with_its_secret_once,
        a_conflict_names_every_unit_and_what_could_be_had,
        the_own_hold_comes_back_with_its_secret,
        areas_and_the_best_are_held,
        the_best_seats_face_the_stage,
        a_full_area_says_how_many_are_free,
        what_cannot_be_held_is_named,
        a_key_names_the_holder_and_a_session_does_not,
        seats_are_added_and_dropped_in_one_step,
        a_hold_is_extended_to_its_cap_and_not_beyond,
        a_release_may_be_repeated_and_frees_the_seat,
        staff_ends_a_hold_with_a_reason,
    }
}
