//! Messages and JSON: the request that a call stands for, and an answer as a message. Fields have the names of the JSON
//! members, or `json_name` where that is a word of a language. What JSON says otherwise: a chart is a JSON text
//! (`chart_json`), `clear` of a policy names the members that are `null`, and `all_lines` stands for no list of units.

use std::fmt::Write;

use axum::http::Uri;
use bytes::Bytes;
use prost_reflect::prost::encoding;
use serde::Deserializer;
use serde_json::Value;
use serde_json::value::RawValue;
use tonic::Status;

use super::read::{self, Fields};
use super::shape::Shape;
use super::write;
use crate::http::problem::Problem;
use crate::http::route::Route;

/// Returns the address of the request that a call stands for, and the fields of its body.
pub(super) fn request(route: Route, shape: &Shape, sent: &[u8]) -> Result<(Uri, Fields), Problem> {
    let fields = read::fields(shape, sent);
    let mut fields = fields.map_err(|error| Problem::invalid("message", error))?;
    let address = Uri::try_from(address(route, shape, &mut fields));
    let address = address.map_err(|_| Problem::invalid("message", "its ids are too long"))?;
    Ok((address, fields))
}

fn take(shape: &Shape, fields: &mut Fields, name: &str) -> Option<Value> {
    let json = fields.get_mut(shape.place_of(name)?)?.take()?;
    serde_json::from_str(&json).ok()
}

/// Builds the path with its ids, and the query. Their fields are taken out.
fn address(route: Route, shape: &Shape, fields: &mut Fields) -> String {
    let mut address = String::new();
    for segment in route.path.split('/').skip(1) {
        address.push('/');
        let name = segment.strip_prefix('{');
        match name.and_then(|name| name.strip_suffix('}')) {
            Some(name) => push(&mut address, &text_of(take(shape, fields, name))),
            None => address.push_str(segment),
        }
    }
    let mut mark = '?';
    for (name, ..) in route.query {
        if let Some(value) = take(shape, fields, name) {
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
            let texts = values.into_iter().map(|value| text_of(Some(value)));
            texts.collect::<Vec<_>>().join(",")
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
            write!(address, "%{byte:02X}").ok();
        }
    }
}

/// Sets a missing list of lines to the empty one, which to the operation is none and not all of
/// them: a message cannot say the difference.
fn say_lines(shape: &Shape, fields: &mut Fields) -> Result<(), Problem> {
    if shape.field("all_lines").is_none() {
        return Ok(());
    }
    let is_all = take(shape, fields, "all_lines").is_some();
    let units = shape.place_of("units");
    let units = units.and_then(|place| fields.get_mut(place));
    match (is_all, units) {
        (true, Some(Some(_))) => {
            let rule = "name `units`, or set `all_lines`, not both";
            Err(Problem::invalid("all_lines", rule))
        }
        (false, Some(units)) => {
            units.get_or_insert_with(|| "[]".to_owned());
            Ok(())
        }
        (true, _) | (_, None) => Ok(()),
    }
}

/// Returns the body of the request: what [`request`] left of the fields.
pub(super) fn body(shape: &Shape, mut fields: Fields) -> Result<Bytes, Problem> {
    say_lines(shape, &mut fields)?;
    let chart = take(shape, &mut fields, "chart_json");
    let rest = read::object(shape, fields);
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
pub(super) fn written(shape: &Shape, json: &[u8]) -> Result<Bytes, Status> {
    if let Some(chart) = shape.field("chart_json") {
        let text = String::from_utf8_lossy(json).into_owned();
        let mut message = Vec::new();
        encoding::string::encode(chart.number, &text, &mut message);
        return Ok(message.into());
    }
    read_json(shape, &mut serde_json::Deserializer::from_slice(json))
}

pub(super) fn read_json<'de, D>(shape: &Shape, from: D) -> Result<Bytes, Status>
where
    D: Deserializer<'de>,
    D::Error: std::fmt::Display,
{
    let message = write::message(shape, from).map_err(|error| {
        tracing::error!(%error, "an answer is not as its message");
        Status::internal("the answer cannot be written; the request may have had its effect")
    });
    message.map(Bytes::from)
}
