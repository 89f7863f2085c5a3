//! How the types that fields of a policy have are written down and read.

use super::{Deadline, NEVER, PolicyKind, PolicyValue};
use crate::{Span, Timestamp};

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
        match value {
            PolicyValue::Number(ms) => Some(Self::from_ms(ms)),
            PolicyValue::Null
            | PolicyValue::Time(_)
            | PolicyValue::Flag(_)
            | PolicyValue::Word(_) => None,
        }
    }
}

impl Setting for u32 {
    const KIND: PolicyKind = PolicyKind::Count;

    fn write(&self) -> PolicyValue {
        PolicyValue::Number(u64::from(*self))
    }

    fn read(value: PolicyValue) -> Option<Self> {
        match value {
            PolicyValue::Number(count) => Self::try_from(count).ok(),
            PolicyValue::Null
            | PolicyValue::Time(_)
            | PolicyValue::Flag(_)
            | PolicyValue::Word(_) => None,
        }
    }
}

impl Setting for Option<u32> {
    const KIND: PolicyKind = PolicyKind::CountOrNull;

    fn write(&self) -> PolicyValue {
        self.as_ref().map_or(PolicyValue::Null, Setting::write)
    }

    fn read(value: PolicyValue) -> Option<Self> {
        match value {
            PolicyValue::Null => Some(None),
            PolicyValue::Number(_)
            | PolicyValue::Time(_)
            | PolicyValue::Flag(_)
            | PolicyValue::Word(_) => u32::read(value).map(Some),
        }
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
        match value {
            PolicyValue::Flag(flag) => Some(flag),
            PolicyValue::Null
            | PolicyValue::Number(_)
            | PolicyValue::Time(_)
            | PolicyValue::Word(_) => None,
        }
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
