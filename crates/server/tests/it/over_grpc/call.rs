//! Requests as calls, and what is answered as JSON again: written by the description of the API, which knows nothing of
//! how the server translates.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Request};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use http_body_util::BodyExt;
use prost_reflect::prost::Message;
use prost_reflect::prost_types::Timestamp;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, FieldDescriptor, MapKey, MessageDescriptor,
    MethodDescriptor, ReflectMessage,
};
use serde_json::{Map, Value, json};
use tower::ServiceExt;

use crate::grpc::pool;
use crate::harness::{Answer, AsHttp, Ask};
use crate::openapi::{document, template_of};

/// What came back of a call.
pub(crate) struct Reply {
    pub(crate) headers: HeaderMap,
    pub(crate) message: Bytes,
    /// `grpc-status`.
    pub(crate) code: u32,
    /// The bytes of `grpc-status-details-bin`.
    pub(crate) details: Vec<u8>,
}

/// A message as it is sent.
pub(crate) fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

impl Reply {
    pub(crate) async fn of(response: axum::http::Response<Body>) -> Self {
        assert_eq!(response.headers()["content-type"], "application/grpc");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        let body = body.to_bytes();
        let said = |name: &str| trailers.get(name).or(parts.headers.get(name));
        let code = said("grpc-status").unwrap().to_str().unwrap();
        let details = said("grpc-status-details-bin").map(|details| {
            let text = details.to_str().unwrap().trim_end_matches('=');
            STANDARD_NO_PAD.decode(text).unwrap()
        });
        let mut headers = parts.headers.clone();
        headers.extend(trailers.clone());
        Self {
            code: code.parse().unwrap(),
            details: details.unwrap_or_default(),
            message: body.slice(body.len().min(5)..),
            headers,
        }
    }
}

/// Sends a request as a call; gives it back if no message can be it.
pub(crate) async fn send(ask: Ask<'_>) -> Result<Answer, Ask<'_>> {
    let is_plain = ask.request.extensions().get::<AsHttp>().is_some();
    let method = method_of(&ask.request).filter(|_| !is_plain);
    let Some((method, operation)) = method else {
        return Err(ask);
    };
    let Ask { app, request } = ask;
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let media = parts.headers.get("content-type");
    let is_json = media.is_some_and(|media| media == "application/json") && !body.is_empty();
    let query = parts.uri.query().unwrap_or_default();
    let message = (is_json || body.is_empty())
        .then(|| message_of(&method, operation, (parts.uri.path(), query), &body))
        .flatten();
    let Some(message) = message else {
        let request = Request::from_parts(parts, body.into());
        return Err(Ask { app, request });
    };
    parts.method = Method::POST;
    let service = method.parent_service().full_name().to_owned();
    parts.uri = format!("/{service}/{}", method.name()).parse().unwrap();
    parts
        .headers
        .insert("content-type", "application/grpc".parse().unwrap());
    let body = Body::from(frame(&message.encode_to_vec()));
    let called = app.router.clone().oneshot(Request::from_parts(parts, body));
    let reply = Reply::of(called.await.unwrap()).await;
    let answer = answer_of(reply, &method, operation);
    app.learn(&answer.body);
    assert!(answer.headers.contains_key("request-id"));
    Ok(answer)
}

/// The method of a request, and the description of its operation.
fn method_of(request: &Request<Body>) -> Option<(MethodDescriptor, &'static Value)> {
    let verb = request.method().as_str().to_ascii_lowercase();
    let operation = &document()["paths"][template_of(request.uri().path())?][verb];
    let method = crate::grpc::method_of(operation["operationId"].as_str()?)?;
    (!method.is_server_streaming()).then_some((method, operation))
}

fn message_of(
    method: &MethodDescriptor,
    operation: &Value,
    (path, query): (&str, &str),
    body: &[u8],
) -> Option<DynamicMessage> {
    let needs_body = operation["requestBody"]["required"] == true;
    let mut members: Map<String, Value> = match body {
        [] if needs_body => return None,
        [] => Map::new(),
        body => serde_json::from_slice(body).ok()?,
    };
    // An empty list is none to a message; a cancellation alone says which it is.
    let mut lists = members.values().filter_map(Value::as_array);
    if method.name() != "CancelBooking" && lists.any(Vec::is_empty) {
        return None;
    }
    let template = template_of(path).unwrap();
    for (name, given) in template.split('/').zip(path.split('/')) {
        if let Some(name) = name.strip_prefix('{') {
            let name = name.trim_end_matches('}').to_owned();
            members.insert(name, json!(decoded(given)?));
        }
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let known = operation["parameters"].as_array().unwrap().iter();
        let mut known = known.filter(|known| known["in"] == "query" && known["name"] == name);
        let value = match (name, known.next_back()?["schema"]["type"].as_str()?) {
            ("state", _) => value.split(',').map(Value::from).collect(),
            (_, "string") => json!(value),
            _ => serde_json::from_str(value).ok()?,
        };
        if members.insert(name.to_owned(), value).is_some() {
            return None;
        }
    }
    say(method, &mut members);
    let options = DeserializeOptions::new();
    DynamicMessage::deserialize_with_options(method.input(), Value::Object(members), &options).ok()
}

/// A segment with its percent signs decoded.
fn decoded(segment: &str) -> Option<String> {
    let mut parts = segment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// What messages say in their own way.
fn say(method: &MethodDescriptor, members: &mut Map<String, Value>) {
    if let Some(chart) = members.remove("chart") {
        members.insert("chart_json".to_owned(), chart.to_string().into());
    }
    if method.name() == "CancelBooking" && !members.contains_key("units") {
        members.insert("all_lines".to_owned(), true.into());
    }
    if let Some(policy) = members.get_mut("policy").and_then(Value::as_object_mut) {
        let nulls = policy.iter().filter(|(_, value)| value.is_null());
        let nulls: Vec<String> = nulls.map(|(name, _)| name.clone()).collect();
        policy.retain(|_, value| !value.is_null());
        if !nulls.is_empty() {
            policy.insert("clear".to_owned(), nulls.into());
        }
    }
}

/// The answer that the operation would have given.
fn answer_of(reply: Reply, method: &MethodDescriptor, operation: &Value) -> Answer {
    let Reply {
        mut headers,
        message,
        code,
        details,
    } = reply;
    if code == 0 {
        let responses = operation["responses"].as_object().unwrap();
        let mut done = responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'));
        let (status, response) = done.next_back().unwrap();
        let schema = &response["content"]["application/json"]["schema"];
        let message = DynamicMessage::decode(method.output(), message).unwrap();
        return Answer {
            status: status.parse().unwrap(),
            headers,
            body: json_of(&message, schema).to_string().into(),
        };
    }
    let schema = &document()["components"]["schemas"]["Problem"];
    let mut body = json_of(&problem_of(&details), schema);
    if body["code"] == "unit_unavailable" && body["alternatives"].is_null() {
        body["alternatives"] = json!([]);
    }
    let media = "application/problem+json".parse().unwrap();
    headers.insert("content-type", media);
    Answer {
        status: body["status"].to_string().parse().unwrap(),
        headers,
        body: body.to_string().into(),
    }
}

fn problem_of(details: &[u8]) -> DynamicMessage {
    let status = tonic_types::pb::Status::decode(details).unwrap();
    let name = "soldonce.v1.Problem";
    let mut details = status.details.iter();
    let problem = details
        .find(|detail| detail.type_url.ends_with(name))
        .unwrap();
    let descriptor = pool().get_message_by_name(name).unwrap();
    DynamicMessage::decode(descriptor, problem.value.as_slice()).unwrap()
}

/// A message as the schema's JSON.
fn json_of(message: &DynamicMessage, schema: &Value) -> Value {
    if let Some(chart) = message.get_field_by_name("chart_json") {
        return serde_json::from_str(chart.as_str().unwrap()).unwrap();
    }
    let schema = resolved(schema);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut members = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap() {
        let field = field_of(&message.descriptor(), name);
        let is_said = required.contains(&json!(name)) && !field.supports_presence();
        if is_said || message.has_field(&field) {
            members.insert(name.clone(), value_of(&message.get_field(&field), property));
        } else if is_nullable(property) {
            members.insert(name.clone(), Value::Null);
        }
    }
    Value::Object(members)
}

/// The field of a JSON member.
pub(crate) fn field_of(message: &MessageDescriptor, name: &str) -> FieldDescriptor {
    let field = message.get_field_by_json_name(name);
    let field = field.or_else(|| message.get_field_by_name(name));
    field.unwrap_or_else(|| panic!("{} has no field for {name}", message.full_name()))
}

/// What a schema refers to; of a value or null, the value.
pub(crate) fn resolved(schema: &Value) -> &Value {
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    let choice = choices
        .into_iter()
        .find(|choice| choice["$ref"].is_string());
    let schema = choice.unwrap_or(schema);
    match schema["$ref"].as_str() {
        Some(reference) => {
            let name = reference.rsplit('/').next().unwrap();
            &document()["components"]["schemas"][name]
        }
        None => schema,
    }
}

fn is_nullable(schema: &Value) -> bool {
    let null = json!("null");
    let types = schema["type"].as_array();
    let choices = schema["oneOf"].as_array().into_iter().flatten();
    types.is_some_and(|types| types.contains(&null))
        || choices.into_iter().any(|choice| choice["type"] == null)
}

fn value_of(value: &prost_reflect::Value, schema: &Value) -> Value {
    if let Some(message) = value.as_message() {
        if message.descriptor().name() != "Timestamp" {
            return json_of(message, schema);
        }
        let time: Timestamp = message.transcode_to().unwrap();
        let nanos = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
        let time = jiff::Timestamp::from_nanosecond(nanos).unwrap();
        return json!(format!("{time:.3}"));
    }
    if let Some(values) = value.as_list() {
        let items = values.iter();
        return items
            .map(|value| value_of(value, &schema["items"]))
            .collect();
    }
    if let Some(entries) = value.as_map() {
        let entry = |(key, value): (&MapKey, _)| {
            let key = key.as_str().unwrap().to_owned();
            (key, value_of(value, &schema["additionalProperties"]))
        };
        return Value::Object(entries.iter().map(entry).collect());
    }
    // Numbers, texts and flags are as they are written.
    serde_json::from_str(&scalar(value)).unwrap()
}

fn scalar(value: &prost_reflect::Value) -> String {
    let number = |number: Option<i128>| number.map(|number| number.to_string());
    let text = value.as_str().map(|text| json!(text).to_string());
    let text = text.or_else(|| value.as_bool().map(|flag| flag.to_string()));
    let text = text.or_else(|| number(value.as_i64().map(i128::from)));
    let text = text.or_else(|| number(value.as_u32().map(i128::from)));
    let text = text.or_else(|| number(value.as_u64().map(i128::from)));
    text.unwrap_or_else(|| panic!("no message has a {value:?}"))
}
