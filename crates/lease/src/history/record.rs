//! What was seen. Times are readings of one boot clock, so histories of several processes of one
//! machine can be put together.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::FencingToken;

/// What clients saw, in no order. Serialises, so that each process can write its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Acquires that were granted.
    pub grants: Vec<Grant>,
    /// Acquires that were refused.
    pub refusals: Vec<Refused>,
    /// Acquires whose outcome is unknown.
    pub uncertain: Vec<Uncertain>,
    /// Writes through gates.
    pub writes: Vec<Write>,
    /// Times in which the backend may have lost what it had granted.
    pub losses: Vec<LossWindow>,
}

/// An acquire that was granted, and the life of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The client, by a number of the test's own.
    pub client: u32,
    /// What it holds.
    pub name: String,
    /// When it asked.
    pub invoked: Duration,
    /// When it knew.
    pub returned: Duration,
    /// Its token, without fencing `None`.
    pub token: Option<FencingToken>,
    /// How its hold ended.
    pub end: End,
}

/// The end of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
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
pub struct Refused {
    /// The client.
    pub client: u32,
    /// What it asked for.
    pub name: String,
    /// When it asked.
    pub invoked: Duration,
    /// When it knew.
    pub returned: Duration,
}

/// An acquire whose outcome is unknown: it may hold the name at any time from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncertain {
    /// The client.
    pub client: u32,
    /// What it asked for.
    pub name: String,
    /// When it asked.
    pub invoked: Duration,
}

/// A write through a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// The client.
    pub client: u32,
    /// What was written.
    pub resource: String,
    /// The token it was written with.
    pub token: FencingToken,
    /// When it was asked for.
    pub invoked: Duration,
    /// What came of it.
    pub verdict: Verdict,
}

/// What a gate said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
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
pub struct LossWindow {
    /// When it began.
    pub from: Duration,
    /// When it was over.
    pub to: Duration,
}

impl History {
    /// Adds what others saw.
    pub fn merge(&mut self, other: History) {
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
