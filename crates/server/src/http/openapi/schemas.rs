//! The schemas of bodies: of each type that an operation takes or gives, with what they refer to.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use utoipa::openapi::{RefOr, Schema};

use super::super::frames::FrameBody;
use super::super::operation::{Content, Operation, SchemaOf};
use super::super::shapes::{BookingMessage, EventMessage, HoldMessage, Problem};
use super::rules;

/// Collects every schema by name.
pub(super) fn all(operations: &[Operation]) -> Map<String, Value> {
    let mut found: Vec<(String, RefOr<Schema>)> = Vec::new();
    let mut timed = BTreeSet::new();
    for schema in [
        SchemaOf::new::<HoldMessage>(),
        SchemaOf::new::<BookingMessage>(),
        SchemaOf::new::<EventMessage>(),
        SchemaOf::new::<FrameBody<'_>>(),
        SchemaOf::new::<Problem>(),
    ] {
        (schema.add)(&mut found);
    }
    for operation in operations {
        if let Some(body) = &operation.body {
            (body.schema.add)(&mut found);
        }
        for answer in &operation.answers {
            match answer.content {
                Content::Timed(schema) => {
                    (schema.add)(&mut found);
                    timed.insert((schema.name)());
                }
                Content::Json(schema) | Content::Events(_, schema) => (schema.add)(&mut found),
                Content::Media(_) | Content::Nothing => {}
            }
        }
    }
    let mut all: Map<String, Value> = found
        .into_iter()
        .filter_map(|(name, schema)| Some((name, serde_json::to_value(schema).ok()?)))
        .collect();
    add_time(&mut all, &timed);
    rules::add(&mut all);
    all
}

/// Adds the server's time to what answers are: required where it is the answer itself and nothing else.
fn add_time(all: &mut Map<String, Value>, timed: &BTreeSet<String>) {
    let text = Value::Object(all.clone()).to_string();
    for name in timed {
        let is_part = text.contains(&format!("\"#/components/schemas/{name}\""));
        let Some(schema) = all.get_mut(name) else {
            continue;
        };
        let mut time = json!({"type": "string", "format": "date-time"});
        if is_part {
            let about = json!({"description": "Left out inside other bodies."});
            rules::merge(&mut time, about);
        } else if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.push("server_time".into());
        }
        if let Some(properties) = schema.get_mut("properties") {
            rules::merge(properties, json!({ "server_time": time }));
        }
    }
}
