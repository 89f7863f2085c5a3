//! Readers that poll: what they are answered, and a crowd of them behind a cache of nginx.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use soldonce_clock::{BootTime, Clock, SystemClock};
use soldonce_server::limits::POLLED_CHANGES_MAX;
use soldonce_server::{AdminRoutes, FeedSettings, PageFeed, ServerSettings};
use soldonce_testkit::proxy::{ProxyKind, ReverseProxy};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::behind_proxies::Client;
use crate::harness::{TestApp, hall, units};
use crate::served::served;

const POLLERS: usize = 5_000;
const CONNECTIONS: usize = 50;
const ROUNDS: usize = 3;
/// Requests a second that they may cost the server.
const COST_MAX: u64 = 20;
/// How old an answer of the cache may be: a second, and a little for the clocks.
const AGE_MAX: Duration = Duration::from_millis(1_050);

#[tokio::test]
async fn frames_are_all_commits_since_and_a_reset_where_they_are_gone() {
    let app = TestApp::open().await.with_hall(2).await;
    let frames = async |query: &str| {
        let path = format!("/v1/events/hall/frames{query}");
        app.get(&path).send().await.expect(StatusCode::OK)
    };
    let body = async |query: &str| {
        let mut body = frames(query).await.json();
        let members = body.as_object_mut().unwrap();
        members.remove("terms");
        members.remove("digest").unwrap();
        body
    };
    app.held("a", &["A-1", "A-2"]).await;
    app.held("b", &["A-3"]).await;
    let answer = frames("?after=0").await;
    assert_eq!(answer.header("cache-control"), "public, max-age=1");
    let (at, seats) = ("2026-12-01T12:00:00.000Z", json!([["A-1", "A-3"]]));
    let changes = json!([{"state": "held", "seats": seats}]);
    assert_eq!(
        body("?after=0").await,
        json!({"from": 1, "seq": 2, "at": at, "changes": changes})
    );
    let nothing = json!({"from": 3, "seq": 2, "at": at, "changes": []});
    assert_eq!(body("?after=2").await, nothing);
    assert_eq!(body("").await, nothing);
    let reset = json!({"from": 3, "seq": 2, "at": at, "changes": [], "reset": true});
    assert_eq!(body("?after=3").await, reset);
    // A snapshot costs less than so many changes.
    let rows = u32::try_from(POLLED_CHANGES_MAX / 10 + 1).unwrap();
    app.create(&hall("big", rows))
        .await
        .expect(StatusCode::CREATED);
    let chart = app.get("/v1/events/big/chart").send().await.json();
    let rows = chart["zones"][0]["rows"].as_array().unwrap().iter();
    let seats = rows.flat_map(|row| row["seats"].as_array().unwrap());
    let all: Vec<Value> = seats.map(|seat| json!({"seat": seat["seat"]})).collect();
    for part in all.chunks(1_500) {
        let block = json!({"units": part, "reason": "closed"});
        let block = app.post("/v1/events/big/block").by(&app.admin).json(&block);
        block.send().await.expect(StatusCode::OK);
    }
    let many = app.get("/v1/events/big/frames?after=0").send().await.json();
    assert_eq!((&many["seq"], &many["reset"]), (&json!(3), &json!(true)));
    for wrong in ["?after=", "?after=x", "?each=true&after=1"] {
        let asked = app.get(&format!("/v1/events/hall/frames{wrong}"));
        asked.send().await.refused(400, "invalid_request");
    }
    let seats = app.get("/v1/events/hall/seats").send().await;
    assert_eq!(seats.header("cache-control"), "public, max-age=1");
}

#[tokio::test]
async fn frames_say_that_the_event_itself_changed() {
    let app = TestApp::open().await.with_hall(1).await;
    let terms = async || {
        let frames = app.get("/v1/events/hall/frames").send().await;
        frames.json()["terms"].as_u64().unwrap()
    };
    let first = terms().await;
    app.held("a", &["A-1"]).await;
    assert_eq!(terms().await, first, "a hold changes nothing but counts");
    let change = json!({"policy": {"sale_opens_at": "2026-12-01T13:00:00Z"}});
    let patch = app.patch("/v1/events/hall").by(&app.admin).json(&change);
    patch.send().await.expect(StatusCode::OK);
    let changed = terms().await;
    assert_ne!(changed, first);
    // Each page would read the event anew, all in that second.
    app.clock.advance(Duration::from_hours(1));
    let event = app.get("/v1/events/hall").send().await;
    assert_eq!(event.json()["on_sale"], true);
    assert_eq!(terms().await, changed, "the sale opens by its time");
}

#[tokio::test]
async fn what_only_keys_may_read_is_kept_by_no_cache() {
    let settings = ServerSettings::default();
    let app = TestApp::start(settings, AdminRoutes::Public).await;
    let app = app.with_hall(1).await;
    for path in ["/v1/events/hall/frames?after=0", "/v1/events/hall/seats"] {
        let answer = app.get(path).by(&app.read).send().await;
        assert_eq!(
            answer.header("cache-control"),
            "private, no-cache",
            "{path}"
        );
        app.get(path).send().await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn the_page_is_told_to_poll() {
    for (page, expected) in [(PageFeed::Stream, false), (PageFeed::Poll, true)] {
        let feed = FeedSettings {
            page,
            ..FeedSettings::default()
        };
        let app = TestApp::open_with(|settings| settings.feed = feed).await;
        let index = app.get("/").send().await.text();
        assert_eq!(
            index.contains("<html data-feed=\"poll\" lang"),
            expected,
            "{index}"
        );
    }
}

/// When each commit was known to be made, by its number from 1.
type Made = Arc<Mutex<Vec<BootTime>>>;

/// Polls for its share of the readers; returns answers that were older than they may be.
async fn poll(address: SocketAddr, made: Made) -> Vec<String> {
    let (mut client, mut wrong) = (Client::of(address), Vec::new());
    let mut known = vec![0_u64; POLLERS / CONNECTIONS];
    for _ in 0..ROUNDS {
        for after in &mut known {
            let asked_at = SystemClock.boot();
            let path = format!("/v1/events/hall/frames?after={after}");
            let (status, text) = client.ask(("GET", &path), "", b"").await.unwrap();
            assert_eq!(status, 200, "{text}");
            let frame: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(frame["from"], *after + 1, "{text}");
            *after = frame["seq"].as_u64().unwrap();
            let missed = made
                .lock()
                .unwrap()
                .get(usize::try_from(*after).unwrap())
                .copied();
            if missed.is_some_and(|missed| asked_at.since(missed) > AGE_MAX) {
                wrong.push(text);
            }
        }
    }
    wrong
}

/// Holds and releases seats until `stop`.
async fn sell(address: SocketAddr, key: String, made: Made, stop: CancellationToken) {
    let mut client = Client::of(address);
    let key = format!("authorization: Bearer {key}\r\n");
    let body = json!({"holder": "a", "units": units(&["A-1"])}).to_string();
    while !stop.is_cancelled() {
        let asked = ("POST", "/v1/events/hall/holds");
        let (status, text) = client.ask(asked, &key, body.as_bytes()).await.unwrap();
        assert_eq!(status, 201, "{text}");
        made.lock().unwrap().push(SystemClock.boot());
        let hold: Value = serde_json::from_str(&text).unwrap();
        let path = format!("/v1/holds/{}", hold["id"].as_str().unwrap());
        let released = client.ask(("DELETE", &path), &key, b"").await.unwrap();
        assert_eq!(released.0, 200);
        made.lock().unwrap().push(SystemClock.boot());
        let pause = SystemClock.boot().plus(Duration::from_millis(20));
        SystemClock.sleep_until(pause).await;
    }
}

async fn asked_of_server(address: SocketAddr) -> u64 {
    let (_, text) = Client::of(address)
        .ask(("GET", "/metrics"), "", b"")
        .await
        .unwrap();
    let lines = text.lines().filter(|line| {
        line.starts_with("soldonce_http_requests_total{") && line.contains("{event}/frames")
    });
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_behind_a_cache_costs_the_server_few_requests() {
    let served = served().await;
    let mut staff = Client::of(served.admin);
    let key = format!("authorization: Bearer {}\r\n", served.key);
    let event = hall("hall", 1).to_string();
    let created = staff
        .ask(("POST", "/v1/events"), &key, event.as_bytes())
        .await;
    assert_eq!(created.unwrap().0, 201);
    let proxy = ReverseProxy::start(ProxyKind::NginxCache, served.public).unwrap();
    let (made, stop) = (Made::default(), CancellationToken::new());
    let mut selling = JoinSet::new();
    selling.spawn(sell(
        served.public,
        served.key.clone(),
        Arc::clone(&made),
        stop.clone(),
    ));
    let (began, before) = (SystemClock.boot(), asked_of_server(served.admin).await);
    let mut pollers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        pollers.spawn(poll(proxy.address(), Arc::clone(&made)));
    }
    let wrong = pollers.join_all().await.concat();
    let seconds = SystemClock.boot().since(began).as_secs() + 1;
    let cost = asked_of_server(served.admin).await - before;
    stop.cancel();
    selling.join_all().await;
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cost > 0, "the cache asks");
    assert!(
        cost <= COST_MAX * (seconds + 1),
        "{cost} requests in {seconds} s"
    );
    served.shutdown.cancel();
}
