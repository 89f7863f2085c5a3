//! The codes that the description lists: each is provoked in each operation that lists it, and each example of a
//! body is taken.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a scene or a change is of some parts of a request and leaves the others"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};
use soldonce_engine::rate::Quota;
use soldonce_engine::webhook::{EndpointId, Kinds};
use soldonce_server::{AdminRoutes, RateLimits, ServerSettings};

use crate::harness::{Answer, Held, TestApp, hall_with_floor, units};
use crate::openapi::document;
use crate::payments::Shop;

/// Only a fault of the ledger, the provider or the network brings them: the tests of faults do.
const FAULTS: [&str; 10] = [
    "internal_error",
    "overloaded",
    "read_only",
    "outcome_unknown",
    "memory_mismatch",
    "shutting_down",
    "request_timeout",
    "payment_refused",
    "payment_unavailable",
    "leases_unavailable",
];

/// Operations whose examples need another scene than the plain one.
const NOT_PLAIN: [&str; 5] = [
    "abandon_checkout",
    "refund_booking",
    "renew_lease",
    "stripe_notice",
    "unblock",
];

/// An operation as it is described.
struct Operation {
    id: String,
    method: String,
    path: String,
    admission: String,
    example: Option<Value>,
    codes: BTreeSet<String>,
}

fn operations() -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, methods) in document()["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            let text = |name: &str| described[name].as_str().unwrap().to_owned();
            let media = &described["requestBody"]["content"]["application/json"];
            let responses = described["responses"].as_object().unwrap().values();
            let codes = responses.filter_map(|response| response["x-codes"].as_array());
            found.push(Operation {
                id: text("operationId"),
                method: method.to_ascii_uppercase(),
                path: path.clone(),
                admission: text("x-admission"),
                example: media.get("example").cloned(),
                codes: codes
                    .flatten()
                    .map(|code| code.as_str().unwrap().to_owned())
                    .collect(),
            });
        }
    }
    found
}

/// What was done before an operation is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    Plain,
    Released,
    Expired,
    Consumed,
    Revoked,
    /// Its payment is under way.
    Pinned,
    /// It cannot be extended any further.
    Capped,
    SaleClosed,
    NoOrphans,
    SmallBudget,
    /// The booking is cancelled.
    GivenBack,
    /// The booking waits for its payment.
    Unpaid,
    /// The booking is paid.
    Paid,
    CancelClosed,
    /// The hold costs more than the line that is given back.
    Dearer,
    /// The event is over, and a payment of it is not.
    InUse,
    Dropped,
}

const SCENES: [Scene; 17] = [
    Scene::Plain,
    Scene::Released,
    Scene::Expired,
    Scene::Consumed,
    Scene::Revoked,
    Scene::Pinned,
    Scene::Capped,
    Scene::SaleClosed,
    Scene::NoOrphans,
    Scene::SmallBudget,
    Scene::GivenBack,
    Scene::Unpaid,
    Scene::Paid,
    Scene::CancelClosed,
    Scene::Dearer,
    Scene::InUse,
    Scene::Dropped,
];

/// How a request differs from the example.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    UnknownToken,
    WrongScope,
    OtherOrigin,
    Query,
    Media,
    TooLarge,
    NoKey,
    KeyAgain,
    StaleFence,
    OtherName,
    /// What it names by an id of this kind is not there.
    Missing(&'static str),
    Wants(&'static [&'static str]),
    /// Gives lines of the booking back for the hold.
    GivesBack,
}

const PLACES: &[&str] = &[
    "A-3", "A-4", "A-5", "A-6", "A-7", "A-8", "A-9", "A-10", "B-1", "B-2", "B-3",
];
const CHOICES: [Change; 5] = [
    Change::Wants(&["Z-99"]),
    Change::Wants(PLACES),
    Change::Wants(&["A-2"]),
    Change::Wants(&["A-9"]),
    Change::Wants(&["C-1", "C-2", "C-3"]),
];
const IN_ALL: [Change; 2] = [Change::Nothing, Change::GivesBack];
const IN_PLAIN: [Change; 18] = [
    Change::UnknownToken,
    Change::WrongScope,
    Change::OtherOrigin,
    Change::Query,
    Change::Media,
    Change::TooLarge,
    Change::NoKey,
    Change::StaleFence,
    Change::OtherName,
    Change::Missing("event"),
    Change::Missing("hold"),
    Change::Missing("booking"),
    Change::Missing("unit"),
    Change::Missing("key"),
    Change::Missing("endpoint"),
    Change::Missing("message"),
    Change::Missing("code"),
    Change::Missing("path"),
];

fn changes(scene: Scene) -> Vec<Change> {
    let mut all = IN_ALL.to_vec();
    match scene {
        Scene::Plain => {
            all.extend(IN_PLAIN);
            all.extend(CHOICES);
            all.push(Change::KeyAgain);
        }
        Scene::SaleClosed | Scene::NoOrphans | Scene::SmallBudget => all.extend(CHOICES),
        Scene::Paid | Scene::Pinned => all.push(Change::KeyAgain),
        Scene::Dropped => all.push(Change::OtherName),
        _ => {}
    }
    all
}

struct Stage {
    shop: Shop,
    hold: Held,
    /// Things by the names that paths have for them.
    ids: BTreeMap<&'static str, String>,
}

impl Stage {
    async fn set(scene: Scene) -> Self {
        let shop = Shop::open().await;
        let app = &shop.app;
        let made = app
            .engine
            .add_endpoint("https://example.org/", Kinds::ALL, None);
        let endpoint = EndpointId::from_bytes(made.await.unwrap().stored.subject);
        let hold = app.held("ann", &["A-1"]).await;
        let sale = json!({"holder": "ann", "units": units(&["A-2"])});
        let sale = app.post("/v1/events/hall/sales").json(&sale);
        let sold = sale.by(&app.sell).key("sale").send().await;
        let booking = sold.expect(StatusCode::CREATED).json();
        let log = app.engine.deliveries(endpoint, None, 1).await;
        let reader = app.engine.keys();
        let reader = reader.iter().find(|key| key.name.as_str() == "read");
        let ids = BTreeMap::from([
            ("event", "hall".to_owned()),
            ("hold", hold.id.clone()),
            ("booking", booking["id"].as_str().unwrap().to_owned()),
            ("unit", "A-1".to_owned()),
            ("key", reader.unwrap().id.to_string()),
            ("endpoint", endpoint.to_string()),
            ("message", log.unwrap().unwrap()[0].message.to_string()),
            ("code", "hold-expired".to_owned()),
            ("path", "js/main.js".to_owned()),
            ("name", "job".to_owned()),
        ]);
        let mut stage = Self { shop, hold, ids };
        stage.act(scene).await;
        stage
    }

    async fn act(&mut self, scene: Scene) {
        let hold = self.hold.path();
        match scene {
            Scene::Plain => {}
            Scene::Released => self.done("DELETE", &hold, Value::Null).await,
            Scene::Expired => {
                let hour = Duration::from_hours(1);
                self.shop.app.clock.advance(hour);
            }
            Scene::Consumed => {
                let confirm = format!("{hold}/confirm");
                self.done("POST", &confirm, json!({})).await;
            }
            Scene::Revoked => {
                let revoke = format!("{hold}/revoke");
                self.done("POST", &revoke, json!({"reason": "x"})).await;
            }
            Scene::Pinned => {
                self.shop.checkout(&self.hold).await;
            }
            Scene::Capped => {
                self.policy("hold_max_ms", 600_000).await;
                self.choose(&["A-3"]).await;
            }
            Scene::SaleClosed => self.policy("sale_closes_at", "2026-12-01T11:00:00Z").await,
            Scene::CancelClosed => self.policy("cancel_until", "2026-12-01T11:00:00Z").await,
            Scene::NoOrphans => self.policy("adjacency", "no_orphan").await,
            Scene::SmallBudget => {
                self.policy("units_per_holder_max", 2).await;
                self.policy("units_bought_per_holder_max", 1).await;
            }
            Scene::GivenBack => {
                let cancel = format!("/v1/bookings/{}/cancel", self.ids["booking"]);
                self.done("POST", &cancel, json!({})).await;
            }
            Scene::Unpaid => {
                let other = self.shop.app.held("ann", &["A-3"]).await;
                let begun = self.shop.checkout(&other).await;
                let id = begun["id"].as_str().unwrap().to_owned();
                self.ids.insert("booking", id);
            }
            Scene::Paid => {
                let other = self.shop.app.held("ann", &["A-3"]).await;
                let begun = self.shop.paid(&other).await;
                self.shop.capture(&begun).await;
                let id = begun["id"].as_str().unwrap().to_owned();
                self.ids.insert("booking", id);
            }
            Scene::Dearer => self.choose(&["A-3", "A-4"]).await,
            Scene::InUse => {
                self.shop.checkout(&self.hold).await;
                self.end_event().await;
            }
            Scene::Dropped => {
                // With the messages that wait for it.
                let endpoint = format!("/v1/webhook-endpoints/{}", self.ids["endpoint"]);
                self.done("DELETE", &endpoint, Value::Null).await;
                self.end_event().await;
                self.done("DELETE", "/v1/events/hall", Value::Null).await;
            }
        }
    }

    /// The event is called off, long ago.
    async fn end_event(&self) {
        self.done("POST", "/v1/events/hall/cancel", json!({})).await;
        self.shop.app.clock.advance(Duration::from_hours(9 * 24));
    }

    /// Another hold takes the place of the first.
    async fn choose(&mut self, seats: &[&str]) {
        self.hold = self.shop.app.held("ann", seats).await;
        self.ids.insert("hold", self.hold.id.clone());
    }

    async fn done(&self, method: &str, path: &str, body: Value) {
        let app = &self.shop.app;
        let ask = app.ask(method.parse().unwrap(), path);
        let ask = ask.by(&app.admin).key("done");
        let ask = if body.is_null() { ask } else { ask.json(&body) };
        let answer = ask.send().await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text());
    }

    async fn policy(&self, field: &str, value: impl Into<Value>) {
        let value: Value = value.into();
        let change = json!({"policy": {field: value}});
        self.done("PATCH", "/v1/events/hall", change).await;
    }

    /// The body of a request that differs so; none where it cannot.
    fn body(&self, operation: &Operation, change: Change) -> Option<Value> {
        if !may_matter(operation, change) {
            return None;
        }
        let mut body = operation.example.clone().unwrap_or(Value::Null);
        if operation.id == "exchange_units" {
            body["booking"] = json!(self.ids["booking"]);
            body["hold"] = json!(self.ids["hold"]);
        }
        match change {
            Change::Wants(seats) => {
                let mut field = ["units", "add"].into_iter();
                let field = field.find(|name| body.get(name).is_some())?;
                body[field] = units(seats);
            }
            Change::StaleFence if !body.is_null() => body["fence"] = json!(99),
            Change::OtherName => body["id"] = json!("hall"),
            // A hold that lasts as long already is not changed, and nothing is recorded.
            Change::KeyAgain if operation.id == "extend_hold" => body["ttl_ms"] = json!(900_000),
            // With an id of its own it is that which names the event.
            Change::KeyAgain if operation.id == "create_event" => {
                body.as_object_mut().unwrap().remove("id");
            }
            Change::GivesBack if operation.id == "checkout_hold" => {
                let release = [json!({"seat": "A-2"})];
                body["exchange"] = json!({"booking": self.ids["booking"], "release": release});
            }
            Change::Missing(kind @ ("booking" | "hold")) if body.get(kind).is_some() => {
                body[kind] = json!(missing(kind));
            }
            Change::Missing("booking") if operation.id == "checkout_hold" => {
                let release = [json!({"seat": "A-2"})];
                body["exchange"] = json!({"booking": missing("booking"), "release": release});
            }
            Change::Missing("unit") if operation.id == "checkout_hold" => {
                let release = [json!({"seat": "Z-99"})];
                body["exchange"] = json!({"booking": self.ids["booking"], "release": release});
            }
            Change::Missing("unit") if body.get("release").is_some() => {
                body["release"] = units(&["Z-99"]);
            }
            Change::Missing("unit") if body.get("units").is_some() => {
                body["units"] = units(&["Z-99"]);
            }
            Change::GivesBack => return None,
            Change::Missing(kind) if !operation.path.contains(&format!("{{{kind}}}")) => {
                return None;
            }
            _ => {}
        }
        Some(body)
    }

    /// The answer, and whether something is not as it was before.
    async fn ask(&self, operation: &Operation, change: Change) -> Option<(Answer, bool)> {
        let app = &self.shop.app;
        let body = self.body(operation, change)?;
        let mut path = operation.path.clone();
        for (kind, id) in &self.ids {
            let name = format!("{{{kind}}}");
            path = match change {
                Change::Missing(missed) if missed == *kind => path.replace(&name, &missing(kind)),
                _ => path.replace(&name, id),
            };
        }
        match change {
            Change::Query => path.push_str("?x=1"),
            Change::StaleFence if body.is_null() => path.push_str("?fence=99"),
            _ if operation.admission == "buy"
                && ["list_holds", "list_bookings"].contains(&&*operation.id) =>
            {
                path.push_str("?holder=ann");
            }
            _ => {}
        }
        if operation.id == "unblock" && matches!(change, Change::KeyAgain) {
            // A refusal uses no key up.
            self.done("POST", "/v1/events/hall/block", body.clone())
                .await;
        }
        let token = token(app, &operation.admission, change);
        let make = |body: &str| {
            let mut ask = app.ask(operation.method.parse().unwrap(), &path);
            if let Some(token) = &token {
                ask = ask.by(token);
            }
            match change {
                Change::NoKey => {}
                Change::KeyAgain => ask = ask.key("again"),
                _ => ask = ask.key(&format!("{change:?}").replace(' ', "")),
            }
            match change {
                Change::OtherOrigin => ask = ask.header("origin", "https://elsewhere.example"),
                Change::TooLarge => ask = ask.header("content-length", "999999999"),
                _ => {}
            }
            match change {
                Change::Media => ask.body("text/plain", "x"),
                _ if body == "null" => ask,
                _ => ask.body("application/json", body.to_owned()),
            }
        };
        let text = body.to_string();
        if ["read_feed", "watch_lease"].contains(&&*operation.id) {
            let (parts, _) = make(&text).start().await.into_parts();
            if parts.status == StatusCode::OK {
                return None;
            }
        }
        let first = make(&text).send().await;
        let mutates = first.status.is_success() && operation.method != "GET";
        let answer = match change {
            Change::KeyAgain if !body.is_null() => make(&other(body).to_string()).send().await,
            _ => first,
        };
        Some((answer, mutates))
    }
}

/// A legal body that asks for something else.
fn other(mut body: Value) -> Value {
    let others = [
        ("reference", json!("other")),
        ("name", json!("other")),
        ("holder", json!("bob")),
        ("amount", json!(499)),
        ("ttl_ms", json!(901_000)),
        ("types", json!(["hold.expired"])),
        ("release", units(&["A-9"])),
        ("drop", units(&["A-9"])),
        ("units", units(&["A-9"])),
    ];
    let field = others
        .into_iter()
        .find(|(name, _)| body.get(name).is_some());
    let (name, value) = field.expect("a field to change");
    body[name] = value;
    body
}

/// Whether a change may bring the operation to a code that it lists.
fn may_matter(operation: &Operation, change: Change) -> bool {
    let lists = |code: &str| operation.codes.contains(code);
    let is_open = ["look", "new_shopper"].contains(&&*operation.admission);
    match change {
        Change::UnknownToken => lists("unauthenticated"),
        Change::WrongScope => lists("forbidden") && !is_open,
        Change::OtherOrigin => lists("forbidden") && is_open,
        Change::Query => lists("invalid_request"),
        Change::Media => lists("unsupported_media_type"),
        Change::TooLarge => lists("body_too_large"),
        Change::NoKey => lists("idempotency_key_missing"),
        Change::KeyAgain => lists("idempotency_key_reused"),
        Change::StaleFence => lists("stale_fence"),
        Change::OtherName => lists("event_exists"),
        _ => true,
    }
}

/// An id of this kind that nothing has.
fn missing(kind: &str) -> String {
    let prefix = match kind {
        "hold" => "hld_",
        "booking" => "bkg_",
        "key" => "cal_",
        "endpoint" => "whe_",
        "message" => "msg_",
        _ => return "none".to_owned(),
    };
    format!("{prefix}{}", "0".repeat(26))
}

fn token(app: &TestApp, admission: &str, change: Change) -> Option<String> {
    if matches!(change, Change::UnknownToken) {
        return (admission != "anyone").then(|| "sk_unknown".to_owned());
    }
    let wrong = matches!(change, Change::WrongScope);
    let token = match (admission, wrong) {
        ("admin", false) => &app.admin,
        ("lease", false) => &app.lease,
        ("admin" | "staff" | "lease", true) | ("sell" | "buy", false) => &app.sell,
        ("sell" | "buy", true) | ("look" | "staff", false) => &app.read,
        _ => return None,
    };
    Some(token.clone())
}

/// Pairs of an operation's id and a code that it answered.
type Seen = BTreeSet<(String, String)>;

fn note(seen: &mut Seen, operation: &Operation, answer: &Answer) {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if let Some(code) = json["code"].as_str() {
        seen.insert((operation.id.clone(), code.to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_code_of_every_operation_is_answered_and_every_example_is_taken() {
    let operations = operations();
    let mut seen = Seen::new();
    at_the_public_address(&operations, &mut seen).await;
    too_often(&operations, &mut seen).await;
    the_last_key(&operations, &mut seen).await;
    a_lease_of_another(&operations, &mut seen).await;
    too_many_for_staff(&operations, &mut seen).await;
    for scene in SCENES {
        let mut stage = Stage::set(scene).await;
        for operation in &operations {
            for change in changes(scene) {
                let is_example = matches!((scene, change), (Scene::Plain, Change::Nothing));
                if !is_example && unseen(operation, &seen).is_empty() {
                    break;
                }
                let Some((answer, mutates)) = stage.ask(operation, change).await else {
                    continue;
                };
                note(&mut seen, operation, &answer);
                if mutates {
                    stage = Stage::set(scene).await;
                }
                let must_pass = operation.example.is_some() && !NOT_PLAIN.contains(&&*operation.id);
                assert!(
                    mutates || !must_pass || !is_example,
                    "{}: {}",
                    operation.id,
                    answer.text()
                );
            }
        }
    }
    let never: Vec<_> = operations
        .iter()
        .map(|operation| (&operation.id, unseen(operation, &seen)))
        .filter(|(_, codes)| !codes.is_empty())
        .collect();
    assert!(
        never.is_empty(),
        "described, and never answered: {never:#?}"
    );
}

/// The codes that the operation lists and has not answered.
fn unseen<'a>(operation: &'a Operation, seen: &Seen) -> Vec<&'a String> {
    let is_unseen = |code: &&String| {
        let pair = (operation.id.clone(), (*code).clone());
        !FAULTS.contains(&&***code) && !seen.contains(&pair)
    };
    operation.codes.iter().filter(is_unseen).collect()
}

/// Staff has an address of its own, no provider takes money, and shoppers are not let in.
async fn at_the_public_address(operations: &[Operation], seen: &mut Seen) {
    let settings = ServerSettings::default();
    let app = TestApp::start(settings, AdminRoutes::Apart).await;
    for operation in operations {
        let ask = app.ask(operation.method.parse().unwrap(), &operation.path);
        note(seen, operation, &ask.send().await);
    }
    // A key is no shopper, and no caller is let in without one.
    let session = operations
        .iter()
        .find(|operation| operation.id == "open_session");
    let ask = app.post("/v1/sessions").by(&app.sell);
    note(seen, session.unwrap(), &ask.send().await);
}

async fn too_often(operations: &[Operation], seen: &mut Seen) {
    let once = Quota::new(1, 60).ok();
    let rates = RateLimits {
        sessions: once,
        reads: once,
        keys: once,
        ..RateLimits::off()
    };
    let app = TestApp::open_with(|settings| settings.rates = rates).await;
    for operation in operations {
        for _ in 0..2 {
            let ask = app.ask(operation.method.parse().unwrap(), &operation.path);
            let ask = match token(&app, &operation.admission, Change::Nothing) {
                Some(token) => ask.by(&token),
                None => ask,
            };
            note(seen, operation, &ask.send().await);
        }
    }
}

async fn the_last_key(operations: &[Operation], seen: &mut Seen) {
    let app = TestApp::open().await;
    let keys = app.engine.keys();
    let admin = keys.iter().find(|key| key.name.as_str() == "admin");
    let path = format!("/v1/keys/{}", admin.unwrap().id);
    let answer = app.delete(&path).by(&app.admin).send().await;
    let revoke = operations
        .iter()
        .find(|operation| operation.id == "revoke_key");
    note(seen, revoke.unwrap(), &answer);
}

async fn a_lease_of_another(operations: &[Operation], seen: &mut Seen) {
    let app = TestApp::open().await;
    let acquire = operations
        .iter()
        .find(|operation| operation.id == "acquire_lease");
    for owner in ["a", "b"] {
        let body = json!({"owner": owner, "ttl_ms": 10_000});
        let ask = app.post("/v1/leases/job/acquire").by(&app.lease);
        note(seen, acquire.unwrap(), &ask.json(&body).send().await);
    }
}

async fn too_many_for_staff(operations: &[Operation], seen: &mut Seen) {
    let app = TestApp::open().await;
    let created = app
        .post("/v1/events")
        .by(&app.admin)
        .json(&hall_with_floor());
    created.send().await.expect(StatusCode::CREATED);
    let units = json!([{"area": "floor", "quantity": 10_001}]);
    for (id, part, body) in [
        ("sell", "sales", json!({"holder": "ann", "units": units})),
        ("block", "block", json!({"units": units})),
        ("unblock", "unblock", json!({"units": units})),
    ] {
        let ask = app.post(&format!("/v1/events/hall/{part}"));
        let answer = ask.by(&app.admin).key("k").json(&body).send().await;
        let operation = operations.iter().find(|operation| operation.id == id);
        note(seen, operation.unwrap(), &answer);
    }
}
