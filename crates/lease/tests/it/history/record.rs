//! What was seen. Times are readings of one boot clock, so histories of several processes of one
//! machine can be put together.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use soldonce_lease::FencingToken;

/// What clients saw, in no order. Serialises, so that each process can write its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// Acquires that were granted.
    pub(crate) grants: Vec<Grant>,
    /// Acquires that were refused.
    pub(crate) refusals: Vec<Refused>,
    /// Acquires whose outcome is unknown.
    pub(crate) uncertain: Vec<Uncertain>,
    /// Writes through gates.
    pub(crate) writes: Vec<Write>,
    /// Times in which the backend may have lost what it had granted.
    pub(crate) losses: Vec<LossWindow>,
}

/// An acquire that was granted, and the life of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// The client, by a number of the test's own.
    pub(crate) client: u32,
    /// What it holds.
    pub(crate) name: String,
    /// When it asked.
    pub(crate) invoked: Duration,
    /// When it knew.
    pub(crate) returned: Duration,
    /// Its token, without fencing `None`.
    pub(crate) token: Option<FencingToken>,
    /// How its hold ended.
    pub(crate) end: End,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    /// None: it was held to the end of the history.
    Open,
    /// By a release that the backend confirmed.
    Released {
        /// When the release was asked for: the client did not use it afterwards.
        invoked: Duration,
        /// When it was confirmed.
        returned: Duration,
    },
    /// By itself, at some time from here on: the deadline, or an unconfirmed release.
    Lapsed {
        /// The first instant at which the client did not count on it any more.
        at: Duration,
    },
}

/// An acquire that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The client.
    pub(crate) client: u32,
    /// What it asked for.
    pub(crate) name: String,
    /// When it asked.
    pub(crate) invoked: Duration,
    /// When it knew.
    pub(crate) returned: Duration,
}

/// An acquire whose outcome is unknown: it may hold the name at any time from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Uncertain {
    /// The client.
    pub(crate) client: u32,
    /// What it asked for.
    pub(crate) name: String,
    /// When it asked.
    pub(crate) invoked: Duration,
}

/// A write through a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Write {
    /// The client.
    pub(crate) client: u32,
    /// What was written.
    pub(crate) resource: String,
    /// The token it was written with.
    pub(crate) token: FencingToken,
    /// When it was asked for.
    pub(crate) invoked: Duration,
    /// What came of it.
    pub(crate) verdict: Verdict,
}

/// What a gate said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// The write is in.
    Admitted {
        /// When the client knew.
        returned: Duration,
    },
    /// A higher token was there before.
    Stale {
        /// When the client knew.
        returned: Duration,
    },
    /// The outcome is unknown; it may come in at any time.
    Unknown,
}

/// A time in which the backend may lose grants: a failover, a restart without data, a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LossWindow {
    /// When it began.
    pub(crate) from: Duration,
    /// When it was over.
    pub(crate) to: Duration,
}

impl History {
    /// Adds what others saw.
    pub(crate) fn merge(&mut self, other: History) {
        self.grants.extend(other.grants);
        self.refusals.extend(other.refusals);
        self.uncertain.extend(other.uncertain);
        self.writes.extend(other.writes);
        self.losses.extend(other.losses);
    }

    /// Whether a grant that was made may have been lost before another was.
    pub(super) fn may_lose(&self, first: &Grant, second: &Grant) -> bool {
        let between =
            |window: &LossWindow| first.invoked <= window.to && second.returned >= window.from;
        self.losses.iter().any(between)
    }
}

impl Grant {
    /// The first instant at which the client may not have held it any more.
    pub(super) fn held_until(&self) -> Duration {
        match self.end {
            End::Open => Duration::MAX,
            End::Released { invoked, .. } => invoked,
            End::Lapsed { at } => at,
        }
    }

    /// The number of its token.
    pub(super) fn number(&self) -> Option<u64> {
        self.token.map(FencingToken::number)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {} with token ", self.client)?;
        match self.token {
            Some(token) => write!(f, "{token}")?,
            None => f.write_str("none")?,
        }
        write!(f, " from {:?} to {:?}", self.returned, self.held_until())
    }
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            client,
            token,
            invoked,
            ..
        } = self;
        write!(
            f,
            "client {client} with token {token}, called at {invoked:?}"
        )
    }
}
