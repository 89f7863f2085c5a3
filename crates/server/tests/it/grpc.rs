//! gRPC: its services are those of `proto/` and of the API, and what calls alone can do: deadlines, codings, the feed,
//! health, reflection. What is asked and answered, `over_grpc` compares.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use prost_reflect::DescriptorPool;
use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, MethodDescriptor};
use serde_json::{Value, json};
use soldonce_core::Command;
use soldonce_engine::rate::Quota;
use soldonce_server::limits::{BODY_BYTES_MAX, BODY_READ_MS_MAX};
use soldonce_server::{Access, AdminRoutes, RateLimits, ServerSettings, StreamLimits};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tower::ServiceExt;

use crate::harness::{TestApp, units};
use crate::openapi::document;
use crate::over_grpc::call::{Reply, field_of, frame, resolved};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/grpc/soldonce.binpb");

/// Operations of the API that are no methods, like those of the chapter `system`: readers that poll through a cache,
/// and the notices of a provider.
const NO_METHODS: [&str; 2] = ["read_frames", "stripe_notice"];

/// The services.
pub(crate) fn pool() -> &'static DescriptorPool {
    static POOL: OnceLock<DescriptorPool> = OnceLock::new();
    POOL.get_or_init(|| {
        let bytes = std::fs::read(COMMITTED).unwrap();
        DescriptorPool::decode(bytes.as_slice()).unwrap()
    })
}

/// The method of an operation.
pub(crate) fn method_of(operation: &str) -> Option<MethodDescriptor> {
    let name = match operation {
        "read_feed" => "watch_feed".to_owned(),
        // The service has the rest of its name.
        other => match other.strip_suffix("_lease") {
            Some(verb) => verb.to_owned(),
            None => other.replacen("read_", "get_", 1),
        },
    };
    let name = name.replace('_', "");
    let mut methods = pool()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.find(|method| method.name().eq_ignore_ascii_case(&name))
}

/// Lists the operations by which callers send each command. A command that is not here does not compile.
macro_rules! operations_of_commands {
    ($($command:ident $fields:tt => $operation:expr),* $(,)?) => {
        /// The operation that sends a command; none where no caller sends it.
        const fn operation_of(command: &Command) -> Option<&'static str> {
            match command {
                $(Command::$command $fields => $operation),*
            }
        }

        const COMMANDS: &[Option<&str>] = &[$($operation),*];
    };
}

operations_of_commands! {
    CreateEvent(_) => Some("create_event"),
    UpdateEvent { .. } => Some("update_event"),
    CancelEvent { .. } => Some("cancel_event"),
    Hold(_) => Some("hold"),
    Change(_) => Some("change_hold"),
    Extend { .. } => Some("extend_hold"),
    Checkout { .. } => Some("checkout_hold"),
    Abandon { .. } => Some("abandon_checkout"),
    Payment(_) => None,
    Release { .. } => Some("release_hold"),
    Revoke { .. } => Some("revoke_hold"),
    Sweep { .. } => None,
    Confirm { .. } => Some("confirm_hold"),
    ConfirmFree { .. } => Some("confirm_hold"),
    Sell { .. } => Some("sell"),
    Cancel { .. } => Some("cancel_booking"),
    Refund { .. } => Some("refund_booking"),
    SettleRefund { .. } => Some("refund_booking"),
    Exchange { .. } => Some("exchange_units"),
    Block { .. } => Some("block"),
    Unblock { .. } => Some("unblock"),
}

#[test]
fn every_command_is_sent_by_an_operation_and_by_a_method() {
    let _: fn(&Command) -> Option<&'static str> = operation_of;
    for operation in COMMANDS.iter().flatten() {
        assert!(operations().any(|(id, _)| id == *operation), "{operation}");
        assert!(method_of(operation).is_some(), "{operation}");
    }
}

/// `proto/`, compiled now.
fn compiled() -> Vec<u8> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto"));
    let mut compiler = protox::Compiler::new([&folder]).unwrap();
    compiler.include_imports(true).include_source_info(false);
    let files = std::fs::read_dir(folder.join("soldonce/v1")).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        compiler.open_file(file).unwrap();
    }
    compiler.encode_file_descriptor_set()
}

/// What clients that were generated before rely on: each field and each method, as a line.
fn contract(pool: &DescriptorPool) -> BTreeSet<String> {
    let messages = pool.all_messages();
    let fields = messages.flat_map(|message| message.fields().collect::<Vec<_>>());
    let fields = fields.map(|field| {
        let (kind, cardinality) = (field.kind(), field.cardinality());
        let message = kind
            .as_message()
            .map(|message| message.full_name().to_owned());
        let kind = message.unwrap_or_else(|| format!("{kind:?}"));
        let (name, number) = (field.full_name(), field.number());
        format!("{name} = {number}: {cardinality:?} {kind}")
    });
    let services = pool.services();
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    let methods = methods.map(|method| {
        let (input, output) = (method.input(), method.output());
        let streams = method.is_server_streaming();
        let (input, output) = (input.full_name(), output.full_name());
        format!("{}: {input} {output} {streams}", method.full_name())
    });
    fields.chain(methods).collect()
}

#[test]
fn it_is_the_committed_one_and_breaks_no_client() {
    let fresh = compiled();
    let new = DescriptorPool::decode(fresh.as_slice()).unwrap();
    let committed = std::fs::read(COMMITTED).unwrap_or_default();
    let old = DescriptorPool::decode(committed.as_slice()).unwrap();
    let (new, old) = (contract(&new), contract(&old));
    let broken: Vec<_> = old.difference(&new).collect();
    let hint = "clients rely on these: number fields anew, or remove the committed file first";
    assert!(broken.is_empty(), "{hint}: {broken:#?}");
    if std::env::var_os("SOLDONCE_UPDATE").is_some() {
        std::fs::write(COMMITTED, &fresh).unwrap();
        return;
    }
    let hint = "proto/ changed: look at it, then run again with SOLDONCE_UPDATE=1";
    assert!(committed == fresh, "{hint}");
}

#[test]
fn names_are_as_the_style_guide_wants_them() {
    let is_snake = |name: &str| {
        name.bytes()
            .all(|b| b == b'_' || b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let is_camel = |name: &str| {
        name.bytes().all(|b| b.is_ascii_alphanumeric()) && name.as_bytes()[0].is_ascii_uppercase()
    };
    for message in pool()
        .all_messages()
        .filter(|message| message.package_name() == "soldonce.v1")
    {
        assert!(
            message.is_map_entry() || is_camel(message.name()),
            "{}",
            message.full_name()
        );
        for field in message.fields() {
            assert!(is_snake(field.name()), "{}", field.full_name());
        }
    }
    for method in pool()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
    {
        assert!(is_camel(method.name()), "{}", method.full_name());
        let input = method.input();
        let is_shared = input.name() == "WebhookEndpointRequest";
        assert!(
            is_shared || input.name() == format!("{}Request", method.name()),
            "{input:?}"
        );
    }
}

/// Each operation's id with its description.
fn operations() -> impl Iterator<Item = (&'static str, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|methods| methods.as_object().unwrap().values());
    operations.map(|operation| (operation["operationId"].as_str().unwrap(), operation))
}

#[test]
fn every_operation_has_its_method_and_every_method_its_operation() {
    let (mut found, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for (id, operation) in operations().filter(|(_, one)| one["tags"] != json!(["system"])) {
        match method_of(id) {
            Some(method) => {
                compare_request(&method, operation);
                if !method.is_server_streaming() {
                    compare_answer(&method, operation);
                }
                found.insert(method.full_name().to_owned());
            }
            None => drop(missing.insert(id)),
        }
    }
    assert_eq!(missing, BTreeSet::from(NO_METHODS));
    let all = pool()
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let all: BTreeSet<_> = all.map(|method| method.full_name().to_owned()).collect();
    assert_eq!(found, all);
}

/// A request has a field for each part of the address and of the body, and no other.
fn compare_request(method: &MethodDescriptor, operation: &Value) {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let addressed = parameters.filter(|one| one["in"] != "header");
    let mut names: BTreeSet<&str> = addressed.map(|one| one["name"].as_str().unwrap()).collect();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body = resolved(body)["properties"].as_object();
    names.extend(body.into_iter().flatten().map(|(name, _)| &**name));
    let input = method.input();
    let own = input.fields().map(|field| match field.name() {
        "chart_json" => "chart".to_owned(),
        name if names.contains(name) => name.to_owned(),
        "all_lines" => "units".to_owned(),
        _ => field.json_name().to_owned(),
    });
    let own: BTreeSet<_> = own.collect();
    assert_eq!(
        own,
        names.into_iter().map(str::to_owned).collect(),
        "{}",
        input.full_name()
    );
    for (name, schema) in body
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "chart")
    {
        compare(&field_of(&input, name).kind(), schema, Side::Request);
    }
}

/// An answer has a field for each of its members, at every depth.
fn compare_answer(method: &MethodDescriptor, operation: &Value) {
    let responses = operation["responses"].as_object().unwrap();
    let done = responses
        .iter()
        .find(|(status, _)| status.starts_with('2'))
        .unwrap();
    let schema = &done.1["content"]["application/json"]["schema"];
    if method.name() != "GetChart" {
        compare(&Kind::Message(method.output()), schema, Side::Answer);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Request,
    Answer,
}

/// What a request may leave out of an entry that was answered.
const ANSWERED: [&str; 3] = ["price", "version", "state"];

fn compare(kind: &Kind, schema: &Value, side: Side) {
    let schema = resolved(schema);
    if let Kind::Message(message) = kind
        && let Some(members) = schema["properties"].as_object()
    {
        let is_own = message.name() == "OwnUnit";
        for (name, member) in members {
            if side == Side::Request && is_own && ANSWERED.contains(&&**name) {
                continue;
            }
            compare(&field_of(message, name).kind(), member, side);
        }
        return;
    }
    let is_list = |name: &Value| name == "array";
    let types = schema["type"].as_array();
    if is_list(&schema["type"]) || types.is_some_and(|types| types.iter().any(is_list)) {
        return compare(kind, &schema["items"], side);
    }
    let types = schema["type"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![schema["type"].clone()]);
    let is_one = |name: &str| types.contains(&json!(name));
    let fits = match kind {
        Kind::String => is_one("string"),
        Kind::Bool => is_one("boolean"),
        Kind::Int64 | Kind::Uint32 | Kind::Uint64 => is_one("integer"),
        Kind::Message(message) if message.name() == "Timestamp" => schema["format"] == "date-time",
        Kind::Message(message) => message.is_map_entry() && is_one("object"),
        Kind::Double
        | Kind::Float
        | Kind::Int32
        | Kind::Sint32
        | Kind::Sint64
        | Kind::Fixed32
        | Kind::Fixed64
        | Kind::Sfixed32
        | Kind::Sfixed64
        | Kind::Bytes
        | Kind::Enum(_) => false,
    };
    assert!(fits, "{kind:?} is not {schema}");
}

/// A call of a method with a message in JSON.
async fn call(
    app: &TestApp,
    name: &str,
    message: Value,
    headers: &[(&'static str, &str)],
) -> Reply {
    Reply::of(start(app, "Sales", name, message, headers).await).await
}

/// Starts a call of a method of this service.
pub(crate) async fn start(
    app: &TestApp,
    service: &str,
    name: &str,
    message: Value,
    headers: &[(&'static str, &str)],
) -> Response<Body> {
    let service = format!("soldonce.v1.{service}");
    let service = pool().get_service_by_name(&service).unwrap();
    let method = service
        .methods()
        .find(|method| method.name() == name)
        .unwrap();
    let message = DynamicMessage::deserialize(method.input(), message).unwrap();
    post(
        app,
        &format!("/{}/{name}", service.full_name()),
        frame(&message.encode_to_vec()),
        headers,
    )
    .await
}

async fn post(
    app: &TestApp,
    path: &str,
    body: Vec<u8>,
    headers: &[(&'static str, &str)],
) -> Response<Body> {
    let mut request = Request::post(path).header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body)).unwrap();
    app.router.clone().oneshot(request).await.unwrap()
}

fn output(name: &str) -> MessageDescriptor {
    pool()
        .get_message_by_name(&format!("soldonce.v1.{name}"))
        .unwrap()
}

fn json_of(name: &str, message: &[u8]) -> Value {
    let message = DynamicMessage::decode(output(name), message).unwrap();
    serde_json::to_value(&message).unwrap()
}

/// The reason of a refusal.
fn reason(reply: &Reply) -> (u32, String) {
    let status = tonic_types::pb::Status::decode(reply.details.as_slice()).unwrap();
    let info = status
        .details
        .iter()
        .find(|one| one.type_url.ends_with("ErrorInfo"))
        .unwrap();
    let info = tonic_types::pb::ErrorInfo::decode(info.value.as_slice()).unwrap();
    assert_eq!(info.domain, "soldonce");
    (reply.code, info.reason)
}

#[tokio::test]
async fn a_refusal_says_why_what_to_do_and_when() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("first", &["A-1"]).await;
    let by = format!("Bearer {}", app.sell);
    let wish = json!({"event": "hall", "holder": "b", "units": [{"seat": "A-1"}]});
    let refused = call(&app, "Hold", wish, &[("authorization", &by)]).await;
    assert_eq!(reason(&refused), (9, "unit_unavailable".to_owned()));
    let status = tonic_types::pb::Status::decode(refused.details.as_slice()).unwrap();
    let problem = status.details.last().unwrap();
    let problem = json_of("Problem", &problem.value);
    assert_eq!(problem["conflicts"][0]["seat"], "A-1");
    assert_eq!(problem["advice"], "retry_after");
    let keyless = call(&app, "GetHold", json!({"hold": "none"}), &[]).await;
    assert_eq!(reason(&keyless), (16, "unauthenticated".to_owned()));
}

#[tokio::test]
async fn a_call_whose_deadline_has_passed_is_not_run() {
    let app = TestApp::open().await.with_hall(1).await;
    let by = format!("Bearer {}", app.sell);
    let wish = || json!({"event": "hall", "holder": "b", "units": [{"seat": "A-1"}]});
    let late = [("authorization", &*by), ("grpc-timeout", "0n")];
    let late = call(&app, "Hold", wish(), &late).await;
    assert_eq!(late.code, 4, "DEADLINE_EXCEEDED");
    let seats = app.get("/v1/events/hall/seats").send().await.json();
    assert_eq!(seats["held"], json!([]));
    let timely = [("authorization", &*by), ("grpc-timeout", "10S")];
    assert_eq!(call(&app, "Hold", wish(), &timely).await.code, 0);
}

/// A message in gzip, as it is sent.
fn zipped(name: &str, message: Value) -> Vec<u8> {
    let message = DynamicMessage::deserialize(output(name), message).unwrap();
    let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
    coder.write_all(&message.encode_to_vec()).unwrap();
    let mut body = frame(&coder.finish().unwrap());
    body[0] = 1;
    body
}

#[tokio::test]
async fn a_command_comes_in_gzip_and_its_answer_never_does() {
    let app = TestApp::open().await.with_hall(1).await;
    let by = format!("Bearer {}", app.sell);
    let wish = json!({"event": "hall", "holder": "b", "units": [{"seat": "A-1"}]});
    let held = async |coding: &str| {
        let headers = [
            ("authorization", &*by),
            ("grpc-encoding", coding),
            ("grpc-accept-encoding", "gzip"),
        ];
        let body = zipped("HoldRequest", wish.clone());
        post(&app, "/soldonce.v1.Sales/Hold", body, &headers).await
    };
    let response = held("gzip").await;
    assert!(!response.headers().contains_key("grpc-encoding"));
    let reply = Reply::of(response).await;
    assert_eq!(json_of("Hold", &reply.message)["holder"], "b");
    assert_eq!(Reply::of(held("br").await).await.code, 12, "UNIMPLEMENTED");
}

#[tokio::test]
async fn messages_come_and_go_in_gzip() {
    let app = TestApp::open().await.with_hall(300).await;
    let body = zipped("GetSeatsRequest", json!({"event": "hall"}));
    let rows: Vec<String> = (1..=10).map(|seat| format!("B-{seat}")).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let blocked = json!({"units": units(&rows)});
    let blocked = app
        .post("/v1/events/hall/block")
        .by(&app.admin)
        .json(&blocked)
        .send()
        .await;
    blocked.expect(StatusCode::OK);
    let codings = [("grpc-encoding", "gzip"), ("grpc-accept-encoding", "gzip")];
    let response = post(&app, "/soldonce.v1.Sales/GetSeats", body, &codings).await;
    assert_eq!(response.headers()["grpc-encoding"], "gzip");
    let seats = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(seats[0], 0, "a small answer is not coded");
    let chart = start(
        &app,
        "Sales",
        "GetChart",
        json!({"event": "hall"}),
        &codings[1..],
    )
    .await;
    let chart = chart.into_body().collect().await.unwrap().to_bytes();
    let mut decoded = Vec::new();
    GzDecoder::new(&chart[5..])
        .read_to_end(&mut decoded)
        .unwrap();
    assert_eq!((chart[0], decoded.len() > 2 * chart.len()), (1, true));
}

#[tokio::test]
async fn what_is_no_call_is_refused() {
    let app = TestApp::open().await.with_hall(1).await;
    let by = format!("Bearer {}", app.admin);
    let by = [("authorization", &*by)];
    let path = "/soldonce.v1.Sales/Hold";
    let large = Reply::of(post(&app, path, frame(&vec![0; BODY_BYTES_MAX]), &by).await).await;
    assert_eq!(reason(&large), (3, "body_too_large".to_owned()));
    let stranger = frame(&vec![0; BODY_BYTES_MAX]);
    let stranger = post(&app, "/soldonce.v1.Sales/CreateEvent", stranger, &[]).await;
    assert_eq!(
        reason(&Reply::of(stranger).await),
        (16, "unauthenticated".to_owned()),
        "as over HTTP: who calls comes first"
    );
    let garbage = Reply::of(post(&app, path, frame(b"\xff\xff"), &by).await).await;
    assert_eq!(reason(&garbage), (3, "invalid_request".to_owned()));
    let chart = json!({"name": "x", "currency": "EUR", "chartJson": "{} , \"id\":\"y\""});
    let chart = call(&app, "CreateEvent", chart, &by).await;
    assert_eq!(reason(&chart), (3, "invalid_request".to_owned()));
    let none = call(&app, "CancelBooking", json!({"booking": "bkg_none"}), &by).await;
    assert_eq!(reason(&none), (5, "booking_not_found".to_owned()));
    let both = json!({"booking": "b", "units": [{"seat": "A-1"}], "allLines": true});
    let both = call(&app, "CancelBooking", both, &by).await;
    assert_eq!(reason(&both), (3, "invalid_request".to_owned()));
    app.post(path)
        .by(&app.admin)
        .json(&json!({}))
        .send()
        .await
        .refused(415, "unsupported_media_type");
    let unknown = post(&app, "/soldonce.v1.Sales/Nothing", frame(&[]), &by).await;
    let missing = (12, "method_not_allowed".to_owned());
    assert_eq!(reason(&Reply::of(unknown).await), missing);
    app.get(path)
        .send()
        .await
        .refused(405, "method_not_allowed");
}

#[tokio::test]
async fn methods_for_staff_are_where_their_routes_are() {
    let app = TestApp::start(ServerSettings::default(), AdminRoutes::Apart).await;
    let list = |router: &axum::Router| {
        let request = Request::post("/soldonce.v1.Sales/ListKeys");
        let request = request.header("content-type", "application/grpc");
        let request = request.header("authorization", format!("Bearer {}", app.admin));
        router
            .clone()
            .oneshot(request.body(Body::from(frame(&[]))).unwrap())
    };
    let public = list(&app.router).await.unwrap();
    let missing = (12, "method_not_allowed".to_owned());
    assert_eq!(reason(&Reply::of(public).await), missing);
    let admin = list(app.admin_router.as_ref().unwrap()).await.unwrap();
    assert_eq!(Reply::of(admin).await.code, 0);
}

/// The messages of a stream, one after the other.
pub(crate) struct Watched {
    body: Body,
    message: &'static str,
    waiting: Vec<Value>,
}

impl Watched {
    /// Of a stream of messages of this name.
    pub(crate) fn new(response: Response<Body>, message: &'static str) -> Self {
        Self {
            message,
            body: response.into_body(),
            waiting: Vec::new(),
        }
    }

    /// The next message of this kind.
    pub(crate) async fn next(&mut self, kind: &str) -> Value {
        loop {
            while !self.waiting.is_empty() {
                let message = self.waiting.remove(0);
                if message[kind].is_object() {
                    return message[kind].clone();
                }
            }
            let frame = self.body.frame().await.unwrap().unwrap();
            let frame = frame.into_data().unwrap();
            let mut rest = &frame[..];
            while let Some((head, behind)) = rest.split_at_checked(5) {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
                let (message, behind) = behind.split_at(usize::try_from(length).unwrap());
                self.waiting.push(json_of(self.message, message));
                rest = behind;
            }
        }
    }
}

#[tokio::test]
async fn a_feed_goes_on_where_it_broke() {
    let app = TestApp::open().await.with_hall(1).await;
    app.held("a", &["A-1", "A-2"]).await;
    let watch = |after: u64, digest: &Value, each: bool| {
        let known = json!({"event": "hall", "after": after, "digest": digest, "each": each});
        start(&app, "Sales", "WatchFeed", known, &[])
    };
    let seats = app.get("/v1/events/hall/seats").send().await.json();
    let (first, digest) = (seats["seq"].as_u64().unwrap(), &seats["digest"]);
    let mut watched = Watched::new(watch(first, digest, true).await, "WatchFeedResponse");
    assert_eq!(watched.next("event").await["id"], "hall");
    app.held("b", &["A-3"]).await;
    app.clock.advance(std::time::Duration::from_secs(1));
    let frame = watched.next("frame").await;
    assert_eq!(frame["seq"], (first + 1).to_string());
    assert_eq!(frame["changes"][0]["seats"], json!([{"first": "A-3"}]));
    let digest = &frame["digest"];
    drop(watched);
    app.held("c", &["A-4", "A-5"]).await;
    let goes_on = watch(first + 1, digest, false).await;
    let mut watched = Watched::new(goes_on, "WatchFeedResponse");
    app.clock.advance(std::time::Duration::from_secs(1));
    let frame = watched.next("frame").await;
    assert_eq!(
        (&frame["from"], &frame["seq"]),
        (
            &json!((first + 2).to_string()),
            &json!((first + 2).to_string())
        )
    );
    assert_eq!(
        frame["changes"][0]["seats"],
        json!([{"first": "A-4", "last": "A-5"}])
    );
    for (after, digest) in [(first + 1_000, digest), (first, &json!("00000000"))] {
        let lost = watch(after, digest, false).await;
        Watched::new(lost, "WatchFeedResponse").next("reset").await;
    }
    app.shutdown.cancel();
    let ended = watched.body.collect().await.unwrap();
    assert_eq!(
        ended.trailers().unwrap()["grpc-status"],
        "14",
        "UNAVAILABLE"
    );
}

#[tokio::test]
async fn health_is_readiness() {
    let settings = ServerSettings {
        shoppers: Access::Closed,
        ..ServerSettings::default()
    };
    let app = TestApp::start(settings, AdminRoutes::Public).await;
    let check = |name: &str| {
        let service = name.to_owned();
        let body = frame(&HealthCheckRequest { service }.encode_to_vec());
        let app = &app;
        async move {
            let reply = Reply::of(post(app, "/grpc.health.v1.Health/Check", body, &[]).await).await;
            let said = HealthCheckResponse::decode(reply.message).unwrap();
            (reply.code, said.status)
        }
    };
    assert_eq!(check("").await, (0, 1), "SERVING");
    assert_eq!(check("soldonce.v1.Sales").await, (0, 1));
    assert_eq!(check("none").await.0, 5, "NOT_FOUND");
    let watch = post(&app, "/grpc.health.v1.Health/Watch", frame(&[]), &[]).await;
    let mut watch = watch.into_body();
    let first = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first[5..], [8, 1]);
    let service = "none".to_owned();
    let unknown = frame(&HealthCheckRequest { service }.encode_to_vec());
    let unknown = post(&app, "/grpc.health.v1.Health/Watch", unknown, &[]).await;
    let mut unknown = unknown.into_body();
    let first = unknown.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first[5..], [8, 3], "SERVICE_UNKNOWN");
    assert!(unknown.frame().now_or_never().is_none(), "it stays open");
    app.shutdown.cancel();
    assert!(unknown.collect().await.unwrap().to_bytes().is_empty());
    assert_eq!(check("").await, (0, 2), "NOT_SERVING");
    let last = watch.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(last[5..], [8, 2]);
    assert!(
        watch.collect().await.unwrap().to_bytes().is_empty(),
        "it ends"
    );
}

const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

fn list_services() -> ServerReflectionRequest {
    ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    }
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let app = TestApp::open().await;
    let list = frame(&list_services().encode_to_vec());
    let reply = Reply::of(post(&app, REFLECTION, list, &[]).await).await;
    let said = ServerReflectionResponse::decode(reply.message).unwrap();
    let said = format!("{said:?}");
    for name in ["soldonce.v1.Sales", "soldonce.v1.Leases"] {
        assert!(said.contains(name), "{said}");
    }
}

#[tokio::test]
async fn a_probe_that_does_not_come_whole_is_not_waited_for() {
    let app = TestApp::open().await;
    let never = Body::from_stream(futures_util::stream::pending::<std::io::Result<Bytes>>());
    let probe = Request::post("/grpc.health.v1.Health/Check");
    let probe = probe.header("content-type", "application/grpc");
    let asked = app.router.clone().oneshot(probe.body(never).unwrap());
    let (answer, ()) = tokio::join!(asked, async {
        tokio::task::yield_now().await;
        app.clock.advance(Duration::from_millis(BODY_READ_MS_MAX));
    });
    let refused = Reply::of(answer.unwrap()).await;
    assert_eq!(reason(&refused), (14, "request_timeout".to_owned()));
}

#[tokio::test]
async fn what_needs_no_key_is_bounded() {
    let settings = ServerSettings {
        streams: StreamLimits {
            total: 9,
            per_address: 1,
        },
        rates: RateLimits {
            reads: Quota::new(4, 60).ok(),
            ..RateLimits::off()
        },
        ..ServerSettings::default()
    };
    let app = TestApp::start(settings, AdminRoutes::Public).await;
    let health = async |method: &str| {
        let path = format!("/grpc.health.v1.Health/{method}");
        post(&app, &path, frame(&[]), &[]).await
    };
    let watch = health("Watch").await;
    let second = Reply::of(health("Watch").await).await;
    assert_eq!(
        reason(&second),
        (8, "rate_limited".to_owned()),
        "one stream"
    );
    let check = Reply::of(health("Check").await).await;
    assert_eq!(
        check.code, 0,
        "probes are answered while all streams are taken"
    );
    drop(watch);
    // More than a stream may ask for in all.
    let list = frame(&list_services().encode_to_vec());
    let many = list.repeat(BODY_BYTES_MAX / list.len() + 1);
    let many = Reply::of(post(&app, REFLECTION, many, &[]).await).await;
    assert!(many.message.is_empty());
    let often = Reply::of(health("Check").await).await;
    assert_eq!(reason(&often), (8, "rate_limited".to_owned()));
}
