//! Answers in fewer bytes.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use serde_json::json;

use crate::harness::{Answer, TestApp};

/// What a hall of 50,000 seats may cost until it is drawn.
const WIRE_BYTES_MAX: usize = 250_000;

async fn get(app: &TestApp, path: &str, accepts: &str) -> Answer {
    let ask = app.get(path).header("accept-encoding", accepts);
    ask.send().await.expect(StatusCode::OK)
}

/// The files that a browser fetches for the first page.
fn files(page: &str) -> BTreeSet<&str> {
    page.split('"')
        .filter(|part| part.starts_with("/assets/"))
        .collect()
}

async fn big_hall() -> TestApp {
    let app = TestApp::open().await;
    let body = json!({
        "id": "hall", "name": "Hall", "currency": "EUR",
        "chart": {"format": "grid", "rows": 250, "seats_per_row": 200, "category": "Standard"},
        "prices": {"Standard": 4500},
    });
    app.create(&body).await.expect(StatusCode::CREATED);
    app
}

#[tokio::test]
async fn a_hall_of_fifty_thousand_seats_is_drawn_from_little() {
    let app = big_hall().await;
    let page = app.get("/").send().await.text();
    let mut sizes = Vec::new();
    for path in ["/", "/v1/events/hall/chart", "/v1/events/hall/seats"] {
        sizes.push((path, get(&app, path, "br").await.body.len()));
    }
    for path in files(&page) {
        sizes.push((path, get(&app, path, "br").await.body.len()));
    }
    let bytes: usize = sizes.iter().map(|(_, bytes)| bytes).sum();
    assert!(bytes <= WIRE_BYTES_MAX, "{bytes}: {sizes:?}");
}

#[tokio::test]
async fn codings_are_told_and_change_nothing_else() {
    let app = TestApp::open().await.with_hall(20).await;
    for path in [
        "/",
        "/assets/js/main.js",
        "/openapi.json",
        "/metrics",
        "/v1/events/hall/chart",
        "/v1/events/hall/seats",
    ] {
        let plain = app.get(path).send().await;
        assert_eq!(plain.header("content-encoding"), "", "{path}");
        assert_eq!(plain.header("vary"), "Accept-Encoding", "{path}");
        for (accepts, told) in [("gzip", "gzip"), ("gzip, br", "br"), ("gzip;q=0", "")] {
            let coded = get(&app, path, accepts).await;
            assert_eq!(coded.header("content-encoding"), told, "{path}");
            assert_eq!(coded.header("vary"), "Accept-Encoding", "{path}");
            assert_eq!(coded.header("etag"), plain.header("etag"), "{path}");
            assert_eq!(
                coded.headers.get_all("content-encoding").iter().count(),
                usize::from(!told.is_empty())
            );
        }
    }
    let small = get(&app, "/healthz", "gzip").await;
    assert_eq!(
        (small.header("content-encoding"), small.header("vary")),
        ("", "")
    );
}

#[tokio::test]
async fn a_file_is_asked_for_once_in_a_build() {
    let app = TestApp::open().await;
    let page = app.get("/").send().await;
    assert_eq!(page.header("cache-control"), "no-cache");
    let text = page.text();
    let files = files(&text);
    assert!(
        files.iter().any(|file| file.ends_with("/js/all.js")),
        "{files:?}"
    );
    assert!(
        files.len() < 8,
        "few files, since each costs a turn: {files:?}"
    );
    let all = files
        .iter()
        .find(|file| file.ends_with("/js/all.js"))
        .unwrap();
    let all = app.get(all).send().await.text();
    for part in ["class Holding ", "class Painter ", "class Hall "] {
        assert_eq!(all.matches(part).count(), 1, "{part}");
    }
    for file in files {
        let kept = app.get(file).send().await.expect(StatusCode::OK);
        assert_eq!(
            kept.header("cache-control"),
            "public, max-age=31536000, immutable"
        );
    }
    let of_another_build = app.get("/assets/0000/js/main.js").send().await;
    let of_another_build = of_another_build.expect(StatusCode::OK);
    assert_eq!(of_another_build.header("cache-control"), "no-store");
    let unnamed = app.get("/assets/js/main.js").send().await;
    assert_eq!(unnamed.header("cache-control"), "no-cache");
    app.get("/assets/nope")
        .send()
        .await
        .refused(404, "not_found");
}
