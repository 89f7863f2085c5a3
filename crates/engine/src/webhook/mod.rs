//! Webhooks: what happened to holds and bookings, posted to the operator's own servers by the
//! convention of Standard Webhooks. A message is written in the commit that it tells of and delivered
//! at least once, the messages of one booking one after the other.
//!
//! Reading order: what a message and a delivery are (here), where they go (`endpoint`), which messages a
//! command makes (`message`), how one is signed (`sign`), where it may go (`address`), one POST (`post`),
//! why it failed (`problem`), what an answer asks for (`retry_after`), when it is tried again (`schedule`).
//! `engine/webhooks/` delivers.

pub mod address;
mod endpoint;
mod message;
mod post;
mod problem;
mod retry_after;
mod schedule;
mod sign;

use std::sync::Arc;

use soldonce_core::{Timestamp, minted_id, words};

use crate::ledger::rows::codes::number;
pub use endpoint::{Endpoint, EndpointChange};
pub(crate) use message::{Before, Message};
pub use post::{Lookup, LookupFuture, Sender, SystemLookup};
pub(crate) use post::{PostOutcome, SignedMessage};
pub(crate) use schedule::next_attempt;
pub(crate) use sign::{secret_text, signatures};

words! {
    /// The kind of a message; `type` in its body.
    pub MessageKind:
    /// The clock ended a hold.
    HoldExpired = "hold.expired",
    /// Units were sold.
    BookingConfirmed = "booking.confirmed",
    /// Lines of a booking were cancelled.
    BookingCancelled = "booking.cancelled",
    /// Money was refunded.
    BookingRefunded = "booking.refunded",
    /// Units of a booking were swapped.
    BookingExchanged = "booking.exchanged",
    /// Staff ended a hold, or cancelled its event.
    HoldRevoked = "hold.revoked",
    /// An event was cancelled.
    EventCancelled = "event.cancelled",
}

impl MessageKind {
    /// Parses the name of a kind.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    fn bit(self) -> i32 {
        1_i32 << number(&Self::ALL, &self)
    }
}

/// A set of kinds, as it is stored: bit n for kind n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(pub(crate) i32);

impl Kinds {
    /// All of them, also those that a later version adds.
    pub const ALL: Self = Self(i32::MAX);

    /// Builds the set of these kinds.
    pub fn of(kinds: &[MessageKind]) -> Self {
        Self(kinds.iter().fold(0, |bits, kind| bits | kind.bit()))
    }

    /// Tells whether the set has a kind.
    pub fn has(self, kind: MessageKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// Lists the kinds in the set that this version knows.
    pub fn iter(self) -> impl Iterator<Item = MessageKind> {
        MessageKind::ALL
            .into_iter()
            .filter(move |kind| self.has(*kind))
    }
}

minted_id! {
    /// The name of an endpoint.
    EndpointId, "whe_"
}
minted_id! {
    /// The name of a message, `webhook-id`: the same in each attempt and at each endpoint.
    MessageId, "msg_"
}

words! {
    /// The state of a delivery.
    pub DeliveryState:
    /// It is being delivered, or will be.
    Open = "open",
    /// The endpoint has received it.
    Delivered = "delivered",
    /// All of its attempts failed.
    GivenUp = "given_up",
}

/// A message on its way to one endpoint, as the log shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number among all deliveries: later ones have higher numbers.
    pub number: i64,
    pub message: MessageId,
    pub kind: MessageKind,
    pub at: Timestamp,
    /// Its state.
    pub state: DeliveryState,
    /// How many attempts were made, since it was last asked for.
    pub attempts: u32,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// Why the last attempt failed.
    pub problem: Option<String>,
    /// When the last attempt ended.
    pub tried_at: Option<Timestamp>,
    /// When the next attempt is made.
    pub next_at: Option<Timestamp>,
}

/// A delivery that is due, with its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueDelivery {
    /// Its number among all deliveries.
    pub number: i64,
    /// The endpoint it is sent to.
    pub endpoint: EndpointId,
    pub message: MessageId,
    pub kind: MessageKind,
    /// How many attempts failed.
    pub attempts: u32,
    /// The body that is signed and sent.
    pub body: Arc<str>,
}

/// The outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub number: i64,
    /// The endpoint it was made to.
    pub endpoint: EndpointId,
    /// How many attempts the delivery had when it was taken. If it was sent again meanwhile, it has fewer,
    /// and a failure counts for nothing.
    pub before: u32,
    pub at: Timestamp,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    pub problem: Option<&'static str>,
    /// The endpoint asked that nothing is sent before this time.
    pub quiet_until: Option<Timestamp>,
    /// What follows: done, another attempt, or none.
    pub then: Then,
}

impl Attempt {
    /// Returns when the next attempt is made.
    pub(crate) const fn next_at(&self) -> Option<Timestamp> {
        match self.then {
            Then::Again(at) => Some(at),
            // As soon as the endpoint is enabled.
            Then::Disable => Some(self.at),
            Then::Delivered | Then::GiveUp => None,
        }
    }
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is done.
    Delivered,
    /// Another attempt follows, not before this time.
    Again(Timestamp),
    /// The endpoint is gone: it is disabled, and the delivery waits with all others.
    Disable,
    /// No attempt follows.
    GiveUp,
}

impl Then {
    pub(crate) const fn state(self) -> DeliveryState {
        match self {
            Self::Delivered => DeliveryState::Delivered,
            Self::Again(_) | Self::Disable => DeliveryState::Open,
            Self::GiveUp => DeliveryState::GivenUp,
        }
    }
}
