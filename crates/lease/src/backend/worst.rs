//! The outcome for a grant of several names: the worst of them decides. One rule for every backend.

use std::time::Duration;

use super::{ReleaseReply, RenewReply};
use crate::FencingToken;

/// The outcome for one name of a grant, from best to worst. Of two of a kind, a shorter life and a
/// higher token of another owner are worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfName {
    /// The owner holds it, for this long.
    Ours(Duration),
    #[cfg_attr(
        not(feature = "redis"),
        expect(dead_code, reason = "elsewhere it is gone")
    )]
    Capped,
    Gone,
    Taken(FencingToken),
}

impl OfName {
    fn rank(self) -> (u8, Option<FencingToken>) {
        match self {
            OfName::Ours(_) => (0, None),
            OfName::Capped => (1, None),
            OfName::Gone => (2, None),
            OfName::Taken(by) => (3, Some(by)),
        }
    }

    pub(super) fn or_worse(self, other: Self) -> Self {
        match (self, other) {
            (OfName::Ours(one), OfName::Ours(other)) => OfName::Ours(one.min(other)),
            (one, other) if other.rank() > one.rank() => other,
            (one, _) => one,
        }
    }

    /// Returns the worst of all; a grant without names is gone.
    pub(super) fn worst(names: impl IntoIterator<Item = Self>) -> Self {
        let worst = names.into_iter().reduce(Self::or_worse);
        worst.unwrap_or(OfName::Gone)
    }

    pub(super) fn renewed(self) -> RenewReply {
        match self {
            OfName::Ours(granted) => RenewReply::Renewed { granted },
            OfName::Capped => RenewReply::Capped,
            OfName::Gone => RenewReply::Gone,
            OfName::Taken(by) => RenewReply::Taken { by },
        }
    }

    pub(super) fn released(self) -> ReleaseReply {
        match self {
            OfName::Ours(_) => ReleaseReply::Released,
            OfName::Capped | OfName::Gone => ReleaseReply::Gone,
            OfName::Taken(by) => ReleaseReply::Taken { by },
        }
    }
}
