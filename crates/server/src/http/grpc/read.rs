//! Messages as JSON: the fields of a call's message, as the members of a request's body.

use std::collections::HashMap;

use prost_reflect::prost::DecodeError;
use prost_reflect::prost::encoding::{self, DecodeContext, WireType};
use prost_reflect::prost_types::Timestamp;
use serde::Serialize;

use super::shape::{Field, Kind, Shape};

/// The JSON of each field that a message has, at its place in the table.
pub(super) type Fields = Vec<Option<String>>;

/// Returns the fields that a message has.
pub(super) fn fields(shape: &Shape, mut sent: &[u8]) -> Result<Fields, DecodeError> {
    let mut found = Vec::new();
    found.resize_with(shape.fields.len(), Found::default);
    while !sent.is_empty() {
        let (number, wire) = encoding::decode_key(&mut sent)?;
        let place = shape.place(number);
        let known = place.and_then(|place| shape.fields.get(place).zip(found.get_mut(place)));
        match known {
            Some((field, found)) => found.take(field, wire, &mut sent)?,
            None => encoding::skip_field(wire, number, &mut sent, DecodeContext::default())?,
        }
    }
    let found = found.into_iter().zip(&shape.fields);
    found.map(|(found, field)| found.json(field)).collect()
}

/// Returns fields as an object. `clear` names members that are `null`, which a message cannot say.
pub(super) fn object(shape: &Shape, fields: Fields) -> String {
    let mut object = String::from("{");
    let mut push = |name: &str, json: &str| {
        if object.len() > 1 {
            object.push(',');
        }
        object.extend([&text(name), ":", json]);
    };
    for (field, json) in shape.fields.iter().zip(fields) {
        match (&*field.name, json) {
            (_, None) => {}
            ("clear", Some(names)) => {
                let names: Vec<String> = serde_json::from_str(&names).unwrap_or_default();
                for name in &names {
                    push(name, "null");
                }
            }
            (name, Some(json)) => push(name, &json),
        }
    }
    object.push('}');
    object
}

fn text(value: impl Serialize) -> String {
    // Texts and numbers can always be written.
    serde_json::to_string(&value).unwrap_or_default()
}

/// What was found of a field so far.
#[derive(Default)]
struct Found {
    /// The last value, or those of a list with commas.
    json: String,
    numbers: HashMap<String, i64>,
    /// The parts of one message: put together, they are the merged one.
    message: Option<Vec<u8>>,
}

impl Found {
    fn take(&mut self, field: &Field, wire: WireType, sent: &mut &[u8]) -> Result<(), DecodeError> {
        let context = DecodeContext::default();
        match &field.kind {
            Kind::Text => {
                let mut value = String::new();
                encoding::string::merge(wire, &mut value, sent, context)?;
                self.put(field, value);
            }
            Kind::Bool => {
                let mut value = false;
                encoding::bool::merge(wire, &mut value, sent, context)?;
                self.put(field, value);
            }
            Kind::Unsigned => {
                let mut value = 0;
                encoding::uint64::merge(wire, &mut value, sent, context)?;
                self.put(field, value);
            }
            Kind::Signed => {
                let mut value = 0;
                encoding::int64::merge(wire, &mut value, sent, context)?;
                self.put(field, value);
            }
            Kind::Time => {
                let mut value = Timestamp::default();
                encoding::message::merge(wire, &mut value, sent, context)?;
                self.put(field, value.to_string());
            }
            Kind::Numbers => {
                encoding::check_wire_type(WireType::LengthDelimited, wire)?;
                let (key, value) = (encoding::string::merge, encoding::int64::merge);
                encoding::hash_map::merge(key, value, &mut self.numbers, sent, context)?;
            }
            Kind::Message(shape) => {
                let mut part = Vec::new();
                encoding::bytes::merge(wire, &mut part, sent, context)?;
                if field.is_list() {
                    self.push(&object(shape, fields(shape, &part)?));
                } else {
                    self.message.get_or_insert_default().extend(part);
                }
            }
        }
        Ok(())
    }

    fn put<T: Serialize + Default + PartialEq>(&mut self, field: &Field, value: T) {
        if !field.is_list() {
            self.json.clear();
        }
        if field.sends_default() || value != T::default() {
            self.push(&text(value));
        }
    }

    fn push(&mut self, json: &str) {
        if !self.json.is_empty() {
            self.json.push(',');
        }
        self.json.push_str(json);
    }

    fn json(self, field: &Field) -> Result<Option<String>, DecodeError> {
        if let (Some(message), Kind::Message(shape)) = (self.message, &field.kind) {
            return Ok(Some(object(shape, fields(shape, &message)?)));
        }
        if !self.numbers.is_empty() {
            return Ok(Some(text(self.numbers)));
        }
        let is_set = !self.json.is_empty();
        Ok(is_set.then(|| {
            if field.is_list() {
                format!("[{}]", self.json)
            } else {
                self.json
            }
        }))
    }
}
