//! What messages have, as tables that are made once: descriptors are slow to ask, and each call reads its messages.

use prost_reflect::{FieldDescriptor, Kind as Described, MessageDescriptor};

/// What a message has. No message of `proto/` is within itself, or has so many fields that hashing is faster.
pub(super) struct Shape {
    pub(super) fields: Vec<Field>,
}

pub(super) struct Field {
    /// As in `proto/`.
    pub(super) name: String,
    /// The name as the key of an object, with its colon.
    pub(super) key: String,
    /// The member of JSON that it is, where that is a word of a language.
    json_name: String,
    pub(super) number: u32,
    pub(super) kind: Kind,
    sent: Sent,
}

/// Which values of a field are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    EachOfList,
    IfSet,
    IfNotDefault,
}

/// What a field's value, or each value of its list, is.
pub(super) enum Kind {
    Text,
    Bool,
    Unsigned,
    Signed,
    /// A `google.protobuf.Timestamp`; in JSON a text of RFC 3339.
    Time,
    /// A number for each name.
    Numbers,
    Message(Shape),
}

impl Shape {
    /// Returns the table of a message; None where a field is of a kind that no operation has.
    pub(super) fn of(message: &MessageDescriptor) -> Option<Self> {
        let fields = message.fields().map(|field| Field::of(&field));
        let fields = fields.collect::<Option<_>>()?;
        Some(Self { fields })
    }

    pub(super) fn place(&self, number: u32) -> Option<usize> {
        self.fields.iter().position(|field| field.number == number)
    }

    /// Returns the place of the field that is this member of JSON.
    pub(super) fn place_of(&self, member: &str) -> Option<usize> {
        let mut fields = self.fields.iter();
        fields.position(|field| field.name == member || field.json_name == member)
    }

    pub(super) fn field(&self, member: &str) -> Option<&Field> {
        self.fields.get(self.place_of(member)?)
    }
}

impl Field {
    fn of(field: &FieldDescriptor) -> Option<Self> {
        Some(Self {
            name: field.name().to_owned(),
            key: format!("\"{}\":", field.name()),
            json_name: field.json_name().to_owned(),
            number: field.number(),
            kind: Kind::of(field)?,
            sent: match (field.is_list(), field.supports_presence()) {
                (true, _) => Sent::EachOfList,
                (false, true) => Sent::IfSet,
                (false, false) => Sent::IfNotDefault,
            },
        })
    }

    pub(super) fn is_list(&self) -> bool {
        self.sent == Sent::EachOfList
    }

    /// Tells whether its default is sent, too.
    pub(super) fn sends_default(&self) -> bool {
        self.sent != Sent::IfNotDefault
    }
}

impl Kind {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "kinds that `proto/` does not have"
    )]
    fn of(field: &FieldDescriptor) -> Option<Self> {
        match field.kind() {
            Described::String => Some(Self::Text),
            Described::Bool => Some(Self::Bool),
            Described::Uint32 | Described::Uint64 => Some(Self::Unsigned),
            Described::Int64 => Some(Self::Signed),
            Described::Message(entry) if field.is_map() => {
                let value = entry.map_entry_value_field().kind();
                (value == Described::Int64).then_some(Self::Numbers)
            }
            Described::Message(message) if message.full_name() == "google.protobuf.Timestamp" => {
                Some(Self::Time)
            }
            Described::Message(message) => Shape::of(&message).map(Self::Message),
            _ => None,
        }
    }
}
