//! JSON as messages: an answer's members are written to the wire as they are read.

use std::collections::HashMap;
use std::fmt::{Formatter, Result as Written};
use std::str::FromStr;

use prost_reflect::prost::bytes::BufMut;
use prost_reflect::prost::encoding::{self, WireType};
use prost_reflect::prost_types::Timestamp;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

use super::shape::{Field, Kind, Shape};
use crate::http::json::Str;

/// Room for a message: most fit.
pub(super) const MESSAGE_BYTES: usize = 512;

/// Returns JSON as a message. Members that it does not have are left out.
pub(super) fn message<'de, D>(shape: &Shape, json: D) -> Result<Vec<u8>, D::Error>
where
    D: Deserializer<'de>,
{
    let mut to = Vec::with_capacity(MESSAGE_BYTES);
    json.deserialize_map(Members { shape, to: &mut to })?;
    Ok(to)
}

/// Writes JSON as the value of a field.
pub(super) fn value<'de, D>(field: &Field, json: D, to: &mut Vec<u8>) -> Result<(), D::Error>
where
    D: Deserializer<'de>,
{
    Member { field, to }.deserialize(json)
}

/// Writes a field of these bytes.
pub(super) fn put(to: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_key(to, number, value.len());
    to.put_slice(value);
}

/// Writes a field of what `write` writes.
pub(super) fn put_message(to: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = to.len();
    write(to);
    enclose(to, number, begin);
}

/// Makes what was written from `begin` on the value of a field: its key and its length go before it.
fn enclose(to: &mut Vec<u8>, number: u32, begin: usize) {
    let length = to.len().saturating_sub(begin);
    put_key(to, number, length);
    let before = to.len().saturating_sub(begin + length);
    if let Some(written) = to.get_mut(begin..) {
        written.rotate_right(before);
    }
}

fn put_key(to: &mut Vec<u8>, number: u32, length: usize) {
    encoding::encode_key(number, WireType::LengthDelimited, to);
    // A length is no longer than memory.
    encoding::encode_varint(u64::try_from(length).unwrap_or(u64::MAX), to);
}

/// Writes the members of an object as the fields of a message.
struct Members<'a> {
    shape: &'a Shape,
    to: &'a mut Vec<u8>,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, to: &mut Formatter<'_>) -> Written {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<Str<'de>>()? {
            match self.shape.field(&name.0) {
                Some(field) => members.next_value_seed(Member { field, to: self.to })?,
                None => {
                    let IgnoredAny = members.next_value()?;
                }
            }
        }
        Ok(())
    }
}

/// Writes a value as a field; `null` is nothing.
struct Member<'a> {
    field: &'a Field,
    to: &'a mut Vec<u8>,
}

impl Member<'_> {
    fn number(self, value: u64) {
        if value != 0 || self.field.sends_default() {
            encoding::uint64::encode(self.field.number, &value, self.to);
        }
    }

    fn other<E: Error>(&self) -> E {
        E::invalid_type(Unexpected::Other("a value of another kind"), self)
    }

    fn bytes(self, value: &[u8]) {
        if !value.is_empty() || self.field.sends_default() {
            put(self.to, self.field.number, value);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Member<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Member<'_> {
    type Value = ();

    fn expecting(&self, to: &mut Formatter<'_>) -> Written {
        write!(to, "the value of `{}`", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        if !matches!(self.field.kind, Kind::Bool) {
            return Err(self.other());
        }
        self.number(value.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        if !matches!(self.field.kind, Kind::Unsigned | Kind::Signed) {
            return Err(self.other());
        }
        self.number(value);
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        if !matches!(self.field.kind, Kind::Signed) {
            return Err(self.other());
        }
        // As negative numbers are on the wire.
        self.number(value.cast_unsigned());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        if matches!(self.field.kind, Kind::Text) {
            self.bytes(value.as_bytes());
        } else if matches!(self.field.kind, Kind::Time) {
            let time = Timestamp::from_str(value).map_err(E::custom)?;
            encoding::message::encode(self.field.number, &time, self.to);
        } else {
            return Err(self.other());
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let field = self.field;
        while values
            .next_element_seed(Member {
                field,
                to: &mut *self.to,
            })?
            .is_some()
        {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        match &self.field.kind {
            Kind::Message(shape) => {
                let (begin, to) = (self.to.len(), &mut *self.to);
                Members { shape, to }.visit_map(members)?;
                enclose(self.to, self.field.number, begin);
            }
            Kind::Numbers => {
                let numbers = HashMap::deserialize(MapAccessDeserializer::new(members))?;
                encoding::hash_map::encode(
                    encoding::string::encode,
                    encoding::string::encoded_len,
                    encoding::int64::encode,
                    encoding::int64::encoded_len,
                    self.field.number,
                    &numbers,
                    self.to,
                );
            }
            Kind::Text | Kind::Bool | Kind::Unsigned | Kind::Signed | Kind::Time => {
                return Err(self.other());
            }
        }
        Ok(())
    }
}
