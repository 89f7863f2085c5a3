//! Sends one request over and over into the router, without a socket, so that instructions can be
//! counted: they do not drift with the machine's load as times do.
//!
//! ```text
//! cargo build --release -p soldonce-server --example instructions
//! valgrind --tool=callgrind target/release/examples/instructions refusal 11000
//! ```
//!
//! Two counts, such as 1000 and 11000, and their difference leave the start out. `echo` is the
//! ceiling: a body of a hold's size read and answered by axum alone. The ledger is a folder in the
//! system's temporary one, and stays there.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::routing::post;
use axum::{Json, Router};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use soldonce_clock::{BootTime, Clock, SeededEntropy, SleepFuture};
use soldonce_core::Text;
use soldonce_engine::keys::Scope;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::{Engine, World};
use soldonce_server::{AdminRoutes, ServerSettings, routers};
use tokio_util::sync::CancellationToken;
use tower::Service;

const PATH: &str = "/v1/events/hamlet-1/holds";
const WISH: &str = r#"{"holder":"user-42","units":[{"seat":"E-10"}],"ttl_ms":300000}"#;
const EVENT: &str = r#"{"id":"hamlet-1","name":"Hamlet","currency":"EUR","prices":{"Standard":4500},
    "chart":{"format":"grid","rows":10,"seats_per_row":20,"category":"Standard"}}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    holder: String,
    units: Vec<Unit>,
    ttl_ms: u64,
}

#[derive(Deserialize, Serialize)]
struct Unit {
    seat: String,
}

#[derive(Serialize)]
struct Answer {
    id: &'static str,
    secret: &'static str,
    event: &'static str,
    holder: String,
    state: &'static str,
    units: Vec<Unit>,
    total: u64,
    currency: &'static str,
    created_at: &'static str,
    expires_at: &'static str,
    max_expires_at: &'static str,
    server_time: &'static str,
}

async fn echo(Json(wish): Json<Wish>) -> Json<Answer> {
    let time = "2026-12-01T19:30:00.000Z";
    Json(Answer {
        id: "hld_01m7xssjpt025k6b8rnk581fzc",
        secret: "hs_3zhhc6r8bqmjbdnnc5ywtdm8kz",
        event: "hamlet-1",
        holder: wish.holder,
        state: "active",
        units: wish.units,
        total: wish.ttl_ms,
        currency: "EUR",
        created_at: time,
        expires_at: time,
        max_expires_at: time,
        server_time: time,
    })
}

fn request(path: &'static str, key: &str, body: &'static str) -> Request<Body> {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = path.parse().expect("a path");
    let headers = request.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:8080"));
    let bearer = HeaderValue::try_from(format!("Bearer {key}"));
    headers.insert(header::AUTHORIZATION, bearer.expect("a key is plain text"));
    request
}

async fn send(router: &mut Router, request: Request<Body>) -> StatusCode {
    let answer = match router.call(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    let status = answer.status();
    let body = answer.into_body().collect().await;
    assert!(body.is_ok_and(|body| !body.to_bytes().is_empty()));
    status
}

/// A clock that stands still: valgrind cannot follow readings of the real one.
struct Frozen;

impl Clock for Frozen {
    fn wall_ms(&self) -> i64 {
        1_796_126_400_000
    }

    fn boot(&self) -> BootTime {
        BootTime::default()
    }

    fn sleep_until(&self, _: BootTime) -> SleepFuture<'_> {
        Box::pin(std::future::pending())
    }
}

/// A server with an event, and its admin key.
async fn server() -> (Router, String) {
    let world = World {
        clock: Arc::new(Frozen),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    let metrics = Arc::new(Metrics::default());
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let (clock, observer) = (Arc::clone(&world.clock), Arc::clone(&live));
    let folder = format!("soldonce-instructions-{}", std::process::id());
    let options = SqliteOptions::new(std::env::temp_dir().join(folder));
    let ledger = SqliteLedger::open(&options, clock, &*world.entropy, observer);
    let ledger = Arc::new(ledger.expect("a new folder takes a ledger"));
    let engine = Engine::new(ledger, live, metrics, world).await;
    let engine = engine.expect("an empty ledger opens");
    let name = Text::parse("admin").expect("a legal name");
    let made = engine.create_key(name, vec![Scope::Admin]).await;
    let (_, key) = made.expect("an empty ledger takes a key");
    let (settings, shutdown) = (ServerSettings::default(), CancellationToken::new());
    let routers = routers(engine, settings, AdminRoutes::Public, shutdown);
    let mut router = routers.public.with_state(());
    let created = send(&mut router, request("/v1/events", &key, EVENT)).await;
    assert_eq!(created, StatusCode::CREATED);
    (router, key)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "refusal".to_owned());
    let times: u32 = arguments
        .next()
        .map_or(1_000, |times| times.parse().expect("a number"));
    let (mut router, key) = server().await;
    let wanted = match &*what {
        "echo" => {
            router = Router::new()
                .route("/v1/events/{event}/holds", post(echo))
                .with_state(());
            StatusCode::OK
        }
        "refusal" => {
            let first = r#"{"holder":"first","units":[{"seat":"E-10"}]}"#;
            send(&mut router, request(PATH, &key, first)).await;
            StatusCode::CONFLICT
        }
        // The own hold again: to the ledger and back, with a hold's answer.
        _ => {
            send(&mut router, request(PATH, &key, WISH)).await;
            StatusCode::OK
        }
    };
    for _ in 0..times {
        let status = send(&mut router, request(PATH, &key, WISH)).await;
        assert_eq!(status, wanted);
    }
}
