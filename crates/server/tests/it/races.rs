//! Many at once: exact winners, and everyone else with the right reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::json;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::harness::{Answer, TestApp, units};

/// What came of it, by code; of successes by status.
fn count(answers: &[Answer]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for answer in answers {
        let code = match answer.json()["code"].as_str() {
            Some(code) => code.to_owned(),
            None => answer.status.as_u16().to_string(),
        };
        *counts.entry(code).or_insert(0) += 1;
    }
    counts
}

/// So many buyers meet at a barrier, then each asks once.
async fn race<F, Fut>(app: &Arc<TestApp>, buyers: usize, ask: F) -> Vec<Answer>
where
    F: Fn(Arc<TestApp>, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Answer> + Send,
{
    let barrier = Arc::new(Barrier::new(buyers));
    let mut tasks = JoinSet::new();
    for buyer in 0..buyers {
        let (app, barrier, ask) = (Arc::clone(app), Arc::clone(&barrier), ask.clone());
        tasks.spawn(async move {
            barrier.wait().await;
            ask(app, buyer).await
        });
    }
    tasks.join_all().await
}

async fn hold(app: &TestApp, holder: &str, seats: &[&str], key: Option<&str>) -> Answer {
    let body = json!({"holder": holder, "units": units(seats)});
    let mut ask = app.post("/v1/events/hall/holds").by(&app.sell).json(&body);
    if let Some(key) = key {
        ask = ask.key(key);
    }
    ask.send().await
}

async fn of_fifty_buyers_one_gets_the_seat() {
    let app = Arc::new(TestApp::open().await.with_hall(1).await);
    let answers = race(&app, 50, async |app, buyer| {
        hold(&app, &format!("buyer-{buyer}"), &["A-1"], None).await
    });
    let counts = count(&answers.await);
    let expected = [("201".to_owned(), 1), ("unit_unavailable".to_owned(), 49)];
    assert_eq!(counts, BTreeMap::from(expected));
}

async fn overlapping_wishes_are_granted_whole_or_not_at_all() {
    let app = Arc::new(TestApp::open().await.with_hall(1).await);
    let answers = race(&app, 30, async |app, buyer| {
        let pairs = [["A-1", "A-2"], ["A-2", "A-3"], ["A-3", "A-1"]];
        hold(&app, &format!("buyer-{buyer}"), &pairs[buyer % 3], None).await
    });
    assert_eq!(count(&answers.await)["201"], 1);
    let seats = app.get("/v1/events/hall/seats").send().await.json();
    assert_eq!(seats["held"].as_array().unwrap().len(), 2);
}

async fn one_request_sent_many_times_is_one_hold() {
    let app = Arc::new(TestApp::open().await.with_hall(1).await);
    let answers = race(&app, 20, async |app, _| {
        hold(&app, "a", &["A-1"], Some("k")).await
    });
    let answers = answers.await;
    let made: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status.is_success())
        .collect();
    assert_eq!(made.len(), answers.len());
    let fresh = made
        .iter()
        .filter(|answer| answer.header("idempotency-replayed").is_empty());
    assert_eq!(fresh.count(), 1);
    assert!(
        made.iter()
            .all(|answer| answer.json()["id"] == made[0].json()["id"])
    );
}

async fn a_hold_is_confirmed_once() {
    let app = Arc::new(TestApp::open().await.with_hall(1).await);
    let held = app.held("a", &["A-1"]).await;
    let path: Arc<str> = format!("{}/confirm", held.path()).into();
    let answers = race(&app, 20, move |app, buyer| {
        let path = Arc::clone(&path);
        async move {
            app.post(&path)
                .by(&app.sell)
                .key(&format!("k{buyer}"))
                .send()
                .await
        }
    });
    let counts = count(&answers.await);
    let expected = [("201".to_owned(), 1), ("hold_consumed".to_owned(), 19)];
    assert_eq!(counts, BTreeMap::from(expected));
}

async fn many_readers_of_a_large_hall_share_one_snapshot() {
    let app = Arc::new(TestApp::open().await);
    let body = json!({
        "id": "hall", "name": "Arena", "currency": "EUR",
        "chart": {"format": "grid", "rows": 250, "seats_per_row": 200, "category": "Standard"},
        "prices": {"Standard": 4500}, "policy": {"units_per_hold_max": 64, "units_per_holder_max": 100_000},
    });
    app.create(&body).await.expect(StatusCode::CREATED);
    app.held("a", &["A-1", "B-2"]).await;
    let answers = race(&app, 20, async |app, _| {
        app.get("/v1/events/hall/seats").send().await
    })
    .await;
    for answer in &answers {
        let seats = answer.json();
        assert_eq!(
            (&seats["held"], &seats["total"]),
            (&json!(["A-1", "B-2"]), &json!(50_000))
        );
        let length: usize = answer.body.len();
        assert!(length > 0);
    }
}

crate::variant::run_over! {
    [over_http, over_grpc, on_postgres, over_grpc_on_postgres], workers: 2, {
        of_fifty_buyers_one_gets_the_seat,
        overlapping_wishes_are_granted_whole_or_not_at_all,
        one_request_sent_many_times_is_one_hold,
        a_hold_is_confirmed_once,
        many_readers_of_a_large_hall_share_one_snapshot,
    }
}
