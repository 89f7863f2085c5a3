//! The values of policy fields: their kinds and bounds, and the conversion of the types of fields to and from
//! [`PolicyValue`].

use crate::{Adjacency, Deadline, LatePayment, OnPaymentFailure, Span, Timestamp};

/// The word for [`Deadline::Never`].
pub(super) const NEVER: &str = "never";

/// The value of one field, as it is stored and sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyValue {
    /// No limit, no time.
    Null,
    /// A count, or milliseconds.
    Number(u64),
    Time(Timestamp),
    Flag(bool),
    Word(&'static str),
}

impl PolicyValue {
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Null | Self::Time(_) | Self::Flag(_) | Self::Word(_) => None,
        }
    }
}

/// The kind of values that a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    Millis,
    Count,
    CountOrNull,
    TimeOrNull,
    /// A point of time, or `never`; null is the start of the event.
    Deadline,
    Flag,
    Word(&'static [&'static str]),
}

impl PolicyKind {
    /// Describes which values it takes.
    pub fn in_words(self) -> String {
        match self {
            Self::Millis => "milliseconds".to_owned(),
            Self::Count => format!("a number up to {}", u32::MAX),
            Self::CountOrNull => format!("a number up to {}, or null", u32::MAX),
            Self::TimeOrNull | Self::Deadline => "a time, or null".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Word(words) => format!("one of `{}`", words.join("`, `")),
        }
    }
}

/// The least and the greatest value of a field that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyBounds {
    Millis(u64, u64),
    Count(u32, u32),
    /// For fields that are no number.
    None,
}

impl PolicyBounds {
    /// Returns the least and the greatest value; `None` for a field that is no number.
    pub fn range(self) -> Option<(u64, u64)> {
        match self {
            Self::Millis(least, most) => Some((least, most)),
            Self::Count(least, most) => Some((u64::from(least), u64::from(most))),
            Self::None => None,
        }
    }

    /// Tells whether fields of a kind have such bounds.
    pub(super) const fn fit(self, kind: PolicyKind) -> bool {
        match kind {
            PolicyKind::Millis => matches!(self, Self::Millis(..)),
            PolicyKind::Count | PolicyKind::CountOrNull => matches!(self, Self::Count(..)),
            PolicyKind::TimeOrNull
            | PolicyKind::Deadline
            | PolicyKind::Flag
            | PolicyKind::Word(_) => matches!(self, Self::None),
        }
    }
}

/// A type that a field of a policy may have.
pub(super) trait Setting: Sized {
    const KIND: PolicyKind;
    fn write(&self) -> PolicyValue;
    fn read(value: PolicyValue) -> Option<Self>;
}

impl Setting for Span {
    const KIND: PolicyKind = PolicyKind::Millis;

    fn write(&self) -> PolicyValue {
        PolicyValue::Number(self.ms())
    }

    fn read(value: PolicyValue) -> Option<Self> {
        value.number().map(Self::from_ms)
    }
}

impl Setting for u32 {
    const KIND: PolicyKind = PolicyKind::Count;

    fn write(&self) -> PolicyValue {
        PolicyValue::Number(u64::from(*self))
    }

    fn read(value: PolicyValue) -> Option<Self> {
        Self::try_from(value.number()?).ok()
    }
}

impl Setting for Option<u32> {
    const KIND: PolicyKind = PolicyKind::CountOrNull;

    fn write(&self) -> PolicyValue {
        self.as_ref().map_or(PolicyValue::Null, Setting::write)
    }

    fn read(value: PolicyValue) -> Option<Self> {
        if value == PolicyValue::Null {
            return Some(None);
        }
        u32::read(value).map(Some)
    }
}

impl Setting for Option<Timestamp> {
    const KIND: PolicyKind = PolicyKind::TimeOrNull;

    fn write(&self) -> PolicyValue {
        self.map_or(PolicyValue::Null, PolicyValue::Time)
    }

    fn read(value: PolicyValue) -> Option<Self> {
        match value {
            PolicyValue::Null => Some(None),
            PolicyValue::Time(time) => Some(Some(time)),
            PolicyValue::Number(_) | PolicyValue::Flag(_) | PolicyValue::Word(_) => None,
        }
    }
}

impl Setting for bool {
    const KIND: PolicyKind = PolicyKind::Flag;

    fn write(&self) -> PolicyValue {
        PolicyValue::Flag(*self)
    }

    fn read(value: PolicyValue) -> Option<Self> {
        let PolicyValue::Flag(flag) = value else {
            return None;
        };
        Some(flag)
    }
}

impl Setting for Deadline {
    const KIND: PolicyKind = PolicyKind::Deadline;

    fn write(&self) -> PolicyValue {
        match self {
            Self::AtStart => PolicyValue::Null,
            Self::At(time) => PolicyValue::Time(*time),
            Self::Never => PolicyValue::Word(NEVER),
        }
    }

    fn read(value: PolicyValue) -> Option<Self> {
        match value {
            PolicyValue::Null => Some(Self::AtStart),
            PolicyValue::Time(time) => Some(Self::At(time)),
            PolicyValue::Word(NEVER) => Some(Self::Never),
            PolicyValue::Word(_) | PolicyValue::Flag(_) | PolicyValue::Number(_) => None,
        }
    }
}

macro_rules! word_settings {
    ($($name:ident),+) => {
        $(impl Setting for $name {
            const KIND: PolicyKind = PolicyKind::Word(&Self::WORDS);

            fn write(&self) -> PolicyValue {
                PolicyValue::Word(self.as_str())
            }

            fn read(value: PolicyValue) -> Option<Self> {
                let named = |known: &Self| PolicyValue::Word(known.as_str()) == value;
                Self::ALL.into_iter().find(named)
            }
        })+
    };
}

word_settings!(LatePayment, OnPaymentFailure, Adjacency);
