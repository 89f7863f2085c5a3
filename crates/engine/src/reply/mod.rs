//! Answers as JSON: holds, bookings and the rest (api.md 3 and 7). Written in one place, because an
//! idempotent replay must be byte for byte the first answer. Leaves out what changes between the
//! two: the server's time, and the secret, which is derived anew.

use std::sync::Arc;

mod body;
mod endpoint;
mod history;

pub(crate) use body::CancelledEventBody;
use body::UnitsBody;
pub use body::{BookingBody, HoldBody, Rfc3339, UnitBody};
pub use endpoint::EndpointBody;
pub(crate) use endpoint::endpoint;
pub use history::TransitionBody;
use serde::Serialize;
use soldonce_core::{Answer, Booking, Command, Event, EventNo, Hold, Seq, Timestamp};

/// The kind of an answer; each transport has its own status for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// A new hold; comes with its secret.
    Held,
    /// The holder's own hold; comes with its secret.
    OwnHold,
    /// A hold after a command.
    Hold,
    /// A new booking.
    Booked,
    /// A booking after a command.
    Booking,
    /// Units after a staff command.
    Units,
    /// A new webhook endpoint; comes with its secret.
    Endpoint,
    /// A booking after something of it was given back; kept as long as the booking.
    GivenBack,
}

impl ReplyKind {
    /// Every kind; its place is its number in the store.
    pub const ALL: [Self; 8] = [
        Self::Held,
        Self::OwnHold,
        Self::Hold,
        Self::Booked,
        Self::Booking,
        Self::Units,
        Self::Endpoint,
        Self::GivenBack,
    ];

    /// Returns the kind of answers to `command` that are kept as long as the booking: nothing but
    /// their key tells the same refund from another one.
    pub(crate) fn kept_for(command: &Command) -> Option<Self> {
        let gives_back = matches!(
            command,
            Command::Refund { .. } | Command::SettleRefund { .. } | Command::Cancel { .. }
        );
        gives_back.then_some(Self::GivenBack)
    }
}

/// An answer as it is kept for the next time the same request comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    pub kind: ReplyKind,
    /// The bytes of the id of the hold, booking or endpoint.
    pub subject: [u8; 16],
    /// A JSON object without its last brace, so that the rest can be added.
    pub body: Arc<[u8]>,
}

impl StoredReply {
    /// Returns the whole answer, a JSON object.
    pub fn json(&self) -> Vec<u8> {
        [&self.body[..], b"}"].concat()
    }

    /// Renames the units in the answer to a staff command.
    pub(crate) fn naming(self, name: &str) -> Self {
        match self.body.strip_prefix(b"{\"units\":") {
            Some(rest) if self.kind == ReplyKind::Units => {
                let body = [b"{\"", name.as_bytes(), b"\":", rest].concat();
                Self {
                    body: body.into(),
                    ..self
                }
            }
            Some(_) | None => self,
        }
    }
}

/// Returns the event of an answer, for those that [`render`] can write.
pub fn event_of(answer: &Answer) -> Option<EventNo> {
    match answer {
        Answer::Held(hold) | Answer::OwnHold(hold) | Answer::Hold(hold) => Some(hold.event),
        Answer::Booked(booking) | Answer::Booking(booking) => Some(booking.event),
        Answer::Units(event, _) => Some(*event),
        Answer::EventCreated(_)
        | Answer::Event(_)
        | Answer::Swept(_)
        | Answer::ClockCorrected(_) => None,
    }
}

/// Writes the answer of a command on `event`. `None` for events themselves, which the server writes
/// with their counts, and for the sweeper.
pub fn render(event: Option<&Event>, answer: &Answer, seq: Option<Seq>) -> Option<StoredReply> {
    let event = event?;
    let of_hold = |kind, hold: &Hold| {
        let body = HoldBody::new(event, hold, &hold.state, seq);
        stored_reply(kind, *hold.id.bytes(), &body)
    };
    let of_booking = |kind, booking: &Booking| {
        let body = BookingBody::new(event, booking, seq);
        stored_reply(kind, *booking.id.bytes(), &body)
    };
    match answer {
        Answer::Held(hold) => Some(of_hold(ReplyKind::Held, hold)),
        Answer::OwnHold(hold) => Some(of_hold(ReplyKind::OwnHold, hold)),
        Answer::Hold(hold) => Some(of_hold(ReplyKind::Hold, hold)),
        Answer::Booked(booking) => Some(of_booking(ReplyKind::Booked, booking)),
        Answer::Booking(booking) => Some(of_booking(ReplyKind::Booking, booking)),
        Answer::Units(_, units) => {
            let body = UnitsBody::new(&event.chart, units, seq);
            Some(stored_reply(ReplyKind::Units, [0; 16], &body))
        }
        Answer::EventCreated(_)
        | Answer::Event(_)
        | Answer::Swept(_)
        | Answer::ClockCorrected(_) => None,
    }
}

fn stored_reply(kind: ReplyKind, subject: [u8; 16], body: &impl Serialize) -> StoredReply {
    StoredReply {
        kind,
        subject,
        body: open_object(body).into(),
    }
}

/// Writes a hold as it is at `now`.
pub fn hold_now(event: &Event, hold: &Hold, now: Timestamp) -> StoredReply {
    let state = hold.state_in(event, now);
    let body = HoldBody::new(event, hold, &state, None);
    stored_reply(ReplyKind::Hold, *hold.id.bytes(), &body)
}

/// Writes a booking as it is stored.
pub fn booking(event: &Event, booking: &Booking) -> StoredReply {
    let body = BookingBody::new(event, booking, None);
    stored_reply(ReplyKind::Booking, *booking.id.bytes(), &body)
}

/// Writes a JSON object without its last brace.
pub fn open_object(value: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::with_capacity(BODY_BYTES);
    if serde_json::to_writer(&mut body, value).is_err() {
        body.clear();
        body.push(b'{');
        return body;
    }
    body.pop();
    body
}

/// Room for an answer with a few units: one allocation for most.
const BODY_BYTES: usize = 640;
