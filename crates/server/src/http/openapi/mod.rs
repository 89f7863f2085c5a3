//! The API description, OpenAPI 3.1: made of the table of operations, and of the types that requests are
//! read into and answers are written from. It is committed as `openapi.json`, which a test compares, and served
//! as committed.

mod limits;
mod messages;
mod rules;
mod schemas;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::auth::SECURE_COOKIE;
use super::kinds::{self, Kind};
use super::operation::{Answer, Content, Keyed, Operation, Tag, get};
use super::pages::serve;
use super::refusals;
use super::route::Admission::{self, Anyone};
use super::table::Table;

/// An answer of each schema.
const EXAMPLES: &str = include_str!("examples.json");
const KEYED: &str = "1 to 255 visible ASCII characters. The same key with the same path and body is answered \
     with the first answer, marked `Idempotency-Replayed: true`, for 24 hours; of a refund or a \
     cancellation for as long as the booking";
const NAMING: &str = "1 to 255 visible ASCII characters. Without an `id` the same key with the same body is the same \
     event, and with another body it is refused";
/// The media type of a feed.
const EVENTS: &str = "text/event-stream";

pub(super) fn routes(table: &mut Table) {
    table.tag(Tag::System);
    table.add(
        get("/openapi.json", Anyone)
            .id("openapi")
            .summary("This description")
            .sends("application/json", "An OpenAPI 3.1 document")
            .or_unchanged(),
        |req| async move { serve(&req, req.app.files.description()) },
    );
}

/// Describes these operations, as JSON for people to read too.
pub(super) fn document(operations: &[Operation]) -> String {
    let tag = |tag: Tag| {
        let (name, about) = (tag.as_str(), tag.about());
        json!({"name": name, "description": about})
    };
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Soldonce",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Hold scarce things for a moment; sell each of them once.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": Tag::ALL.map(tag),
        "paths": paths(operations),
        "webhooks": messages::all(),
        "components": {
            "examples": examples(),
            "schemas": schemas::all(operations),
            "headers": limits::headers(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or a session's token"},
                "session": {"type": "apiKey", "in": "cookie", "name": SECURE_COOKIE, "description": "Without its prefix where the server lets cookies travel over HTTP (`--cookie plain`)"},
            },
        },
        "x-problems": problems(),
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Lists every kind of problem.
fn problems() -> Value {
    let row = |kind: &&Kind| {
        json!({
            "code": kind.code, "status": kind.status.as_u16(), "title": kind.title,
            "happened": kind.happened, "fix": kind.fix,
        })
    };
    kinds::ALL.iter().map(row).collect()
}

fn examples() -> Value {
    let all: Map<String, Value> = serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    let example = |(name, value)| (name, json!({ "value": value }));
    all.into_iter().map(example).collect()
}

fn paths(operations: &[Operation]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        // OpenAPI has no word for "the rest of the path".
        let path = operation.route.path.replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        let method = operation.route.verb.as_str().to_ascii_lowercase();
        rules::merge(methods, json!({ method: describe(operation, operations) }));
    }
    Value::Object(paths)
}

fn describe(operation: &Operation, all: &[Operation]) -> Value {
    let security = match operation.route.admission {
        Admission::Anyone | Admission::NewShopper => json!([]),
        Admission::Look => json!([{}, {"key": []}, {"session": []}]),
        Admission::Buy => json!([{"key": []}, {"session": []}]),
        Admission::Sell | Admission::Lease | Admission::Staff | Admission::Admin => {
            json!([{"key": []}])
        }
    };
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag.as_str()],
        "summary": operation.summary,
        "security": security,
        "x-admission": operation.route.admission.as_str(),
        "responses": responses(operation, all),
    });
    let parameters = parameters(operation);
    if !parameters.is_empty() {
        rules::merge(&mut described, json!({ "parameters": parameters }));
    }
    if let Some(body) = &operation.body {
        let example: Value = serde_json::from_str(body.example).expect("the example is JSON");
        let schema = reference(&(body.schema.name)());
        let media = json!({"schema": schema, "example": example});
        let required = operation.route.needs_body;
        let body = json!({"required": required, "content": {"application/json": media}});
        rules::merge(&mut described, json!({ "requestBody": body }));
    }
    described
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn about_segment(name: &str) -> &'static str {
    match name {
        "event" => "The event's id",
        "hold" => "The hold's id, `hld_..`",
        "booking" => "The booking's id, `bkg_..`",
        "unit" => "A seat's id, or a place's such as `floor.17`",
        "key" => "The key's id, `cal_..`",
        "endpoint" => "The endpoint's id, `whe_..`",
        "message" => "The message's id, `msg_..`",
        "code" => "A problem's code, with dashes",
        "name" => "What is leased: 1 to 128 of `A-Z a-z 0-9 . _ : -`",
        _ => "A file",
    }
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let text = json!({"type": "string"});
    let parameter = |name: &str, place: &str, about: &str, schema: &Value| {
        let mut schema = schema.clone();
        let rule = match place {
            "path" => rules::of_segment(name),
            _ => rules::of_query(operation.id, name),
        };
        if let Some(rule) = rule {
            rules::merge(&mut schema, rule);
        }
        json!({
            "name": name, "in": place, "required": place == "path", "description": about,
            "schema": schema,
        })
    };
    let segments = operation.route.path.split('/');
    let named = segments.filter_map(|part| part.strip_prefix('{'));
    let mut parameters = Vec::new();
    for name in named {
        let name = name.trim_start_matches('*').trim_end_matches('}');
        parameters.push(parameter(name, "path", about_segment(name), &text));
    }
    for (name, about, kind) in operation.route.query {
        let about = match rules::words_of_query(operation.id, name) {
            [] => (*about).to_owned(),
            words => format!("{about}: `{}`", words.join("`, `")),
        };
        parameters.push(parameter(name, "query", &about, &json!({"type": kind})));
    }
    if operation.keyed != Keyed::No {
        let schema = json!({"type": "string", "pattern": "^[!-~]{1,255}$"});
        let about = match operation.keyed {
            Keyed::Naming => NAMING,
            Keyed::No | Keyed::Optional | Keyed::Required => KEYED,
        };
        let mut key = parameter("Idempotency-Key", "header", about, &schema);
        let required = operation.keyed == Keyed::Required;
        rules::merge(&mut key, json!({ "required": required }));
        parameters.push(key);
    }
    for (name, about) in operation.headers {
        parameters.push(parameter(name, "header", about, &text));
    }
    parameters
}

fn responses(operation: &Operation, all: &[Operation]) -> Value {
    let mut responses = Map::new();
    for answer in &operation.answers {
        let mut response = json!({ "description": answer.about });
        if let Some(content) = content(answer) {
            rules::merge(&mut response, json!({ "content": content }));
        }
        if operation.route.is_counted() {
            rules::merge(&mut response, json!({ "headers": limits::of_answer() }));
        }
        responses.insert(answer.status.to_string(), response);
    }
    for (status, codes) in refusals::of(operation, all) {
        let mut refusal = json!({
            "description": format!("`{}`", codes.join("`, `")),
            "content": {"application/problem+json": {"schema": reference("Problem")}},
            "x-codes": codes,
        });
        if status == StatusCode::TOO_MANY_REQUESTS {
            rules::merge(&mut refusal, json!({ "headers": limits::of_refusal() }));
        }
        responses.insert(status.to_string(), refusal);
    }
    Value::Object(responses)
}

fn content(answer: &Answer) -> Option<Value> {
    match answer.content {
        Content::Timed(schema) | Content::Json(schema) => {
            let name = (schema.name)();
            let example = json!({"$ref": format!("#/components/examples/{name}")});
            let schema = reference(&name);
            Some(json!({"application/json": {"schema": schema, "examples": {"answer": example}}}))
        }
        Content::Media(EVENTS) => {
            let reset = json!({"type": "object", "required": ["seq"], "properties": {"seq": {"type": "integer"}}});
            let frame = r#"{"from":1,"seq":1,"digest":"5e884898","at":"2026-12-01T12:00:44.428Z","changes":[{"state":"held","seats":["A-1"]}]}"#;
            let example = json!({"id": "1.5e884898", "event": "message", "data": frame});
            let types = [
                ("message", reference("FeedFrame")),
                ("event", reference("Event")),
                ("reset", reset),
            ];
            Some(events(&types, Some("^[0-9]+\\.[0-9a-f]{8}$"), &example))
        }
        Content::Events(types, schema) => {
            let data = reference(&(schema.name)());
            let types: Vec<_> = types.iter().map(|kind| (*kind, data.clone())).collect();
            let lease = r#"{"token":"0000004294967297","remaining_ms":29698}"#;
            let example = json!({"event": "held", "data": lease});
            Some(events(&types, None, &example))
        }
        // Its shape is another standard's.
        Content::Media(media @ "application/json") => {
            Some(json!({ media: {"schema": {"type": "object"}} }))
        }
        Content::Media(media) => Some(json!({ media: {"schema": {"type": "string"}} })),
        Content::Nothing => None,
    }
}

/// Describes a stream of server-sent events of these types, with their data and the pattern of
/// their ids. OpenAPI before 3.2 has no word for the items of a stream, so its schema is that of
/// each event.
fn events(types: &[(&str, Value)], id: Option<&str>, example: &Value) -> Value {
    let events = types.iter().map(|(kind, data)| {
        let mut members = json!({
            "event": {"type": "string", "enum": [kind]},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
        });
        if let Some(pattern) = id {
            let id = json!({"type": "string", "pattern": pattern});
            rules::merge(&mut members, json!({ "id": id }));
        }
        json!({"type": "object", "properties": members})
    });
    let events: Vec<_> = events.collect();
    let schema = json!({"description": "One server-sent event", "anyOf": events});
    json!({ EVENTS: {"schema": schema, "example": example} })
}
