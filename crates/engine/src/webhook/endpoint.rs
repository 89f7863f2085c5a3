//! Where messages go, and what may happen to such a place.

use std::sync::Arc;

use soldonce_core::Timestamp;

use super::{Attempt, EndpointId, Kinds, Then};

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub id: EndpointId,
    /// Its address, as it was given.
    pub url: Arc<str>,
    /// What it wants to hear of.
    pub kinds: Kinds,
    /// How often its secret was changed.
    pub rotation: u32,
    /// When that was last.
    pub rotated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// Since when nothing is sent to it: it said that it is gone, or staff did. What it would have heard
    /// waits.
    pub disabled_at: Option<Timestamp>,
    /// It asked not to be called before.
    pub quiet_until: Option<Timestamp>,
}

/// What may be done to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointChange {
    /// Its secret is the next one from now on.
    Rotate,
    /// Nothing is sent to it until it is enabled. What it would hear waits, for a week at most.
    Disable,
    /// It is sent to again, also if it said it was gone: what waits in its sequence, each message at once and with all
    /// attempts.
    Enable,
    /// It hears of nothing any more, also not of what waits for it.
    Delete,
}

impl Endpoint {
    /// Whether something may be sent to it at `now`.
    pub fn takes_at(&self, now: Timestamp) -> bool {
        self.disabled_at.is_none() && self.quiet_until.is_none_or(|until| until <= now)
    }

    /// As a change leaves it; as it was at last, when that is its end.
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

    /// As the answer to an attempt leaves it.
    pub(crate) fn after(self, attempt: &Attempt) -> Self {
        let is_gone = attempt.then == Then::Disable;
        Self {
            disabled_at: self.disabled_at.or(is_gone.then_some(attempt.at)),
            quiet_until: self.quiet_until.max(attempt.quiet_until),
            ..self
        }
    }
}
