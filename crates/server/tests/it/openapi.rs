//! The API description: compared with the committed one, with the routes, and with every answer that
//! any test gets.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "JSON gets no new kinds of value"
)]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use axum::http::StatusCode;
use serde_json::Value;
use soldonce_server::{openapi, route_table};

use crate::harness::TestApp;

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

/// The document.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&openapi()).unwrap())
}

/// What is wrong with an answer by the description of its route.
pub(crate) fn judge(method: &str, path: &str, status: StatusCode, body: &Value) -> Option<String> {
    let template = template_of(path)?;
    let operation = &document()["paths"][&template][method.to_ascii_lowercase()];
    let response = &operation["responses"][status.as_str()];
    if !operation.is_null() && response.is_null() {
        let code = body["code"].as_str().unwrap_or_default();
        return Some(format!(
            "{method} {template} says nothing of {status} {code}"
        ));
    }
    if let Some(codes) = response["x-codes"].as_array()
        && !codes.contains(&body["code"])
    {
        return Some(format!(
            "{method} {template}: {} is not among {codes:?}",
            body["code"]
        ));
    }
    let content = response["content"].as_object()?.values().next()?;
    mismatch(&content["schema"], body, "answer")
}

/// What is wrong with a message by the description of its type, and by the example there.
pub(crate) fn judge_message(body: &Value) -> Option<String> {
    let kind = body["type"].as_str().unwrap_or_default();
    let described = &document()["webhooks"][kind]["post"]["requestBody"];
    let described = &described["content"]["application/json"];
    let members = |message: &Value| -> Vec<String> {
        let data = message["data"].as_object().unwrap();
        data.keys().cloned().collect()
    };
    assert_eq!(members(body), members(&described["example"]), "{kind}");
    mismatch(&described["schema"], body, "message")
}

/// The template of a path.
pub(crate) fn template_of(path: &str) -> Option<String> {
    let fits = |template: &&String| {
        let (mut wanted, mut given) = (template.split('/'), path.split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (Some(part), Some(other)) if part.starts_with('{') && !other.is_empty() => {}
                (Some(part), Some(other)) if part == other => {}
                _ => return false,
            }
        }
    };
    let paths = document()["paths"].as_object().unwrap();
    paths.keys().find(fits).cloned()
}

/// Where a value is not of a schema: enough of JSON Schema for the document's own.
fn mismatch(schema: &Value, value: &Value, place: &str) -> Option<String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap();
        let found = &document()["components"]["schemas"][name];
        return if found.is_null() {
            Some(format!("{place}: there is no schema {name}"))
        } else {
            mismatch(found, value, place)
        };
    }
    if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let wrong: Vec<_> = choices
            .iter()
            .map(|choice| mismatch(choice, value, place))
            .collect();
        return wrong
            .iter()
            .all(Option::is_some)
            .then(|| wrong[0].clone().unwrap());
    }
    if !is_of_type(&schema["type"], value) {
        return Some(format!("{place}: {value} is no {}", schema["type"]));
    }
    match value {
        Value::Object(members) if schema["properties"].is_object() => {
            let known = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().into_iter().flatten();
            let missing = required
                .filter_map(Value::as_str)
                .find(|name| !members.contains_key(*name));
            if let Some(name) = missing {
                return Some(format!("{place}: {name} is missing"));
            }
            members
                .iter()
                .find_map(|(name, member)| match known.get(name) {
                    Some(schema) => mismatch(schema, member, &format!("{place}.{name}")),
                    None => Some(format!("{place}: {name} is not described")),
                })
        }
        Value::Array(values) if schema["items"].is_object() => values
            .iter()
            .find_map(|value| mismatch(&schema["items"], value, &format!("{place}[]"))),
        Value::String(text) if schema["enum"].is_array() => {
            let words = schema["enum"].as_array().unwrap();
            (!words.contains(value)).then(|| format!("{place}: {text} is not one of {words:?}"))
        }
        _ => None,
    }
}

fn is_of_type(allowed: &Value, value: &Value) -> bool {
    let one = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    match allowed {
        Value::String(name) => one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(one),
        _ => true,
    }
}

#[test]
fn it_is_the_committed_one() {
    let fresh = openapi();
    if std::env::var_os("SOLDONCE_UPDATE").is_some() {
        std::fs::write(COMMITTED, &fresh).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    let hint = "the API changed: look at it, then run again with SOLDONCE_UPDATE=1";
    assert!(committed == fresh, "{hint}");
}

#[test]
fn every_route_is_in_it_and_nothing_else() {
    let routes: BTreeSet<(String, String, String)> = route_table()
        .iter()
        .map(|route| {
            let path = route.path.replace("{*", "{");
            (route.method.to_owned(), path, route.admission.to_owned())
        })
        .collect();
    let mut described = BTreeSet::new();
    for (path, methods) in document()["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let admission = operation["x-admission"].as_str().unwrap().to_owned();
            described.insert((method.to_ascii_uppercase(), path.clone(), admission));
        }
    }
    assert_eq!(routes, described);
}

#[test]
fn every_reference_leads_somewhere() {
    let text = document().to_string();
    let schemas = document()["components"]["schemas"].as_object().unwrap();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in schemas.keys() {
        let used = text.contains(&format!("#/components/schemas/{name}\""));
        assert!(used, "{name} is used by nothing");
    }
}

#[test]
fn each_answer_has_an_example_of_its_schema() {
    let examples = document()["components"]["examples"].as_object().unwrap();
    let mut unused: BTreeSet<&str> = examples.keys().map(String::as_str).collect();
    let paths = document()["paths"].as_object().unwrap().values();
    for operation in paths.flat_map(|methods| methods.as_object().unwrap().values()) {
        for response in operation["responses"].as_object().unwrap().values() {
            let content = &response["content"]["application/json"];
            let Some(reference) = content["examples"]["answer"]["$ref"].as_str() else {
                continue;
            };
            let name = reference.rsplit('/').next().unwrap();
            let example = examples.get(name).map(|example| &example["value"]);
            let example = example.unwrap_or_else(|| panic!("openapi/examples.json lacks {name}"));
            assert_eq!(mismatch(&content["schema"], example, name), None);
            unused.remove(name);
        }
    }
    assert!(unused.is_empty(), "examples of no answer: {unused:?}");
}

#[test]
fn each_message_and_stream_has_an_example_of_its_schema() {
    for (kind, message) in document()["webhooks"].as_object().unwrap() {
        let content = &message["post"]["requestBody"]["content"]["application/json"];
        assert_eq!(
            mismatch(&content["schema"], &content["example"], kind),
            None
        );
        assert_eq!(content["example"]["type"], kind.as_str());
        let data = &content["example"]["data"];
        assert_eq!(data["server_time"], Value::Null, "{kind}");
        let lines = data["lines"].as_array().into_iter().flatten();
        let total: i64 = lines.filter_map(|line| line["price"].as_i64()).sum();
        assert!(data["lines"].is_null() || data["total"] == total, "{kind}");
    }
    let paths = document()["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|methods| methods.as_object().unwrap().values());
    let streams = operations.map(|one| &one["responses"]["200"]["content"]["text/event-stream"]);
    let mut seen = 0;
    for stream in streams.filter(|stream| !stream.is_null()) {
        let (kind, data) = (&stream["example"]["event"], &stream["example"]["data"]);
        let of_kind = |one: &&Value| one["properties"]["event"]["enum"][0] == *kind;
        let schema = stream["schema"]["anyOf"]
            .as_array()
            .unwrap()
            .iter()
            .find(of_kind)
            .unwrap();
        let data: Value = serde_json::from_str(data.as_str().unwrap()).unwrap();
        assert_eq!(
            mismatch(
                &schema["properties"]["data"]["contentSchema"],
                &data,
                "a stream"
            ),
            None
        );
        seen += 1;
    }
    assert_eq!(seen, 2, "the feed and the watch of a lease");
}

/// A refusal that no operation names would lack in generated clients.
#[test]
fn each_rejection_is_answered_by_an_operation() {
    let paths = document()["paths"].as_object().unwrap();
    let operations = paths.values().filter_map(Value::as_object).flatten();
    let responses = operations.filter_map(|(_, operation)| operation["responses"].as_object());
    let codes = responses.flat_map(|responses| responses.values());
    let answered: BTreeSet<&str> = codes
        .filter_map(|response| response["x-codes"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let rejections = soldonce_core::REJECTION_CODES.iter().copied();
    let missing: Vec<&str> = rejections.filter(|code| !answered.contains(code)).collect();
    // Its notice is taken from the provider, who is not told.
    assert_eq!(missing, ["payment_mismatch"]);
}

#[test]
fn the_page_says_who_may_use_each_route() {
    let script = include_str!("../../web-docs/docs.js");
    for route in route_table() {
        let named = format!("\n  {}: \"", route.admission);
        assert!(script.contains(&named), "{named}");
    }
}

#[tokio::test]
async fn it_is_served_with_a_page_that_reads_it() {
    let app = TestApp::open().await;
    let served = app.get("/openapi.json").send().await.expect(StatusCode::OK);
    let tag = served.header("etag");
    let again = app.get("/openapi.json").header("if-none-match", tag);
    let again = again.send().await.expect(StatusCode::NOT_MODIFIED);
    assert_eq!((again.body.len(), again.header("etag")), (0, tag));
    assert_eq!(&served.json(), document());
    let page = app.get("/docs").send().await.expect(StatusCode::OK);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    for part in ["/docs/docs.js", "/docs/docs.css"] {
        assert!(page.text().contains(part));
        app.get(part).send().await.expect(StatusCode::OK);
    }
    app.get("/docs/none.js")
        .send()
        .await
        .refused(404, "not_found");
}
