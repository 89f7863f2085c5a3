//! The API description, OpenAPI 3.1: the operations of the route table, and schemas from the types
//! that requests are read into. Committed as `openapi.json`; a test compares it with the routes.

mod limits;
mod lists;
mod operations;
mod refusals;
mod rules;
mod schemas;
mod sold;
mod table;
mod webhooks;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use self::operations::{Content, KEYED, Keyed, Operation};
use self::table::OPERATIONS;
use super::answer;
use super::asked::Asked;
use super::coding::{Coded, Coding};
use super::conditional::is_known;
use super::problem::Handled;
use super::problems_page;
use super::route::{Admission, Route, is_counted};

/// The OpenAPI document, as JSON for people to read too.
pub fn document() -> String {
    let mut text = serde_json::to_string_pretty(&build()).unwrap_or_default();
    text.push('\n');
    text
}

/// `GET /openapi.json`
pub(super) async fn serve(asked: Asked) -> Handled {
    static DOCUMENT: OnceLock<(Coded, HeaderValue)> = OnceLock::new();
    let (coded, tag) = DOCUMENT.get_or_init(|| {
        let text = document();
        let tag = tag_of(&text);
        (Coded::new(text.into()), tag)
    });
    let coding = Coding::accepted(&asked.parts.headers);
    let mut response = if is_known(&asked.parts.headers, tag) {
        answer::bare(StatusCode::NOT_MODIFIED, Body::empty())
    } else {
        let mut response = answer::json(StatusCode::OK, coded.bytes(coding));
        coding.tell(response.headers_mut());
        response
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, tag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

/// The same for the same text on every server.
fn tag_of(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("W/\"\""))
}

fn build() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Soldonce",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Hold scarce things for a moment; sell each of them once.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": operations::TAGS.iter().map(|(name, about)| json!({"name": name, "description": about})).collect::<Value>(),
        "paths": paths(),
        "webhooks": webhooks::messages(),
        "components": {
            "schemas": schemas::all(),
            "headers": limits::headers(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, or a session's token"},
                "session": {"type": "apiKey", "in": "cookie", "name": super::auth::SECURE_COOKIE, "description": "Without its prefix where the server lets cookies travel over HTTP (`--cookie plain`)"},
            },
        },
        "x-problems": problems_page::rows(),
    })
}

fn operations() -> impl Iterator<Item = &'static Operation> {
    let own = OPERATIONS.iter();
    own.chain(lists::OPERATIONS).chain(webhooks::OPERATIONS)
}

/// The route of the operation of this id.
pub(super) fn route_of(id: &str) -> Option<Route> {
    Some(operations().find(|operation| operation.id == id)?.route)
}

fn paths() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations() {
        // OpenAPI has no word for "the rest of the path".
        let path = operation.route.path.replace("{*", "{");
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(
                operation.route.verb.as_str().to_ascii_lowercase(),
                describe(operation),
            );
        }
    }
    Value::Object(paths)
}

fn describe(operation: &Operation) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": responses(operation),
    });
    let parameters = parameters(operation);
    if let Some(described) = described.as_object_mut() {
        if !parameters.is_empty() {
            described.insert("parameters".to_owned(), parameters.into());
        }
        if let Some(schema) = operation.request {
            let required = !operations::MAY_BE_EMPTY.contains(&schema);
            let body = json!({"required": required, "content": {"application/json": {"schema": reference(schema)}}});
            described.insert("requestBody".to_owned(), body);
        }
        let security = match operation.route.admission {
            Admission::Anyone | Admission::NewShopper => json!([]),
            Admission::Look => json!([{}, {"key": []}, {"session": []}]),
            Admission::Buy => json!([{"key": []}, {"session": []}]),
            Admission::Sell | Admission::Staff | Admission::Admin => json!([{"key": []}]),
        };
        described.insert("security".to_owned(), security);
        described.insert(
            "x-admission".to_owned(),
            operation.route.admission.as_str().into(),
        );
    }
    described
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let text = json!({"type": "string"});
    let parameter = |name: &str, place: &str, about: &str, schema: &Value| {
        let mut schema = schema.clone();
        let rule = match place {
            "path" => None,
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
    let mut parameters = Vec::new();
    for name in operation
        .route
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{'))
    {
        let name = name.trim_start_matches('*').trim_end_matches('}');
        parameters.push(parameter(
            name,
            "path",
            operations::about_segment(name),
            &text,
        ));
    }
    for (name, about, kind) in operation.query {
        parameters.push(parameter(name, "query", about, &json!({"type": kind})));
    }
    if operation.keyed != Keyed::No {
        let schema = json!({"type": "string", "pattern": "^[!-~]{1,255}$"});
        let mut key = parameter("Idempotency-Key", "header", KEYED, &schema);
        if operation.keyed == Keyed::Required
            && let Some(key) = key.as_object_mut()
        {
            key.insert("required".to_owned(), true.into());
        }
        parameters.push(key);
    }
    for (name, about) in operation.headers {
        parameters.push(parameter(name, "header", about, &text));
    }
    parameters
}

fn responses(operation: &Operation) -> Value {
    let is_limited = is_counted(operation.route.admission, operation.route.path);
    let mut responses = Map::new();
    for (status, about, content) in operation.answers {
        let mut response = json!({ "description": about });
        if let (Some(response), Some(content)) = (response.as_object_mut(), described(*content)) {
            response.insert("content".to_owned(), content);
        }
        if let (Some(response), true) = (response.as_object_mut(), is_limited) {
            response.insert("headers".to_owned(), limits::of_answer());
        }
        responses.insert(status.to_string(), response);
    }
    for (status, codes) in refusals::of(operation) {
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

/// Of a feed.
const EVENTS: &str = "text/event-stream";

fn described(content: Content) -> Option<Value> {
    match content {
        Content::Json(schema) => Some(json!({"application/json": {"schema": reference(schema)}})),
        Content::Media(EVENTS) => Some(json!({ EVENTS: {"schema": {
            "type": "string", "contentMediaType": EVENTS,
            "contentSchema": {
                "type": "object",
                "description": "One server-sent event",
                "properties": {
                    "id": {"type": "string", "pattern": "^[0-9]+$"},
                    "event": {"type": "string", "enum": ["message", "event", "reset"]},
                    "data": {"anyOf": [
                        reference("FeedEntry"), reference("Event"),
                        {"type": "object", "required": ["seq"], "properties": {"seq": {"type": "integer"}}},
                    ]},
                },
            },
        }}})),
        Content::Media(media) => Some(json!({ media: {"schema": {"type": "string"}} })),
        Content::Nothing => None,
    }
}
