//! An event's policy as the API writes it, made from the fields that `core` declares.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use soldonce_core::{
    POLICY_FIELDS, Policy, PolicyChange, PolicyField, PolicyKind, PolicyValue, Timestamp,
};
use soldonce_engine::reply::Rfc3339;
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::json::{Str, Time, Whole};

/// A part of a policy: what is left out stays as it is, `null` takes a limit or a time away.
#[derive(Debug, Default)]
pub(super) struct PolicyRequest(pub(super) PolicyChange);

impl<'de> Deserialize<'de> for PolicyRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Fields).map(Self)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = PolicyChange;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with fields of a policy")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicyChange, A::Error> {
        let (mut change, mut given) = (PolicyChange::default(), Vec::new());
        while let Some(name) = map.next_key::<Str<'de>>()? {
            let field = field_named::<A::Error>(&name.0)?;
            if given.contains(&field.name) {
                return Err(Error::duplicate_field(field.name));
            }
            given.push(field.name);
            if let Some(value) = map.next_value_seed(ValueOf(field))? {
                change.set(field, value).map_err(Error::custom)?;
            }
        }
        Ok(change)
    }
}

/// Finds the field of this name.
fn field_named<E: Error>(name: &str) -> Result<&'static PolicyField, E> {
    PolicyField::named(name).ok_or_else(|| {
        let known: Vec<&str> = POLICY_FIELDS.iter().map(|field| field.name).collect();
        let known = known.join("`, `");
        E::custom(format!("unknown field `{name}`, expected one of `{known}`"))
    })
}

/// A word of a field, or `null`; refuses another while the reader is at it.
struct WordOf(&'static PolicyField);

impl<'de> Visitor<'de> for WordOf {
    type Value = Option<PolicyValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.kind.in_words())
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
        let illegal = || E::invalid_value(Unexpected::Str(word), &self);
        self.0.word(word).ok_or_else(illegal).map(Some)
    }
}

/// The value of a field; none leaves it as it is.
struct ValueOf(&'static PolicyField);

impl<'de> DeserializeSeed<'de> for ValueOf {
    type Value = Option<PolicyValue>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        match self.0.kind {
            PolicyKind::Millis => {
                let ms: Option<Whole<u64>> = Option::deserialize(from)?;
                Ok(ms.map(|ms| PolicyValue::Number(ms.0)))
            }
            PolicyKind::Count => {
                let count: Option<Whole<u32>> = Option::deserialize(from)?;
                Ok(count.map(|count| PolicyValue::Number(count.0.into())))
            }
            PolicyKind::CountOrNull => {
                let count: Option<Whole<u32>> = Option::deserialize(from)?;
                let number = |count: Whole<u32>| PolicyValue::Number(count.0.into());
                Ok(Some(count.map_or(PolicyValue::Null, number)))
            }
            PolicyKind::TimeOrNull => {
                let time: Option<Time> = Option::deserialize(from)?;
                let time = time.map_or(PolicyValue::Null, |time| PolicyValue::Time(time.0));
                Ok(Some(time))
            }
            PolicyKind::Deadline => {
                let time: Option<Time> = Option::deserialize(from)?;
                let time = time.map(|time| PolicyValue::Time(time.0));
                Ok(time.or_else(|| self.0.word("never")))
            }
            PolicyKind::Flag => {
                let flag: Option<bool> = Option::deserialize(from)?;
                Ok(flag.map(PolicyValue::Flag))
            }
            PolicyKind::Word(_) => from.deserialize_option(WordOf(self.0)),
        }
    }
}

/// A whole policy, and when its event starts: a deadline that is the start is written as that time.
pub(super) struct PolicyBody<'a> {
    pub(super) policy: &'a Policy,
    pub(super) starts_at: Option<Timestamp>,
}

impl PolicyBody<'_> {
    fn value(&self, field: &PolicyField) -> PolicyValue {
        let value = field.get(self.policy);
        match (field.kind, value) {
            (PolicyKind::Deadline, PolicyValue::Null) => {
                self.starts_at.map_or(PolicyValue::Null, PolicyValue::Time)
            }
            (PolicyKind::Deadline, PolicyValue::Word(_)) => PolicyValue::Null,
            (_, value) => value,
        }
    }
}

impl Serialize for PolicyBody<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(POLICY_FIELDS.len()))?;
        for field in POLICY_FIELDS {
            match self.value(field) {
                PolicyValue::Null => map.serialize_entry(field.name, &())?,
                PolicyValue::Number(number) => map.serialize_entry(field.name, &number)?,
                PolicyValue::Time(time) => map.serialize_entry(field.name, &Rfc3339(time))?,
                PolicyValue::Flag(flag) => map.serialize_entry(field.name, &flag)?,
                PolicyValue::Word(word) => map.serialize_entry(field.name, word)?,
            }
        }
        map.end()
    }
}

impl PartialSchema for PolicyRequest {
    fn schema() -> RefOr<Schema> {
        let about = "A part of a policy: what is left out stays as it is; `null` takes a limit or \
                     a time away, and leaves all else as it is.";
        let fields = POLICY_FIELDS.iter();
        fields
            .fold(ObjectBuilder::new(), |object, field| {
                object.property(field.name, property(field))
            })
            .description(Some(about))
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .into()
    }
}

impl ToSchema for PolicyRequest {}

/// The description of a whole policy.
pub(super) struct PolicySchema;

impl PartialSchema for PolicySchema {
    fn schema() -> RefOr<Schema> {
        let fields = POLICY_FIELDS.iter();
        fields
            .fold(ObjectBuilder::new(), |object, field| {
                let object = object.property(field.name, property(field));
                object.required(field.name)
            })
            .description(Some("The rules of an event."))
            .into()
    }
}

impl ToSchema for PolicySchema {
    fn name() -> std::borrow::Cow<'static, str> {
        "Policy".into()
    }
}

fn property(field: &PolicyField) -> Schema {
    let object = ObjectBuilder::new().description(Some(about(field)));
    let known = |format| Some(SchemaFormat::KnownFormat(format));
    let (least, most) = field.bounds.range().unzip();
    let or_null = |of| SchemaType::from_iter([of, Type::Null]);
    let object = match field.kind {
        PolicyKind::Millis => object
            .schema_type(Type::Integer)
            .format(known(KnownFormat::Int64)),
        PolicyKind::Count => object.schema_type(Type::Integer),
        PolicyKind::CountOrNull => object.schema_type(or_null(Type::Integer)),
        PolicyKind::TimeOrNull | PolicyKind::Deadline => object
            .schema_type(or_null(Type::String))
            .format(known(KnownFormat::DateTime)),
        PolicyKind::Flag => object.schema_type(Type::Boolean),
        PolicyKind::Word(words) => object
            .schema_type(Type::String)
            .enum_values(Some(words.iter().copied())),
    };
    object.minimum(least).maximum(most).into()
}

/// Describes what a field is for, and what it is in an event that was created without it.
fn about(field: &PolicyField) -> String {
    let about = field.about.trim();
    match field.get(&Policy::default()) {
        // The start of the event, as the text says.
        PolicyValue::Null if field.kind == PolicyKind::Deadline => about.to_owned(),
        PolicyValue::Null => format!("{about} Default: `null`."),
        PolicyValue::Number(number) => format!("{about} Default: {number}."),
        PolicyValue::Flag(flag) => format!("{about} Default: `{flag}`."),
        PolicyValue::Word(word) => format!("{about} Default: `{word}`."),
        PolicyValue::Time(time) => format!("{about} Default: {} ms.", time.ms()),
    }
}
