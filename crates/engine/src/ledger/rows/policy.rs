//! Prices and policies as JSON: every field of a policy by its name, times in milliseconds.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
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

struct AsJson<'a>(&'a Policy);

impl Serialize for AsJson<'_> {
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

/// Reads the value of a field; none where no field has such a value.
fn value_of(field: &PolicyField, json: &Value) -> Option<PolicyValue> {
    match (field.kind, json) {
        // Of a deadline it is the start of the event, also in rows that are older than this choice.
        (_, Value::Null) => Some(PolicyValue::Null),
        (_, Value::Bool(flag)) => Some(PolicyValue::Flag(*flag)),
        (_, Value::String(word)) => field.word(word),
        (PolicyKind::TimeOrNull | PolicyKind::Deadline, Value::Number(ms)) => {
            Some(PolicyValue::Time(Timestamp::from_ms(ms.as_i64()?)))
        }
        (_, Value::Number(number)) => number.as_u64().map(PolicyValue::Number),
        (_, Value::Array(_) | Value::Object(_)) => None,
    }
}

pub(crate) fn policy_to_json(policy: &Policy) -> Result<String, Damaged> {
    serde_json::to_string(&AsJson(policy)).map_err(|error| Damaged::new(TABLE, error.to_string()))
}

pub(crate) fn policy_from_json(json: &str) -> Result<ReadPolicy, Damaged> {
    let illegal = |what: String| Damaged::new(TABLE, format!("policy: {what}"));
    let row = serde_json::from_str::<BTreeMap<String, Value>>(json);
    let row = row.map_err(|error| illegal(error.to_string()))?;
    let (mut change, mut unknown) = (PolicyChange::default(), Vec::new());
    for (name, json) in row {
        let Some(field) = PolicyField::named(&name) else {
            unknown.push(name);
            continue;
        };
        let value = value_of(field, &json).ok_or_else(|| illegal(format!("`{name}` is {json}")))?;
        let set = change.set(field, value);
        set.map_err(|error| illegal(error.to_string()))?;
    }
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
    use serde_json::{Map, json};

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
