//! Lists of an event for staff: every hold and booking once, by what is asked for, and never cut in
//! silence.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::harness::{Answer, Held, TestApp, units};

const SALES: &str = "/v1/events/hall/sales";
const BOOKINGS: &str = "/v1/events/hall/bookings";
const HOLDS: &str = "/v1/events/hall/holds";

async fn sell(app: &TestApp, holder: &str, seat: &str, reference: &str) -> Value {
    let body = json!({"holder": holder, "units": units(&[seat]), "reference": reference});
    let sold = app.post(SALES).by(&app.sell).key(seat).json(&body);
    sold.send().await.expect(StatusCode::CREATED).json()
}

async fn page(app: &TestApp, path: &str) -> Answer {
    let page = app.get(path).by(&app.read).send().await;
    page.expect(StatusCode::OK)
}

fn ids(page: &Value, name: &str) -> Vec<String> {
    let list = page[name].as_array().unwrap().iter();
    list.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn a_thousand_bookings_are_each_on_one_page_while_sales_go_on() {
    let app = TestApp::open().await.with_hall(120).await;
    let seats = app.get("/v1/events/hall/chart").send().await.json();
    assert!(seats.is_object());
    let name = |n: usize| format!("{}-{}", row(n / 10), n % 10 + 1);
    let mut before = BTreeSet::new();
    for n in 0..1_000 {
        let sold = sell(&app, "ann", &name(n), "first").await;
        before.insert(sold["id"].as_str().unwrap().to_owned());
    }
    let (mut seen, mut after, mut pages) = (BTreeSet::new(), String::new(), 0);
    loop {
        let found = page(&app, &format!("{BOOKINGS}?limit=37{after}"))
            .await
            .json();
        let at = found["seq"].as_u64().unwrap();
        assert!(at >= 1_000 + pages, "commit {at}");
        for id in ids(&found, "bookings") {
            assert!(seen.insert(id), "once");
        }
        sell(
            &app,
            "ben",
            &name(1_000 + usize::try_from(pages).unwrap()),
            "later",
        )
        .await;
        pages += 1;
        match found["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert!(seen.is_superset(&before));
    assert!(pages >= 28, "{pages}");
}

async fn an_own_list_is_never_cut_in_silence() {
    let app = TestApp::open().await.with_hall(12).await;
    let mut made = Vec::new();
    for n in 0..103 {
        let seat = format!("{}-{}", row(n / 10), n % 10 + 1);
        let sold = sell(&app, "ann", &seat, "own").await;
        made.push(sold["id"].as_str().unwrap().to_owned());
    }
    // Made in one millisecond, so their ids alone order them.
    made.sort_unstable_by(|one, other| other.cmp(one));
    let first = own_bookings(&app, "").await;
    assert_eq!(ids(&first, "bookings"), made[..100]);
    let after = format!("&after={}", first["next"].as_str().unwrap());
    let rest = own_bookings(&app, &after).await;
    assert_eq!(ids(&rest, "bookings"), made[100..]);
    assert_eq!(rest["next"], Value::Null);
}

async fn own_bookings(app: &TestApp, after: &str) -> Value {
    let path = format!("/v1/bookings?holder=ann{after}");
    let page = app.get(&path).by(&app.sell).send().await;
    page.expect(StatusCode::OK).json()
}

/// The name of a row of a grid: A to Z, then AA.
fn row(n: usize) -> String {
    let letter = |n: usize| char::from(b'A' + u8::try_from(n).unwrap());
    match n / 26 {
        0 => letter(n).to_string(),
        many => format!("{}{}", letter(many - 1), letter(n % 26)),
    }
}

async fn bookings_are_found_by_state_holder_reference_and_time() {
    let app = TestApp::open().await.with_hall(3).await;
    let first = sell(&app, "ann", "A-1", "order-1").await;
    app.clock.advance(Duration::from_mins(1));
    let second = sell(&app, "ben", "A-2", "order-2").await;
    let id = |booking: &Value| booking["id"].as_str().unwrap().to_owned();
    let cancel = format!("/v1/bookings/{}/cancel", id(&second));
    let cancelled = app.post(&cancel).by(&app.sell).key("c").json(&json!({}));
    cancelled.send().await.expect(StatusCode::OK);
    let since = second["created_at"].as_str().unwrap();
    let (both, one, two) = (
        vec![id(&first), id(&second)],
        vec![id(&first)],
        vec![id(&second)],
    );
    for (query, expected) in [
        (String::new(), &both),
        ("?state=confirmed".to_owned(), &one),
        ("?state=cancelled,failed".to_owned(), &two),
        ("?state=confirmed,cancelled".to_owned(), &both),
        ("?holder=ann".to_owned(), &one),
        ("?reference=order-2".to_owned(), &two),
        (format!("?from={since}"), &two),
        (format!("?until={since}"), &one),
        (format!("?holder=ann&from={since}"), &vec![]),
    ] {
        let found = page(&app, &format!("{BOOKINGS}{query}")).await.json();
        assert_eq!(&ids(&found, "bookings"), expected, "{query}");
        assert_eq!(found["next"], Value::Null);
        assert_eq!(found["seq"], 3);
    }
}

async fn holds_are_listed_as_they_are_now_over_or_not() {
    let app = TestApp::open().await.with_hall(3).await;
    let mut held: Vec<Held> = Vec::new();
    for (holder, seat) in [("ann", "A-1"), ("ben", "A-2"), ("cat", "A-3")] {
        held.push(app.held(holder, &[seat]).await);
        app.clock.advance(Duration::from_millis(1));
    }
    let released = app.delete(&held[0].path()).by(&app.sell).send().await;
    released.expect(StatusCode::OK);
    app.booked(&held[1]).await;
    let states = async |query: &str| {
        let found = page(&app, &format!("{HOLDS}{query}")).await.json();
        let list = found["holds"].as_array().unwrap().iter();
        let state = |hold: &Value| hold["state"].as_str().unwrap().to_owned();
        list.map(state).collect::<Vec<_>>()
    };
    assert_eq!(states("").await, ["released", "consumed", "active"]);
    assert_eq!(states("?state=active,pinned").await, ["active"]);
    assert_eq!(states("?holder=ben").await, ["consumed"]);
    // No sweep has written it down yet.
    app.clock.advance(Duration::from_mins(11));
    assert_eq!(states("?state=expired").await, ["expired"]);
    let found = page(&app, &format!("{HOLDS}?limit=2")).await.json();
    assert_eq!(ids(&found, "holds"), [&*held[0].id, &*held[1].id]);
    let next = found["next"].as_str().unwrap();
    let rest = page(&app, &format!("{HOLDS}?limit=2&after={next}"))
        .await
        .json();
    assert_eq!(ids(&rest, "holds"), [&*held[2].id]);
    let text = page(&app, HOLDS).await.text();
    assert!(held.iter().all(|held| !text.contains(&held.secret)));
}

async fn what_cannot_be_meant_is_refused_by_name() {
    let app = TestApp::open().await.with_hall(1).await;
    for (query, named) in [
        ("state=sold", "state: there are `pending_payment`"),
        ("from=yesterday", "from: write a time"),
        ("after=hld_x", "after: send `next`"),
        ("limit=0", "limit: 0 is outside"),
        ("limit=101", "limit: 101 is outside"),
        ("seat=A-1", "unknown name `seat`"),
        ("holder=", "holder"),
    ] {
        let refused = app
            .get(&format!("{BOOKINGS}?{query}"))
            .by(&app.admin)
            .send()
            .await;
        let problem = refused.refused(400, "invalid_request");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(named), "{query}: {detail}");
    }
    let holds = app
        .get(&format!("{HOLDS}?reference=x"))
        .by(&app.admin)
        .send()
        .await;
    holds.refused(400, "invalid_request");
    let nowhere = app
        .get("/v1/events/none/bookings")
        .by(&app.read)
        .send()
        .await;
    nowhere.refused(404, "event_not_found");
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 0, {
        a_thousand_bookings_are_each_on_one_page_while_sales_go_on,
        an_own_list_is_never_cut_in_silence,
        bookings_are_found_by_state_holder_reference_and_time,
        holds_are_listed_as_they_are_now_over_or_not,
        what_cannot_be_meant_is_refused_by_name,
    }
}
