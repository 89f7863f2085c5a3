//! The server without a socket: requests enter the real router. Dropping it judges: no unit may have
//! been sold twice, and no secret may stand in the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use soldonce_clock::{Clock, Entropy, ManualClock, SeededEntropy};
use soldonce_core::Text;
use soldonce_engine::keys::Scope;
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::sqlite::verify::verify;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::{Engine, World};
use soldonce_server::{Access, AdminRoutes, Peer, ServerSettings, routers};
use soldonce_testkit::{TempFolder, log};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::database::Database;
use crate::variant::{self, Store, Transport};
use crate::{openapi, over_grpc};

/// When every test begins: 2026-12-01T12:00:00Z.
pub(crate) const NOON: i64 = 1_796_126_400_000;

/// What goes with its test.
enum Storage {
    Folder(TempFolder),
    Database(Database),
}

/// A server for one test.
pub(crate) struct TestApp {
    pub(crate) router: Router,
    pub(crate) admin_router: Option<Router>,
    pub(crate) engine: Engine,
    pub(crate) clock: ManualClock,
    pub(crate) shutdown: CancellationToken,
    /// Keys with one scope each.
    pub(crate) admin: String,
    pub(crate) sell: String,
    pub(crate) read: String,
    pub(crate) lease: String,
    pub(crate) transport: Transport,
    secrets: Mutex<Vec<String>>,
    kept: Storage,
}

impl TestApp {
    /// Open to shoppers, who confirm without a payment.
    pub(crate) async fn open() -> Self {
        let app = Self::open_with(|_| {}).await;
        drop(app.engine.clone().with_free_sales());
        app
    }

    /// The same with other settings, and without free sales.
    pub(crate) async fn open_with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        let mut settings = ServerSettings {
            shoppers: Access::Open,
            ..ServerSettings::default()
        };
        change(&mut settings);
        Self::start(settings, AdminRoutes::Public).await
    }

    /// Starts it in the variant of the test that runs, which a spawned task does not know.
    pub(crate) async fn start(settings: ServerSettings, routes: AdminRoutes) -> Self {
        static SEED: AtomicU64 = AtomicU64::new(1);
        log::capture();
        let (transport, store) = variant::current();
        let clock = ManualClock::at(NOON);
        let seed = SEED.fetch_add(1, Ordering::Relaxed) << 32 | u64::from(std::process::id());
        let entropy: Arc<dyn Entropy> = Arc::new(SeededEntropy::new(seed));
        let metrics = Arc::new(Metrics::default());
        let live = Arc::new(Live::new(Arc::clone(&metrics)));
        let (ledger, kept) = open_ledger(store, &clock, &*entropy, Arc::clone(&live)).await;
        let world = World {
            clock: Arc::new(clock.clone()),
            entropy,
        };
        let engine = Engine::new(ledger, live, metrics, world).await.unwrap();
        let key = async |scope: Scope| {
            let name = Text::parse(scope.as_str()).unwrap();
            engine.create_key(name, vec![scope]).await.unwrap().1
        };
        let (admin, sell) = (key(Scope::Admin).await, key(Scope::Sell).await);
        let (read, lease) = (key(Scope::Read).await, key(Scope::Lease).await);
        let shutdown = CancellationToken::new();
        let made = routers(engine.clone(), settings, routes, shutdown.clone());
        Self {
            router: made.public,
            admin_router: made.admin,
            secrets: Mutex::new([&admin, &sell, &read, &lease].map(String::clone).to_vec()),
            engine,
            clock,
            shutdown,
            admin,
            sell,
            read,
            lease,
            transport,
            kept,
        }
    }

    /// Waits until what is shown of events has every commit: a database numbers them later.
    pub(crate) async fn settle(&self) {
        if let Storage::Database(database) = &self.kept {
            database.settle(&self.engine).await;
        }
    }

    /// What a command answers here: `seq` where commits are numbered by then.
    pub(crate) fn answer(&self, mut expected: Value) -> Value {
        if matches!(self.kept, Storage::Database(_)) {
            expected.as_object_mut().unwrap().remove("seq");
        }
        expected
    }

    /// With an event `hall` of rows of ten seats.
    pub(crate) async fn with_hall(self, rows: u32) -> Self {
        self.with_event(&hall("hall", rows)).await
    }

    pub(crate) async fn with_event(self, event: &Value) -> Self {
        self.create(event).await.expect(StatusCode::CREATED);
        self
    }

    pub(crate) async fn create(&self, event: &Value) -> Answer {
        let ask = self.post("/v1/events").by(&self.admin);
        ask.json(event).send().await
    }

    /// A fresh shopper's session token.
    pub(crate) async fn shopper(&self) -> String {
        let opened = self
            .post("/v1/sessions")
            .send()
            .await
            .expect(StatusCode::CREATED);
        opened.json()["session"].as_str().unwrap().to_owned()
    }

    /// The same from this address.
    pub(crate) async fn shopper_at(&self, address: &str) -> String {
        let peer = format!("{address}:4000").parse().unwrap();
        let asked = self.post("/v1/sessions").with(Peer(peer)).send().await;
        let opened = asked.expect(StatusCode::CREATED);
        opened.json()["session"].as_str().unwrap().to_owned()
    }

    /// A hold of seats of `hall` by the selling key.
    pub(crate) async fn held(&self, holder: &str, seats: &[&str]) -> Held {
        let body = json!({"holder": holder, "units": units(seats)});
        let held = self.hold(&self.sell, &body).await;
        Held::of(&held.expect(StatusCode::CREATED))
    }

    /// Asks for a hold of units of `hall`.
    pub(crate) async fn hold(&self, token: &str, wish: &Value) -> Answer {
        let ask = self.post("/v1/events/hall/holds").by(token);
        ask.json(wish).send().await
    }

    /// The booking of a hold, by the selling key.
    pub(crate) async fn booked(&self, held: &Held) -> Value {
        self.booked_by(&self.sell, held).await
    }

    /// The booking of a hold, by its own caller.
    pub(crate) async fn booked_by(&self, token: &str, held: &Held) -> Value {
        let confirm = self.post(&format!("{}/confirm", held.path()));
        let confirm = confirm.by(token).key(&held.id);
        confirm.send().await.expect(StatusCode::CREATED).json()
    }

    pub(crate) fn get(&self, path: &str) -> Ask<'_> {
        self.ask(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str) -> Ask<'_> {
        self.ask(Method::POST, path)
    }

    pub(crate) fn patch(&self, path: &str) -> Ask<'_> {
        self.ask(Method::PATCH, path)
    }

    pub(crate) fn delete(&self, path: &str) -> Ask<'_> {
        self.ask(Method::DELETE, path)
    }

    pub(crate) fn ask(&self, method: Method, path: &str) -> Ask<'_> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        Ask { app: self, request }
    }

    /// From now on this must not stand in the log.
    pub(crate) fn keep_secret(&self, text: &str) {
        self.secrets.lock().unwrap().push(text.to_owned());
    }

    pub(crate) fn learn(&self, body: &[u8]) {
        let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
            return;
        };
        for name in ["secret", "session", "key"] {
            if let Some(Value::String(text)) = body.get(name) {
                self.keep_secret(text);
            }
        }
    }
}

async fn open_ledger(
    store: Store,
    clock: &ManualClock,
    entropy: &dyn Entropy,
    live: Arc<Live>,
) -> (Arc<dyn Ledger>, Storage) {
    if store == Store::Postgres {
        let (ledger, database) = Database::open(clock, entropy, live).await;
        return (ledger, Storage::Database(database));
    }
    let folder = TempFolder::new().unwrap();
    let options = SqliteOptions::new(folder.path());
    let time: Arc<dyn Clock> = Arc::new(clock.clone());
    let ledger = SqliteLedger::open(&options, time, entropy, live).unwrap();
    (Arc::new(ledger), Storage::Folder(folder))
}

impl Drop for TestApp {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return; // show the first failure, not the second
        }
        let violations: Vec<String> = match &self.kept {
            Storage::Folder(folder) => {
                let report = verify(folder.path(), &mut |_| {}).unwrap();
                let found = report.findings.iter();
                found.map(|finding| format!("{finding:?}")).collect()
            }
            Storage::Database(database) => database.violations(),
        };
        assert!(
            violations.is_empty(),
            "the history is wrong: {violations:#?}"
        );
        let secrets = self.secrets.lock().unwrap();
        for line in log::lines() {
            let told = secrets.iter().find(|secret| line.contains(&***secret));
            assert!(told.is_none(), "a secret stands in the log: {line}");
        }
    }
}

/// A request that is being put together.
pub(crate) struct Ask<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) request: Request<Body>,
}

/// A request that is about what only HTTP has.
#[derive(Clone, Copy)]
pub(crate) struct AsHttp;

impl Ask<'_> {
    /// Over HTTP in any case.
    pub(crate) fn over_http(self) -> Self {
        self.with(AsHttp)
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.request
            .headers_mut()
            .append(name, value.parse().unwrap());
        self
    }

    /// With an API key or a session.
    pub(crate) fn by(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    pub(crate) fn secret(self, secret: &str) -> Self {
        self.header("hold-secret", secret)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string())
    }

    pub(crate) fn body(mut self, media: &str, body: impl Into<Body>) -> Self {
        *self.request.body_mut() = body.into();
        self.header("content-type", media)
    }

    pub(crate) fn with<T: Clone + Send + Sync + 'static>(mut self, extension: T) -> Self {
        self.request.extensions_mut().insert(extension);
        self
    }

    /// The answer before its body is read.
    pub(crate) async fn start(self) -> Response<Body> {
        self.app.router.clone().oneshot(self.request).await.unwrap()
    }

    pub(crate) async fn send(self) -> Answer {
        let shows_events = self.request.uri().path().starts_with("/v1/events");
        if self.request.method() == Method::GET && shows_events {
            self.app.settle().await;
        }
        match self.app.transport {
            Transport::Http => self.send_as_it_is().await,
            Transport::Grpc => match over_grpc::call::send(self).await {
                Ok(answer) => answer,
                Err(ask) => ask.send_as_it_is().await,
            },
        }
    }

    async fn send_as_it_is(self) -> Answer {
        let app = self.app;
        let (method, path) = (
            self.request.method().clone(),
            self.request.uri().path().to_owned(),
        );
        let (parts, body) = self.start().await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        app.learn(&body);
        if let Ok(json) = serde_json::from_slice(&body) {
            let wrong = openapi::judge(method.as_str(), &path, parts.status, &json);
            assert!(
                wrong.is_none(),
                "{method} {path} is not as described: {wrong:?}\n{json:#}"
            );
        }
        assert!(parts.headers.contains_key("request-id"));
        Answer {
            status: parts.status,
            headers: parts.headers,
            body,
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: StatusCode) -> Self {
        // A call that succeeds does not say how.
        let is_as_good = self.headers.contains_key("grpc-status") && self.status.is_success();
        if !(is_as_good && status.is_success()) {
            assert_eq!(self.status, status, "{}", self.text());
        }
        self
    }

    /// Passes a problem with this code.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Value {
        let problem = self.json();
        assert_eq!(
            (self.status.as_u16(), &problem["code"]),
            (status, &json!(code)),
            "{problem:#}"
        );
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(problem["status"], status);
        problem
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// A hold as its maker knows it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) body: Value,
}

impl Held {
    pub(crate) fn of(answer: &Answer) -> Self {
        let body = answer.json();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        Self {
            id: text("id"),
            secret: text("secret"),
            body,
        }
    }

    pub(crate) fn path(&self) -> String {
        format!("/v1/holds/{}", self.id)
    }
}

/// Seats as a request names them.
pub(crate) fn units(seats: &[&str]) -> Value {
    seats.iter().map(|seat| json!({"seat": seat})).collect()
}

/// An event with rows of ten seats.
pub(crate) fn hall(id: &str, rows: u32) -> Value {
    json!({
        "id": id, "name": "Hall", "currency": "EUR",
        "chart": {"format": "grid", "rows": rows, "seats_per_row": 10, "category": "Standard"},
        "prices": {"Standard": 4500},
    })
}

/// An event `hall` with two seats and an area `floor` of 20 places.
pub(crate) fn hall_with_floor() -> Value {
    json!({
        "id": "hall", "name": "Hall", "currency": "EUR",
        "chart": {
            "format": "seats",
            "seats": [{"seat": "A-1", "category": "Seated"}, {"seat": "A-2", "category": "Seated"}],
            "areas": [{"area": "floor", "capacity": 20, "category": "Standing"}],
        },
        "prices": {"Seated": 4500, "Standing": 3000},
    })
}
