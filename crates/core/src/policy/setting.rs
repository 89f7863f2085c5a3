//! Conversion of the types of policy fields to and from [`PolicyValue`].

use super::{Deadline, NEVER, PolicyKind, PolicyValue};
use crate::{Adjacency, LatePayment, OnPaymentFailure, Span, Timestamp};

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
