//! Messages as JSON: the fields of a call's message, as the members of a request's body.

use std::collections::{BTreeSet, HashMap};

use prost_reflect::prost::encoding::{self, DecodeContext, WireType};
use prost_reflect::prost::{DecodeError, Message};
use prost_reflect::prost_types::Timestamp;
use serde::Serialize;

use super::shape::{Field, Kind, Shape};

/// Room for an object: most fit.
const OBJECT_BYTES: usize = 128;

/// The JSON of each field that a message has, at its place in the table.
pub(super) type Fields = Vec<Option<String>>;

pub(super) fn fields(shape: &Shape, mut sent: &[u8]) -> Result<Fields, DecodeError> {
    let mut found = Vec::new();
    found.resize_with(shape.fields.len(), FieldValues::default);
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

/// Returns fields as an object. `clear` names members that are `null`, also where the message has a value for them.
pub(super) fn object(shape: &Shape, mut fields: Fields) -> String {
    let cleared = shape
        .place_of("clear")
        .and_then(|place| fields.get_mut(place)?.take());
    let cleared = cleared.and_then(|names| serde_json::from_str(&names).ok());
    let cleared: BTreeSet<String> = cleared.unwrap_or_default();
    let mut object = String::with_capacity(OBJECT_BYTES);
    object.push('{');
    let mut push = |key: &str, json: &str| {
        if object.len() > 1 {
            object.push(',');
        }
        object.extend([key, json]);
    };
    for (field, json) in shape.fields.iter().zip(fields) {
        let json = json.filter(|_| !cleared.contains(&field.name));
        if let Some(json) = json {
            push(&field.key, &json);
        }
    }
    for name in &cleared {
        push(&text(name), ":null");
    }
    object.push('}');
    object
}

fn text(value: impl Serialize) -> String {
    // Texts and numbers can always be written.
    serde_json::to_string(&value).unwrap_or_default()
}

impl Kind {
    /// Returns a value that is a message of its own.
    fn read(&self, message: &[u8]) -> Result<String, DecodeError> {
        if let Self::Message(shape) = self {
            return Ok(object(shape, fields(shape, message)?));
        }
        Ok(text(Timestamp::decode(message)?.to_string()))
    }
}

/// What was found of a field so far.
#[derive(Default)]
struct FieldValues {
    /// The last value, or those of a list with commas.
    json: String,
    numbers: HashMap<String, i64>,
    /// The parts of one message: put together, they are the merged one.
    message: Option<Vec<u8>>,
}

impl FieldValues {
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
            Kind::Numbers => {
                encoding::check_wire_type(WireType::LengthDelimited, wire)?;
                let (key, value) = (encoding::string::merge, encoding::int64::merge);
                encoding::hash_map::merge(key, value, &mut self.numbers, sent, context)?;
            }
            Kind::Time | Kind::Message(_) => {
                let mut part = Vec::new();
                encoding::bytes::merge(wire, &mut part, sent, context)?;
                if field.is_list() {
                    self.push(field.kind.read(&part)?);
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
            self.push(text(value));
        }
    }

    fn push(&mut self, json: String) {
        if self.json.is_empty() {
            self.json = json;
        } else {
            self.json.extend([",", &json]);
        }
    }

    fn json(self, field: &Field) -> Result<Option<String>, DecodeError> {
        if let Some(message) = self.message {
            return field.kind.read(&message).map(Some);
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

#[cfg(test)]
mod tests {
    use super::super::pool;
    use super::*;

    fn shape(name: &str) -> Shape {
        Shape::of(&pool().get_message_by_name(name).unwrap()).unwrap()
    }

    #[test]
    fn what_is_cleared_is_null_also_where_it_has_a_value() {
        let shape = shape("soldonce.v1.Policy");
        let number = |name| shape.field(name).unwrap().number;
        let mut sent = Vec::new();
        encoding::uint64::encode(number("hold_ttl_ms"), &5, &mut sent);
        for _ in 0..2 {
            encoding::string::encode(number("clear"), &"hold_ttl_ms".to_owned(), &mut sent);
        }
        let fields = fields(&shape, &sent).unwrap();
        assert_eq!(object(&shape, fields), r#"{"hold_ttl_ms":null}"#);
    }

    #[test]
    fn parts_of_a_message_are_merged() {
        let shape = shape("soldonce.v1.CreateEventRequest");
        let number = shape.field("starts_at").unwrap().number;
        let mut sent = Vec::new();
        for (seconds, nanos) in [(7, 0), (0, 5_000_000)] {
            encoding::message::encode(number, &Timestamp { seconds, nanos }, &mut sent);
        }
        let fields = fields(&shape, &sent).unwrap();
        let expected = r#"{"starts_at":"1970-01-01T00:00:07.005Z"}"#;
        assert_eq!(object(&shape, fields), expected);
    }
}
