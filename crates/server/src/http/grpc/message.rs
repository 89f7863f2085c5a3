//! Messages and JSON: the request that a call stands for, and an answer as a message. Fields have the names of the JSON
//! members, or `json_name` where that is a word of a language. What JSON says otherwise: a chart is a JSON text
//! (`chart_json`), `clear` of a policy names the members that are `null`, and `all_lines` stands for no list of units.

use std::fmt::Write;

use axum::http::{HeaderValue, Uri};
use bytes::Bytes;
use prost_reflect::prost::Message;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, MessageDescriptor, ReflectMessage, SerializeOptions,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tonic::Status;

use super::Method;
use crate::http::problem::Problem;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

type Members = Map<String, Value>;

/// Returns the address and the body of the request that a call stands for.
pub(super) fn request(method: &Method, sent: &[u8]) -> Result<(Uri, Bytes), Problem> {
    let message = DynamicMessage::decode(method.descriptor.input(), sent);
    let message = message.map_err(|error| Problem::invalid("message", error))?;
    let mut members = members_of(&message)?;
    let address = address(method, &mut members);
    let address = address.parse();
    let address = address.map_err(|_| Problem::invalid("message", "its ids are too long"))?;
    if !method.takes_body {
        return Ok((address, Bytes::new()));
    }
    say_lines(&message, &mut members)?;
    for part in members.values_mut().filter_map(Value::as_object_mut) {
        clear(part);
    }
    Ok((address, body(members)?))
}

fn members_of(message: &DynamicMessage) -> Result<Members, Problem> {
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true);
    let written = message.serialize_with_options(serde_json::value::Serializer, &options);
    match written {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Ok(Members::new()),
        Err(error) => Err(Problem::invalid("message", error)),
    }
}

/// The path with its ids, and the query; their members are taken out.
fn address(method: &Method, members: &mut Members) -> String {
    let mut address = String::new();
    for segment in method.route.path.split('/').skip(1) {
        address.push('/');
        let name = segment.strip_prefix('{');
        match name.and_then(|name| name.strip_suffix('}')) {
            Some(name) => push(&mut address, &text_of(members.remove(name))),
            None => address.push_str(segment),
        }
    }
    let input = method.descriptor.input();
    let mut mark = '?';
    for (name, ..) in method.route.query {
        let field = input.get_field_by_json_name(name);
        let field = field.as_ref().map_or(*name, |field| field.name());
        if let Some(value) = members.remove(field) {
            address.push(mark);
            address.push_str(name);
            address.push('=');
            push(&mut address, &text_of(Some(value)));
            mark = '&';
        }
    }
    address
}

fn text_of(value: Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(Value::Array(values)) => {
            let texts: Vec<String> = values
                .into_iter()
                .map(|value| text_of(Some(value)))
                .collect();
            texts.join(",")
        }
        Some(value) => value.to_string(),
    }
}

fn push(address: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~,".contains(&byte) {
            address.push(char::from(byte));
        } else {
            // Writing to memory does not fail.
            let written = write!(address, "%{byte:02X}");
            debug_assert!(written.is_ok());
        }
    }
}

/// An empty list of lines is none to the operation, not all of them: a message cannot say the difference.
fn say_lines(message: &DynamicMessage, members: &mut Members) -> Result<(), Problem> {
    if message
        .descriptor()
        .get_field_by_name("all_lines")
        .is_none()
    {
        return Ok(());
    }
    let is_all = members.remove("all_lines").is_some();
    match (is_all, members.contains_key("units")) {
        (true, true) => {
            let rule = "name `units`, or set `all_lines`, not both";
            Err(Problem::invalid("all_lines", rule))
        }
        (true, false) => Ok(()),
        (false, _) => {
            members
                .entry("units")
                .or_insert_with(|| Value::Array(Vec::new()));
            Ok(())
        }
    }
}

fn clear(part: &mut Members) {
    if let Some(Value::Array(names)) = part.remove("clear") {
        let names = names.iter().filter_map(Value::as_str);
        part.extend(names.map(|name| (name.to_owned(), Value::Null)));
    }
}

fn body(mut members: Members) -> Result<Bytes, Problem> {
    let chart = members.remove("chart_json");
    // Writing to memory does not fail.
    let rest = serde_json::to_string(&members).unwrap_or_default();
    let Some(chart) = chart else {
        return Ok(rest.into());
    };
    let chart = text_of(Some(chart));
    // It may not be more than a value: the members behind it are others.
    let is_value: Result<&RawValue, _> = serde_json::from_str(&chart);
    is_value.map_err(|error| Problem::invalid("chart_json", error))?;
    let rest = rest.strip_prefix('{').unwrap_or_default();
    let comma = if rest == "}" { "" } else { "," };
    Ok(["{\"chart\":", &chart, comma, rest].concat().into())
}

/// Returns an answer's JSON as a message. Members that it does not have are left out.
pub(super) fn written(descriptor: MessageDescriptor, json: &[u8]) -> Result<Bytes, Status> {
    if let Some(chart) = descriptor.get_field_by_name("chart_json") {
        let mut message = DynamicMessage::new(descriptor);
        let text = String::from_utf8_lossy(json).into_owned();
        message.set_field(&chart, prost_reflect::Value::String(text));
        return Ok(message.encode_to_vec().into());
    }
    let read = read(descriptor, &mut serde_json::Deserializer::from_slice(json));
    read.map(|message| message.encode_to_vec().into())
}

/// Returns JSON as a message.
pub(super) fn read<'de, D>(descriptor: MessageDescriptor, from: D) -> Result<DynamicMessage, Status>
where
    D: serde::Deserializer<'de>,
    D::Error: std::fmt::Display,
{
    let options = DeserializeOptions::new().deny_unknown_fields(false);
    let read = DynamicMessage::deserialize_with_options(descriptor, from, &options);
    read.map_err(|error| {
        tracing::error!(%error, "an answer is not as its message");
        Status::internal("the answer cannot be written; the request may have had its effect")
    })
}
