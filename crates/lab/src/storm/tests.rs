//! Storms against a server in this process, and against one that gives every seat to every user.

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use serde_json::json;
use soldonce_core::Text;
use soldonce_engine::Engine;
use soldonce_engine::keys::Scope;
use soldonce_engine::rate::Quota;
use soldonce_server::{
    AcceptLimits, Access, AdminRoutes, RateLimits, ServerSettings, routers, serve,
};
use soldonce_testkit::TempFolder;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;

/// A server on a port of its own, gone with its value.
struct Server {
    url: String,
    _tasks: JoinSet<()>,
    /// Of the ledger, if it has one.
    _folder: Option<TempFolder>,
}

impl Server {
    async fn serving(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        let limits = AcceptLimits::default();
        tasks.spawn(async move {
            serve(listener, router, limits, CancellationToken::new()).await;
        });
        Self {
            url,
            _tasks: tasks,
            _folder: None,
        }
    }

    /// Starts the product, open to shoppers. Returns its admin key, too.
    async fn real() -> (Self, String) {
        let folder = TempFolder::new().unwrap();
        let engine = Engine::open_folder(folder.path()).await.unwrap();
        let name = Text::parse("admin").unwrap();
        let (_, key) = engine.create_key(name, vec![Scope::Admin]).await.unwrap();
        let settings = ServerSettings {
            shoppers: Access::Open,
            rates: RateLimits {
                commands: Quota::new(10, 3_600).ok(),
                ..RateLimits::default()
            },
            ..ServerSettings::default()
        };
        let stop = CancellationToken::new();
        let made = routers(engine, settings, AdminRoutes::Public, stop);
        let server = Self {
            _folder: Some(folder),
            ..Self::serving(made.public).await
        };
        (server, key)
    }
}

const SIZE: Size = Size {
    users: 20,
    seconds: 4,
    seats: 3,
};

fn args(server: &Server, admin_key: Option<String>) -> StormArgs {
    StormArgs {
        url: server.url.clone(),
        admin_key,
        transport: vec![Transport::Http],
        size: SIZE,
        peer: None,
        runs: 1,
        cluster: false,
        json: false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_seat_is_won_once_and_everybody_is_answered() {
    let (server, key) = Server::real().await;
    let (report, given_back) = storm(&args(&server, Some(key.clone())), (Transport::Http, SIZE))
        .await
        .unwrap();
    given_back.unwrap();
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!((report.winners, report.unaccounted), (3, 0));
    let statuses: Vec<_> = report.load.statuses.keys().copied().collect();
    assert_eq!(statuses, [201, 409]);
    assert!(report.load.errors.is_empty(), "{:?}", report.load.errors);
    let text = report.text();
    assert!(
        text.contains("201 won") && text.contains("winners 3, held 3"),
        "{text}"
    );
    let admin = Client::new(&server.url, &key).unwrap();
    let events = admin.send(Method::GET, "/v1/events", None).await.unwrap();
    let left = &events.into_success().unwrap()["events"];
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["state"], "cancelled");
    let path = format!("/v1/events/{}/seats", left[0]["id"].as_str().unwrap());
    let seats = admin.send(Method::GET, &path, None).await.unwrap();
    assert_eq!(seats.into_success().unwrap()["held"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_grpc_each_seat_is_won_once_too_and_both_are_warmed_up_first() {
    let (server, key) = Server::real().await;
    let args = StormArgs {
        transport: vec![Transport::Http, Transport::Grpc],
        ..args(&server, Some(key.clone()))
    };
    let (reports, given_back) = storms(&args).await.unwrap();
    given_back.unwrap();
    let admin = Client::new(&server.url, &key).unwrap();
    let events = admin.send(Method::GET, "/v1/events", None).await.unwrap();
    let events = &events.into_success().unwrap()["events"];
    assert_eq!(events.as_array().unwrap().len(), 4, "one for each storm");
    let report = &reports[1];
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!((report.winners, report.unaccounted), (3, 0));
    assert!(report.load.count(9) > 100, "{:?}", report.load.statuses);
    let both = StormReports::new(reports);
    let text = both.text();
    assert!(
        text.contains("0 won") && text.contains("9 taken by another"),
        "{text}"
    );
    assert!(
        text.contains("P22  storm, answers a second: gRPC / HTTP"),
        "{text}"
    );
    let cpu = text.matches("generator CPU in us per request: ");
    assert_eq!(cpu.count(), 2, "{text}");
    assert_eq!(both.violations(), 0);
}

/// Puts the one event on the list of shoppers: a storm's own event is not on it.
async fn list_it(admin: &Client) {
    let events = admin.send(Method::GET, "/v1/events", None).await.unwrap();
    let id = &events.into_success().unwrap()["events"][0]["id"];
    let path = format!("/v1/events/{}", id.as_str().unwrap());
    let listed = json!({"policy": {"listed": true}});
    let changed = admin.send(Method::PATCH, &path, Some(&listed)).await;
    changed.unwrap().into_success().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_sessions_want_seats_meet_the_limits_and_give_back() {
    let (server, key) = Server::real().await;
    let fixture = Client::new(&server.url, &key).unwrap();
    let none = storm(&args(&server, None), (Transport::Http, SIZE))
        .await
        .unwrap_err();
    assert!(
        none.to_string().contains("no event has 3 free seats"),
        "{none}"
    );
    let made = Fixture::make(fixture.clone(), &key, 5).await.unwrap();
    list_it(&fixture).await;
    let (report, given_back) = storm(&args(&server, None), (Transport::Http, SIZE))
        .await
        .unwrap();
    given_back.unwrap();
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.winners, 3);
    let statuses: Vec<_> = report.load.statuses.keys().copied().collect();
    assert_eq!(statuses, [200, 201, 409, 429]);
    assert_eq!(
        made.held().await.unwrap(),
        3,
        "a buyer without commands left gives nothing back"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sells_twice_is_caught() {
    let made = || async { (StatusCode::CREATED, axum::Json(json!({}))) };
    let seats = || async { axum::Json(json!({"held": ["A-1", "A-2", "A-3"]})) };
    let router = Router::new()
        .route("/v1/events", post(made))
        .route("/v1/events/{event}/holds", post(made))
        .route("/v1/events/{event}/seats", get(seats));
    let server = Server::serving(router).await;
    let (report, given_back) = storm(
        &args(&server, Some("sk_any".to_owned())),
        (Transport::Http, SIZE),
    )
    .await
    .unwrap();
    let why = format!("{:#}", given_back.unwrap_err());
    assert!(why.contains("not given back"), "{why}");
    assert!(report.winners > 3);
    assert_eq!(report.violations.len(), 2, "{:?}", report.violations);
    assert!(report.text().contains("VIOLATION"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_sells_nothing_or_fails_is_caught() {
    for status in [StatusCode::CONFLICT, StatusCode::BAD_GATEWAY] {
        let made = || async { (StatusCode::CREATED, axum::Json(json!({}))) };
        let refused = move || async move { (status, axum::Json(json!({}))) };
        let seats = || async { axum::Json(json!({"held": []})) };
        let router = Router::new()
            .route("/v1/events", post(made))
            .route("/v1/events/{event}/holds", post(refused))
            .route("/v1/events/{event}/seats", get(seats));
        let server = Server::serving(router).await;
        let stormed = storm(
            &args(&server, Some("sk_any".to_owned())),
            (Transport::Http, SIZE),
        )
        .await;
        let violations = stormed.unwrap().0.violations.join("; ");
        assert!(violations.contains("0 winners of 3 seats"), "{violations}");
        let is_odd = violations.contains("answers of status 502");
        assert_eq!(is_odd, status == StatusCode::BAD_GATEWAY, "{violations}");
    }
}
