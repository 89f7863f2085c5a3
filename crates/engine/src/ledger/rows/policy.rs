//! Prices and policies as JSON: every field of a policy by its name, times in milliseconds.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use soldonce_core::{
    Amount, POLICY_FIELDS, Policy, PolicyChange, PolicyField, PolicyKind, PolicyValue, Timestamp,
};

use super::Damaged;

const TABLE: &str = "events";

/// A policy as it was read from its row.
pub(crate) struct ReadPolicy {
    /// The fields that this build knows; one that the row lacks has its default.
    pub(crate) policy: Policy,
    /// The fields that only a newer build knows.
    pub(crate) unknown: Vec<String>,
}

struct Written<'a>(&'a Policy);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(POLICY_FIELDS.len()))?;
        for field in POLICY_FIELDS {
            match field.get(self.0) {
                PolicyValue::Null => map.serialize_entry(field.name, &())?,
                PolicyValue::Number(number) => map.serialize_entry(field.name, &number)?,
                PolicyValue::Time(time) => map.serialize_entry(field.name, &time.ms())?,
                PolicyValue::Flag(flag) => map.serialize_entry(field.name, &flag)?,
                PolicyValue::Word(word) => map.serialize_entry(field.name, word)?,
            }
        }
        map.end()
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = (PolicyChange, Vec<String>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut change, mut unknown) = (PolicyChange::default(), Vec::new());
        while let Some(name) = map.next_key::<String>()? {
            let Some(field) = PolicyField::named(&name) else {
                map.next_value::<IgnoredAny>()?;
                unknown.push(name);
                continue;
            };
            let value = map.next_value_seed(ValueOf(field))?;
            change.set(field, value).map_err(serde::de::Error::custom)?;
        }
        Ok((change, unknown))
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TimeOrWord {
    Time(i64),
    Word(String),
}

struct ValueOf(&'static PolicyField);

impl ValueOf {
    fn word<E: serde::de::Error>(&self, word: &str) -> Result<PolicyValue, E> {
        let unknown = || E::custom(format!("no such word: `{word}`"));
        self.0.word(word).ok_or_else(unknown)
    }
}

impl<'de> DeserializeSeed<'de> for ValueOf {
    type Value = PolicyValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<PolicyValue, D::Error> {
        let number = |number: Option<u64>| number.map_or(PolicyValue::Null, PolicyValue::Number);
        match self.0.kind {
            PolicyKind::Millis | PolicyKind::Count | PolicyKind::CountOrNull => {
                Option::deserialize(from).map(number)
            }
            PolicyKind::TimeOrNull => {
                let ms: Option<i64> = Option::deserialize(from)?;
                let time = |ms| PolicyValue::Time(Timestamp::from_ms(ms));
                Ok(ms.map_or(PolicyValue::Null, time))
            }
            // Null is the start of the event, also in rows that are older than this choice.
            PolicyKind::Deadline => match Option::deserialize(from)? {
                None => Ok(PolicyValue::Null),
                Some(TimeOrWord::Time(ms)) => Ok(PolicyValue::Time(Timestamp::from_ms(ms))),
                Some(TimeOrWord::Word(word)) => self.word(&word),
            },
            PolicyKind::Flag => bool::deserialize(from).map(PolicyValue::Flag),
            PolicyKind::Word(_) => self.word(&String::deserialize(from)?),
        }
    }
}

pub(crate) fn policy_to_json(policy: &Policy) -> Result<String, Damaged> {
    serde_json::to_string(&Written(policy)).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn policy_from_json(json: &str) -> Result<ReadPolicy, Damaged> {
    let unreadable = |error: String| Damaged::new(TABLE, format!("policy: {error}"));
    let mut from = serde_json::Deserializer::from_str(json);
    let read = from.deserialize_map(Fields);
    let (change, unknown) = read.map_err(|error| unreadable(error.to_string()))?;
    let policy = Policy::default().merged(&change);
    Ok(ReadPolicy { policy, unknown })
}

pub(crate) fn prices_to_json(prices: &[Amount]) -> Result<String, Damaged> {
    let minor: Vec<i64> = prices.iter().map(|price| price.minor()).collect();
    serde_json::to_string(&minor).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn prices_from_json(json: &str) -> Result<Vec<Amount>, Damaged> {
    let minor: Vec<i64> = serde_json::from_str(json)
        .map_err(|error| Damaged::new(TABLE, format!("prices: {error}")))?;
    Ok(minor.into_iter().map(Amount::from_minor).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    /// Returns a value that is not the field's default.
    fn another(field: &PolicyField) -> Value {
        match field.kind {
            PolicyKind::Millis => json!(61_000),
            PolicyKind::Count | PolicyKind::CountOrNull => json!(7),
            PolicyKind::TimeOrNull | PolicyKind::Deadline => json!(1_000),
            PolicyKind::Flag => json!(field.get(&Policy::default()) != PolicyValue::Flag(true)),
            PolicyKind::Word(words) => json!(words.last()),
        }
    }

    /// Removes one field after the other, as rows of older builds lack fields that came later.
    #[test]
    fn a_field_that_a_row_lacks_has_its_default_and_no_other_is_lost() {
        let row: Map<String, Value> = POLICY_FIELDS
            .iter()
            .map(|field| (field.name.to_owned(), another(field)))
            .collect();
        let read = |row: &Map<String, Value>| {
            let json = serde_json::to_string(row).unwrap();
            policy_from_json(&json).unwrap().policy
        };
        let all = read(&row);
        for absent in POLICY_FIELDS {
            let mut older = row.clone();
            older.remove(absent.name).unwrap();
            let read = read(&older);
            let default = absent.get(&Policy::default());
            assert_ne!(absent.get(&all), default, "{}", absent.name);
            assert_eq!(absent.get(&read), default, "{}", absent.name);
            for other in POLICY_FIELDS
                .iter()
                .filter(|other| other.name != absent.name)
            {
                assert_eq!(other.get(&read), other.get(&all), "{}", other.name);
            }
        }
    }
}
