//! Names of idempotency records (model.md 8): caller, route and key, with the request's
//! fingerprint. A body is compared by its meaning, not by white space, the order of members or
//! escapes.

use std::fmt;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use soldonce_core::CallerId;

use crate::ledger::{Fingerprint, RequestKey, ScopedKey};

impl RequestKey {
    /// Builds the name for the key `key` of a caller on a route (method and path template), and the
    /// fingerprint of the request with these ids in its path and this JSON body.
    pub fn new(caller: CallerId, route: &str, key: &str, path: &[&str], body: &[u8]) -> Self {
        let mut scope = Sha256::new();
        for part in [&caller.bytes()[..], route.as_bytes(), key.as_bytes()] {
            add_bytes(&mut scope, part);
        }
        let mut request = Sha256::new();
        for id in path {
            add_bytes(&mut request, id.as_bytes());
        }
        request.update(fingerprint(body));
        Self {
            scoped: ScopedKey(first_half(scope)),
            fingerprint: Fingerprint(first_half(request)),
        }
    }
}

/// The idempotency key of a call.
#[derive(Clone, Debug)]
pub enum CallKey {
    /// As the name of its record.
    Named(RequestKey),
    /// As it was sent. Its name is computed when the ledger is asked: most refusals of a rush come before.
    Sent {
        /// The route: method and path template.
        route: String,
        key: String,
        /// The ids in its path.
        path: Vec<String>,
        body: Bytes,
    },
}

impl From<RequestKey> for CallKey {
    fn from(key: RequestKey) -> Self {
        Self::Named(key)
    }
}

impl CallKey {
    /// Returns the name of its record for this caller.
    pub(crate) fn name(&self, caller: CallerId) -> RequestKey {
        match self {
            Self::Named(key) => *key,
            Self::Sent {
                route,
                key,
                path,
                body,
            } => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                RequestKey::new(caller, route, key, &path, body)
            }
        }
    }
}

fn first_half(hash: Sha256) -> [u8; 16] {
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// Hashes the meaning of a JSON text by SHA-256; its bytes when it is no JSON.
pub fn fingerprint(json: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut from = serde_json::Deserializer::from_slice(json);
    let whole = Meaning(&mut hash).deserialize(&mut from).is_ok() && from.end().is_ok();
    if !whole {
        hash = Sha256::new();
        add_bytes(&mut hash, json);
    }
    hash.finalize().into()
}

/// Adds the length first, so that no two sequences of parts are hashed alike.
fn add_bytes(hash: &mut Sha256, bytes: &[u8]) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    hash.update(length.to_be_bytes());
    hash.update(bytes);
}

/// Adds one JSON value to a hash. Members of an object are hashed one by one and sorted by name, so
/// nothing is kept but their hashes, however large the value.
struct Meaning<'a>(&'a mut Sha256);

impl<'de> DeserializeSeed<'de> for Meaning<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Meaning<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.0.update(b"n");
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.0.update(if value { b"t" } else { b"f" });
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.update(b"+");
        self.0.update(value.to_be_bytes());
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.update(b"-");
        self.0.update(value.to_be_bytes());
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.update(b".");
        self.0.update(value.to_bits().to_be_bytes());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.0.update(b"s");
        add_bytes(self.0, value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        self.0.update(b"[");
        while values.next_element_seed(Meaning(&mut *self.0))?.is_some() {}
        self.0.update(b"]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let mut members: Vec<(Name, [u8; 32])> = Vec::new();
        while let Some(name) = values.next_key()? {
            let mut member = Sha256::new();
            values.next_value_seed(Meaning(&mut member))?;
            members.push((name, member.finalize().into()));
        }
        members.sort();
        self.0.update(b"{");
        for (Name(name), hash) in members {
            add_bytes(self.0, name.as_bytes());
            self.0.update(hash);
        }
        self.0.update(b"}");
        Ok(())
    }
}

#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        fingerprint(a.as_bytes()) == fingerprint(b.as_bytes())
    }

    #[test]
    fn the_same_meaning_has_the_same_fingerprint() {
        let plain = r#"{"a":[1,{"x":null,"y":"z"}],"b":true}"#;
        assert!(same(
            plain,
            "{ \"b\" : true,\n\"a\":[1, {\"y\":\"\\u007a\",\"x\":null}] }"
        ));
    }

    #[test]
    fn another_meaning_has_another_one() {
        let texts = r#"{} | [] | null | 0 | "" | [0] | [[0]] | [0,0] | -1 | 1 | 1.5 | true | false | {"a":1}
            | {"a":2} | {"b":1} | {"a":{"b":1}} | {"a":1,"b":1} | ["a","b"] | ["ab",""] | not json | { | {} {}"#;
        let texts: Vec<&str> = texts.split('|').map(str::trim).collect();
        for (at, a) in texts.iter().enumerate() {
            for b in &texts[..at] {
                assert!(!same(a, b), "{a} and {b}");
            }
        }
    }

    #[test]
    fn a_record_is_named_by_caller_route_and_key() {
        let key = |caller, route, key| {
            RequestKey::new(CallerId::from_bits(caller), route, key, &["x"], b"{}").scoped
        };
        let first = key(1, "POST /a", "k");
        assert_eq!(first, key(1, "POST /a", "k"));
        for other in [
            key(2, "POST /a", "k"),
            key(1, "POST /b", "k"),
            key(1, "POST /a", "l"),
            key(1, "POST /ak", ""),
        ] {
            assert_ne!(first, other);
        }
        let request = |path: &[&str], body: &[u8]| {
            RequestKey::new(CallerId::from_bits(1), "r", "k", path, body).fingerprint
        };
        assert_eq!(request(&["a"], b"{}"), request(&["a"], b" { } "));
        assert_ne!(request(&["a"], b"{}"), request(&["b"], b"{}"));
        assert_ne!(request(&["a"], b"{}"), request(&["a"], b"[]"));
    }
}
