//! Webhook endpoints, and the changes of them.

use std::sync::Arc;

use soldonce_core::Timestamp;

use super::{Attempt, EndpointId, Kinds, Then};

/// A webhook endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: EndpointId,
    /// Its URL, as it was parsed when it was added.
    pub url: Arc<str>,
    /// The kinds of messages that are sent to it.
    pub kinds: Kinds,
    /// How often its secret was rotated.
    pub rotation: u32,
    /// When it was rotated last.
    pub rotated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// The time from which on nothing is sent to it: it answered that it is gone, or staff disabled
    /// it. Its messages wait.
    pub disabled_at: Option<Timestamp>,
    /// Its answer asked that nothing is sent before this time.
    pub quiet_until: Option<Timestamp>,
}

/// A change of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointChange {
    /// Rotate its secret.
    Rotate,
    /// Send nothing to it until it is enabled. Its messages wait, for a week at most.
    Disable,
    /// Send to it again, also if it said it was gone: the waiting messages in their sequence, each
    /// at once and with all attempts.
    Enable,
    /// Delete it: nothing is sent to it any more, also not the messages that wait.
    Delete,
}

impl Endpoint {
    /// Tells whether a message may be sent to it at `now`.
    pub fn takes_at(&self, now: Timestamp) -> bool {
        self.disabled_at.is_none() && self.quiet_until.is_none_or(|until| until <= now)
    }

    /// Applies a change; a deletion leaves it as it was at last.
    pub(crate) fn changed(self, change: EndpointChange, at: Timestamp) -> Self {
        match change {
            EndpointChange::Rotate => Self {
                rotation: self.rotation.saturating_add(1),
                rotated_at: Some(at),
                ..self
            },
            EndpointChange::Disable => Self {
                disabled_at: self.disabled_at.or(Some(at)),
                ..self
            },
            EndpointChange::Enable => Self {
                disabled_at: None,
                quiet_until: None,
                ..self
            },
            EndpointChange::Delete => self,
        }
    }

    /// Applies the outcome of an attempt.
    pub(crate) fn after(self, attempt: &Attempt) -> Self {
        let is_gone = attempt.then == Then::Disable;
        Self {
            disabled_at: self.disabled_at.or(is_gone.then_some(attempt.at)),
            quiet_until: self.quiet_until.max(attempt.quiet_until),
            ..self
        }
    }
}
