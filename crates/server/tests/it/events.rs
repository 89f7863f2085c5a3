//! Events: create, look, change, call off.

use axum::http::StatusCode;
use serde_json::{Value, json};
use soldonce_core::{POLICY_FIELDS, Policy, PolicyValue};

use crate::harness::{Answer, TestApp, hall, hall_with_floor};

/// Every field as `core` declares it; the description of the API has the values.
fn default_policy() -> Value {
    let default = Policy::default();
    let fields = POLICY_FIELDS.iter().map(|field| {
        let value = match field.get(&default) {
            PolicyValue::Null => Value::Null,
            PolicyValue::Number(number) => json!(number),
            PolicyValue::Flag(flag) => json!(flag),
            PolicyValue::Word(word) => json!(word),
            PolicyValue::Time(time) => panic!("{}: {time:?}", field.name),
        };
        (field.name.to_owned(), value)
    });
    Value::Object(fields.collect())
}

async fn an_event_is_created_and_shown() {
    let app = TestApp::open().await;
    let created = app.create(&hall("hall", 2)).await;
    let created = created.expect(StatusCode::CREATED);
    let again = app.post("/v1/events").by(&app.admin).json(&hall("hall", 2));
    let again = again.over_http().send().await.expect(StatusCode::OK);
    assert_eq!(again.header("location"), "/v1/events/hall");
    let expected = json!({
        "id": "hall", "name": "Hall", "starts_at": null, "currency": "EUR",
        "prices": {"Standard": 4500},
        "policy": default_policy(),
        "state": "open", "created_at": "2026-12-01T12:00:00.000Z", "total": 20, "free": 20, "held": 0,
        "on_sale": true, "seq": 0, "server_time": "2026-12-01T12:00:00.000Z",
    });
    assert_eq!(created.json(), expected);
    let shown = app
        .get("/v1/events/hall")
        .send()
        .await
        .expect(StatusCode::OK);
    assert_eq!(shown.json(), expected);
}

async fn the_same_event_again_is_the_same_and_another_is_refused() {
    let app = TestApp::open().await.with_hall(2).await;
    let again = app.create(&hall("hall", 2)).await;
    again.expect(StatusCode::OK);
    app.create(&hall("hall", 3))
        .await
        .refused(409, "event_exists");
}

async fn an_event_without_an_id_gets_one() {
    let app = TestApp::open().await;
    let mut body = hall("x", 1);
    body.as_object_mut().unwrap().remove("id");
    let created = app.create(&body).await;
    let id = created.expect(StatusCode::CREATED).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    app.get(&format!("/v1/events/{id}"))
        .send()
        .await
        .expect(StatusCode::OK);
}

async fn without_an_id_the_same_key_is_the_same_event() {
    let app = TestApp::open().await;
    let mut body = hall("x", 1);
    body.as_object_mut().unwrap().remove("id");
    let made = async |key: &str, body: &Value| {
        let post = app.post("/v1/events").by(&app.admin).key(key);
        post.json(body).send().await
    };
    let id = |answer: Answer| answer.json()["id"].clone();
    let first = id(made("event-1", &body).await.expect(StatusCode::CREATED));
    let again = id(made("event-1", &body).await.expect(StatusCode::OK));
    assert_eq!(again, first);
    let other = id(made("event-2", &body).await.expect(StatusCode::CREATED));
    assert_ne!(other, first);
    body["name"] = json!("another");
    let reused = made("event-1", &body).await;
    reused.refused(422, "idempotency_key_reused");
}

async fn what_cannot_be_is_named() {
    let app = TestApp::open().await;
    let refused = [
        ("id", json!("a b"), "id: "),
        ("id", json!(".."), "id: `.` and `..` cannot be"),
        ("name", json!(5), "at body.name (line 1"),
        ("name", json!(""), "name"),
        ("name", json!("  "), "name: it is blank"),
        ("currency", json!("eur"), "currency: "),
        ("starts_at", json!("tomorrow"), "at body.starts_at"),
        ("prices", json!({"Standard": -1}), "prices: -1 is outside"),
        ("prices", json!({"Standard": i64::MIN}), "prices: "),
        (
            "prices",
            json!({"Standard": 9_007_199_254_740_993_i64}),
            "prices: ",
        ),
        (
            "prices",
            json!({"Standard": 1.5}),
            "at body.prices.Standard",
        ),
        (
            "prices",
            json!({"Standard": 4500, "Balcony": 1}),
            "prices: the chart has no category",
        ),
        (
            "prices",
            json!({}),
            "prices: category `Standard` has no price",
        ),
        (
            "policy",
            json!({"hold_ttl_ms": 1}),
            "policy.hold_ttl_ms: 1 is outside 1000 ..=",
        ),
        (
            "policy",
            json!({"adjacency": "some"}),
            "at body.policy.adjacency",
        ),
        ("policy", json!({"ttl": 1}), "at body.policy.ttl (line 1"),
        (
            "chart",
            json!({"format": "grid", "rows": 0}),
            "chart: at chart",
        ),
        ("chart", json!({}), "chart.format: it is missing"),
        ("secret", json!("x"), "unknown field `secret`"),
    ];
    for (field, value, detail) in refused {
        let mut body = hall("hall", 1);
        body[field] = value;
        let answer = app.create(&body).await;
        let problem = answer.refused(400, "invalid_request");
        let told = problem["detail"].as_str().unwrap();
        assert!(told.contains(detail), "{field}: {told}");
    }
}

async fn a_price_may_be_nothing_and_no_more_than_the_bound() {
    let app = TestApp::open().await;
    for (name, price) in [("free", 0), ("dear", soldonce_core::limits::PRICE_MAX)] {
        let mut body = hall(name, 1);
        body["prices"] = json!({ "Standard": price });
        app.create(&body).await.expect(StatusCode::CREATED);
    }
}

async fn events_are_listed_page_by_page() {
    let app = TestApp::open().await;
    for name in ["c", "a", "b"] {
        app.create(&hall(name, 1)).await.expect(StatusCode::CREATED);
    }
    let first = app
        .get("/v1/events?limit=2")
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&first["events"][0]["id"], &first["events"][1]["id"]),
        (&json!("a"), &json!("b"))
    );
    assert_eq!(first["next"], "b");
    let rest = app
        .get("/v1/events?after=b")
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&rest["events"][0]["id"], &rest["next"]),
        (&json!("c"), &json!(null))
    );
    for query in ["limit=0", "limit=101", "limit=x", "after=a%20b", "page=2"] {
        let answer = app.get(&format!("/v1/events?{query}")).send().await;
        answer.refused(400, "invalid_request");
    }
}

async fn an_unlisted_event_is_found_by_its_id_alone() {
    let app = TestApp::open().await;
    for (id, listed) in [("open-1", true), ("secret", false), ("open-2", true)] {
        let mut event = hall(id, 1);
        event["policy"] = json!({"listed": listed});
        let created = app.post("/v1/events").by(&app.admin).json(&event).send();
        created.await.expect(StatusCode::CREATED);
    }
    let shopper = app.shopper().await;
    let ids = |page: &Value| {
        let events = page["events"].as_array().unwrap().iter();
        events
            .map(|event| event["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // Without a token, as the page of a new visitor asks, and with that of a session.
    for ask in [
        app.get("/v1/events?limit=2"),
        app.get("/v1/events?limit=2").by(&shopper),
    ] {
        let page = ask.send().await.expect(StatusCode::OK).json();
        assert_eq!(ids(&page), ["open-1", "open-2"]);
        assert_eq!(page["next"], json!(null));
    }
    for key in [&app.admin, &app.sell] {
        let page = app.get("/v1/events").by(key).send().await;
        assert_eq!(ids(&page.json()), ["open-1", "open-2", "secret"]);
    }
    let found = app.get("/v1/events/secret").by(&shopper).send().await;
    assert_eq!(
        found.expect(StatusCode::OK).json()["policy"]["listed"],
        false
    );
    let hold = json!({"units": [{"seat": "A-1"}]});
    let held = app.post("/v1/events/secret/holds").by(&shopper).json(&hold);
    held.send().await.expect(StatusCode::CREATED);
    let listed = json!({"policy": {"listed": true}});
    let changed = app.patch("/v1/events/secret").by(&app.admin).json(&listed);
    changed.send().await.expect(StatusCode::OK);
    let page = app.get("/v1/events").by(&shopper).send().await.json();
    assert_eq!(ids(&page), ["open-1", "open-2", "secret"]);
}

async fn an_event_is_changed_in_part() {
    let app = TestApp::open().await.with_hall(1).await;
    let path = "/v1/events/hall";
    let part = json!({"policy": {"hold_ttl_ms": 60_000, "sale_opens_at": "2026-12-01T13:00:00Z"}});
    let changed = app.patch(path).by(&app.admin).json(&part).send().await;
    let changed = changed.expect(StatusCode::OK).json();
    assert_eq!(changed["policy"]["hold_ttl_ms"], 60_000);
    assert_eq!(changed["policy"]["hold_max_ms"], 1_800_000);
    assert_eq!(
        (&changed["on_sale"], &changed["state"]),
        (&json!(false), &json!("open"))
    );
    let hold = json!({"holder": "a", "units": [{"seat": "A-1"}]});
    let early = app.hold(&app.sell, &hold).await;
    let problem = early.refused(409, "not_on_sale");
    assert_eq!(problem["sale_opens_at"], "2026-12-01T13:00:00.000Z");
    assert_eq!(problem["advice"], "retry_after");
    let at_once = json!({"policy": {"sale_opens_at": null}});
    let changed = app.patch(path).by(&app.admin).json(&at_once).send().await;
    assert_eq!(changed.expect(StatusCode::OK).json()["on_sale"], true);
    let moved = json!({"name": "Hall II", "starts_at": "2026-12-02T19:30:00Z"});
    let changed = app.patch(path).by(&app.admin).json(&moved).send().await;
    let changed = changed.expect(StatusCode::OK).json();
    let start = "2026-12-02T19:30:00.000Z";
    assert_eq!(
        (&changed["name"], &changed["starts_at"]),
        (&json!("Hall II"), &json!(start))
    );
    assert_eq!(changed["policy"]["sale_closes_at"], start);
    assert_eq!(changed["policy"]["hold_ttl_ms"], 60_000);
    for wrong in [
        json!({"name": " "}),
        json!({"name": null}),
        json!({"starts_at": null}),
    ] {
        let asked = app.patch(path).by(&app.admin).json(&wrong).over_http();
        asked.send().await.refused(400, "invalid_request");
    }
    let wrong = json!({"policy": {"hold_max_ms": 1}});
    let answer = app.patch(path).by(&app.admin).json(&wrong).send().await;
    answer.refused(400, "invalid_request");
    let missing = app
        .patch("/v1/events/none")
        .by(&app.admin)
        .json(&at_once)
        .send()
        .await;
    missing.refused(404, "event_not_found");
}

async fn an_event_that_is_called_off_revokes_its_holds() {
    let app = TestApp::open().await.with_hall(1).await;
    let held = app.held("a", &["A-1"]).await;
    let body = json!({"reason": "the prince is ill"});
    let cancelled = app
        .post("/v1/events/hall/cancel")
        .by(&app.admin)
        .json(&body)
        .send()
        .await;
    let cancelled = cancelled.expect(StatusCode::OK).json();
    assert_eq!(
        (&cancelled["state"], &cancelled["on_sale"]),
        (&json!("cancelled"), &json!(false))
    );
    assert_eq!(cancelled["reason"], "the prince is ill");
    let hold = app
        .get(&held.path())
        .by(&app.sell)
        .send()
        .await
        .expect(StatusCode::OK)
        .json();
    assert_eq!(
        (&hold["state"], &hold["reason"]),
        (&json!("revoked"), &json!("the prince is ill"))
    );
    let extend = app
        .post(&format!("{}/extend", held.path()))
        .by(&app.sell)
        .send()
        .await;
    let problem = extend.refused(409, "hold_revoked");
    assert_eq!(problem["reason"], "the prince is ill");
}

async fn the_chart_is_cacheable_and_the_seats_are_versioned() {
    let app = TestApp::open().await.with_event(&hall_with_floor()).await;
    let chart = app
        .get("/v1/events/hall/chart")
        .over_http()
        .send()
        .await
        .expect(StatusCode::OK);
    assert_eq!(chart.json()["format"], "soldonce");
    assert_eq!(
        chart.header("cache-control"),
        "public, max-age=3600, immutable"
    );
    let tag = chart.header("etag").to_owned();
    let same = app
        .get("/v1/events/hall/chart")
        .header("if-none-match", &tag)
        .over_http()
        .send()
        .await;
    assert!(same.expect(StatusCode::NOT_MODIFIED).body.is_empty());

    let seats = app
        .get("/v1/events/hall/seats")
        .over_http()
        .send()
        .await
        .expect(StatusCode::OK);
    let expected = json!({
        "event": "hall", "seq": 0, "digest": "00000000", "server_time": "2026-12-01T12:00:00.000Z",
        "total": 22, "free": 22, "held": [], "sold": [], "blocked": [],
        "areas": [{"area": "floor", "capacity": 20, "free": 20, "held": 0, "sold": 0, "blocked": 0}],
    });
    assert_eq!(seats.json(), expected);
    let tag = seats.header("etag").to_owned();
    let ask = || {
        app.get("/v1/events/hall/seats")
            .header("if-none-match", &tag)
            .over_http()
    };
    ask().send().await.expect(StatusCode::NOT_MODIFIED);
    let body = json!({"holder": "a", "units": [{"seat": "A-2"}, {"area": "floor", "quantity": 3}]});
    app.hold(&app.sell, &body).await.expect(StatusCode::CREATED);
    let seats = ask().send().await.expect(StatusCode::OK).json();
    assert_eq!(
        (&seats["seq"], &seats["free"], &seats["held"]),
        (&json!(1), &json!(18), &json!(["A-2"]))
    );
    assert_eq!(seats["areas"][0]["held"], 3);
}

async fn what_is_no_event_is_not_found() {
    let app = TestApp::open().await.with_hall(1).await;
    for id in [
        "none",
        "a%20b",
        "%ff",
        "hall%00",
        "h%61ll%2F",
        &"x".repeat(65),
    ] {
        for rest in ["", "/chart", "/seats", "/feed"] {
            let answer = app.get(&format!("/v1/events/{id}{rest}")).send().await;
            answer.refused(404, "event_not_found");
        }
    }
    app.get("/v1/events/h%61ll")
        .send()
        .await
        .expect(StatusCode::OK);
}

async fn a_sale_that_would_open_when_it_is_over_is_refused() {
    let app = TestApp::open().await;
    let event = |id: &str, policy: Value| {
        let mut body = hall(id, 1);
        body["starts_at"] = json!("2026-12-24T20:00:00Z");
        body["policy"] = policy;
        body
    };
    let create = async |id: &str, policy: Value| {
        let asked = app
            .post("/v1/events")
            .by(&app.admin)
            .json(&event(id, policy));
        asked.send().await
    };
    let late = json!({"sale_opens_at": "2026-12-24T20:00:00Z"});
    let refused = create("late", late.clone()).await;
    let problem = refused.refused(400, "invalid_request");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("policy.sale_opens_at: ") && detail.contains("sale_closes_at"));
    create("early", json!({"sale_opens_at": "2026-12-24T19:59:59Z"}))
        .await
        .expect(StatusCode::CREATED);
    let patch = async |policy: &Value| {
        let path = app.patch("/v1/events/early").by(&app.admin);
        path.json(&json!({"policy": policy})).send().await
    };
    patch(&late).await.refused(400, "invalid_request");
    let for_ever = json!({"sale_opens_at": "2026-12-24T20:00:00Z", "sale_closes_at": null});
    patch(&for_ever).await.expect(StatusCode::OK);
    create("coupons", for_ever)
        .await
        .expect(StatusCode::CREATED);
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        an_event_is_created_and_shown,
        the_same_event_again_is_the_same_and_another_is_refused,
        an_event_without_an_id_gets_one,
        without_an_id_the_same_key_is_the_same_event,
        what_cannot_be_is_named,
        a_price_may_be_nothing_and_no_more_than_the_bound,
        events_are_listed_page_by_page,
        an_unlisted_event_is_found_by_its_id_alone,
        an_event_is_changed_in_part,
        an_event_that_is_called_off_revokes_its_holds,
        the_chart_is_cacheable_and_the_seats_are_versioned,
        what_is_no_event_is_not_found,
        a_sale_that_would_open_when_it_is_over_is_refused,
    }
}
