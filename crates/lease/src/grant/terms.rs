//! The parameters of a grant.

use std::time::Duration;

use crate::backend::Names;
use crate::{BootTime, FencingToken, Owner};

/// The parameters of a grant that never change.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) names: Names,
    pub(crate) owner: Owner,
    pub(crate) token: FencingToken,
    pub(crate) fenced: bool,
    pub(crate) safety: Duration,
    /// The holder renews it, not the lease thread.
    pub(crate) manual: bool,
    /// It has no `max_lifetime`, so that it may be renewed without end.
    pub(crate) endless: bool,
    pub(crate) replicas: Option<u32>,
    pub(crate) deletes: Deletes,
    pub(crate) born: BootTime,
    /// The owner held the names before it asked.
    pub(crate) again: bool,
    pub(crate) holder: Whereabouts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In this process, which renews the grant and gives it back.
    Here,
    /// In another process: this one does only what that holder asks for.
    Elsewhere,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletes {
    Once,
    /// Once more after half the ttl: a command of this owner may still be in a buffer.
    Twice,
}

/// A confirmed answer: when its command was sent, the life it granted, and the life asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Confirmed {
    pub(crate) sent: BootTime,
    pub(crate) granted: Duration,
    pub(crate) asked: Duration,
}

impl Confirmed {
    /// Tells whether the backend granted clearly less than was asked: only a cap does that.
    pub(super) fn is_capped(&self) -> bool {
        const ROUNDING: Duration = Duration::from_millis(2);
        self.granted + ROUNDING < self.asked
    }
}
