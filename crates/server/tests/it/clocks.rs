//! A ledger whose clock is ahead of the wall clock, as users and operators meet it.

use std::time::Duration;

use axum::http::StatusCode;
use soldonce_engine::run_sweeper;
use soldonce_testkit::{PATIENCE, log, until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::harness::{NOON, TestApp};

const MINUTE_MS: i64 = 60_000;

/// Sweeps on a clock that goes on until the log says so, behind what it had said before.
fn sweep_until_told(app: &TestApp, words: &str, before: usize) {
    let look = || {
        app.clock.advance(Duration::from_millis(100));
        let lines = log::lines();
        lines.iter().skip(before).any(|line| line.contains(words))
    };
    until(words, PATIENCE, look).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_ahead_is_told_everywhere_by_how_far_it_is() {
    let app = TestApp::open().await.with_hall(1).await;
    let end = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(run_sweeper(app.engine.clone(), end.clone()));
    let ready = async || {
        app.get("/readyz")
            .send()
            .await
            .expect(StatusCode::OK)
            .json()
    };
    assert_eq!(ready().await, serde_json::json!({"status": "ready"}));
    for (minutes, state, words) in [
        (5, "ahead", "the ledger's clock is ahead"),
        (300, "far_ahead", "`soldonce clock correct`"),
    ] {
        // Both follow the step forward; only one of them follows the step back.
        app.clock.step_wall(NOON + minutes * MINUTE_MS);
        app.held("ann", &[if minutes == 5 { "A-1" } else { "A-2" }])
            .await;
        let before = log::lines().len();
        app.clock.step_wall(NOON);
        sweep_until_told(&app, words, before);
        let said = ready().await;
        assert_eq!(said["clock"], state, "{said}");
        let ahead = said["clock_ahead_ms"].as_i64().unwrap();
        assert!((1..=minutes * MINUTE_MS).contains(&ahead), "{ahead}");
        let metrics = app.get("/metrics").send().await.expect(StatusCode::OK);
        let text = metrics.text();
        let line = text
            .lines()
            .find(|line| line.starts_with("soldonce_ledger_clock_ahead_seconds "))
            .unwrap();
        let seconds: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert!(seconds > 60.0, "{line}");
    }
    let before = log::lines().len();
    // They meet after twice the step.
    let meet = 2 * app.engine.now().ms() - app.engine.wall_now().ms();
    app.clock.step_wall(meet);
    sweep_until_told(&app, "are one again", before);
    assert_eq!(ready().await, serde_json::json!({"status": "ready"}));
    end.cancel();
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_clock_was_never_set_is_said_to_be_wrong() {
    let app = TestApp::open().await.with_hall(1).await;
    let end = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(run_sweeper(app.engine.clone(), end.clone()));
    app.held("ann", &["A-1"]).await;
    let before = log::lines().len();
    app.clock.step_wall(0);
    sweep_until_told(&app, "this machine's clock is wrong", before);
    end.cancel();
    tasks.join_all().await;
}
