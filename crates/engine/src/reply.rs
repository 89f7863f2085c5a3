//! Answers as JSON: what the API says of holds, bookings and the rest (api.md 3 and 7). Written in
//! one place, because an idempotent replay must be byte for byte the first answer. Leaves out what
//! changes between the two: the server's time, and the secret, which is derived anew.

use std::sync::Arc;

use serde::Serialize;
use soldonce_core::{
    Answer, Applied, Booking, Chart, Event, EventNo, Hold, HoldState, Inventory, Seq, Timestamp, UnitName,
    UnitNo,
};

/// What kind of answer it is; each transport has its own status for it.
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
}

impl ReplyKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Held, Self::OwnHold, Self::Hold, Self::Booked, Self::Booking, Self::Units];

    /// Whether the answer carries the hold's secret: those of POST holds alone.
    pub const fn has_secret(self) -> bool {
        matches!(self, Self::Held | Self::OwnHold)
    }

    /// Its number in the store: its place in [`ReplyKind::ALL`].
    pub fn number(self) -> i64 {
        let at = Self::ALL.iter().position(|kind| *kind == self).unwrap_or_default();
        i64::try_from(at).unwrap_or_default()
    }

    /// The kind of this number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// An answer as it is kept for the next time the same request comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// What kind of answer.
    pub kind: ReplyKind,
    /// The bytes of the id of the hold or booking.
    pub subject: [u8; 16],
    /// A JSON object without its last brace, so that the rest can be added.
    pub body: Arc<[u8]>,
}

/// The answer of an applied command, for the idempotency record. Nothing for answers that are never
/// asked for with a key.
pub fn stored(inventory: &Inventory, applied: &Applied) -> Option<StoredReply> {
    let event = event_of(&applied.answer).and_then(|no| inventory.event(no));
    let seq = applied.commits.first().map(|commit| commit.seq);
    render(event.map(|event| &**event), &applied.answer, seq)
}

/// The event that an answer is about, for those that [`render`] can write.
pub fn event_of(answer: &Answer) -> Option<EventNo> {
    match answer {
        Answer::Held(hold) | Answer::OwnHold(hold) | Answer::Hold(hold) => Some(hold.event),
        Answer::Booked(booking) | Answer::Booking(booking) => Some(booking.event),
        Answer::Units(event, _) => Some(*event),
        Answer::EventCreated(_) | Answer::Event(_) | Answer::Swept(_) => None,
    }
}

/// Writes the answer of a command on `event`. Nothing for events themselves, which the server
/// writes with their counts, and for the sweeper.
pub fn render(event: Option<&Event>, answer: &Answer, seq: Option<Seq>) -> Option<StoredReply> {
    let event = event?;
    let of_hold = |kind, hold: &Hold| {
        let body = HoldBody::new(event, hold, &hold.state, seq);
        stored_reply(kind, *hold.id.bytes(), &body)
    };
    let of_booking = |kind, booking: &Booking| {
        stored_reply(kind, *booking.id.bytes(), &BookingBody::new(event, booking, seq))
    };
    match answer {
        Answer::Held(hold) => Some(of_hold(ReplyKind::Held, hold)),
        Answer::OwnHold(hold) => Some(of_hold(ReplyKind::OwnHold, hold)),
        Answer::Hold(hold) => Some(of_hold(ReplyKind::Hold, hold)),
        Answer::Booked(booking) => Some(of_booking(ReplyKind::Booked, booking)),
        Answer::Booking(booking) => Some(of_booking(ReplyKind::Booking, booking)),
        Answer::Units(_, units) => {
            let units = units.iter().map(|unit| UnitBody::new(&event.chart, *unit)).collect();
            let body = UnitsBody { units, seq: seq.map(|seq| seq.0) };
            Some(stored_reply(ReplyKind::Units, [0; 16], &body))
        }
        Answer::EventCreated(_) | Answer::Event(_) | Answer::Swept(_) => None,
    }
}

fn stored_reply(kind: ReplyKind, subject: [u8; 16], body: &impl Serialize) -> StoredReply {
    StoredReply { kind, subject, body: open_object(body).into() }
}

/// A hold as it is at `now`.
pub fn hold_now(event: &Event, hold: &Hold, now: Timestamp) -> StoredReply {
    let body = HoldBody::new(event, hold, hold.state_at(now), None);
    stored_reply(ReplyKind::Hold, *hold.id.bytes(), &body)
}

/// A booking as it is stored.
pub fn booking(event: &Event, booking: &Booking) -> StoredReply {
    let body = BookingBody::new(event, booking, None);
    stored_reply(ReplyKind::Booking, *booking.id.bytes(), &body)
}

#[derive(Serialize)]
struct UnitsBody {
    units: Vec<UnitBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// A JSON object without its last brace.
pub fn open_object(value: &impl Serialize) -> Vec<u8> {
    let mut body = serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec());
    body.pop();
    body
}

/// RFC 3339 in UTC with milliseconds.
pub fn rfc3339(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.ms()) {
        Ok(time) => format!("{time:.3}"),
        // Beyond the year 9999: the latest time that has a name.
        Err(_) => format!("{:.3}", jiff::Timestamp::MAX),
    }
}

fn as_rfc3339<S: serde::Serializer>(at: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rfc3339(*at))
}

fn as_rfc3339_opt<S: serde::Serializer>(at: &Option<Timestamp>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => as_rfc3339(at, to),
        None => to.serialize_none(),
    }
}

fn as_text<T: std::fmt::Display, S: serde::Serializer>(id: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(id)
}

fn as_text_opt<T: std::fmt::Display, S: serde::Serializer>(
    id: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => to.collect_str(id),
        None => to.serialize_none(),
    }
}

/// A unit as the API names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UnitBody {
    /// A seat.
    Seat {
        /// Its id.
        seat: String,
    },
    /// A place of an area.
    Place {
        /// The area's id.
        area: String,
        /// The place's public id.
        place: String,
    },
}

impl UnitBody {
    /// The public name of a unit.
    pub fn new(chart: &Chart, unit: UnitNo) -> Self {
        match chart.unit_name(unit) {
            UnitName::Seat(seat) => Self::Seat { seat: seat.to_owned() },
            name @ UnitName::Place { area, .. } => {
                Self::Place { area: area.id.to_string(), place: name.to_string() }
            }
        }
    }
}

#[derive(Serialize)]
struct HeldUnitBody {
    #[serde(flatten)]
    unit: UnitBody,
    price: i64,
    version: u64,
}

/// A hold as the API shows it.
#[derive(Serialize)]
pub struct HoldBody<'a> {
    #[serde(serialize_with = "as_text")]
    id: soldonce_core::HoldId,
    event: &'a str,
    holder: &'a str,
    state: &'static str,
    fence: u64,
    units: Vec<HeldUnitBody>,
    total: i64,
    currency: &'a str,
    #[serde(serialize_with = "as_rfc3339")]
    created_at: Timestamp,
    #[serde(serialize_with = "as_rfc3339")]
    expires_at: Timestamp,
    #[serde(serialize_with = "as_rfc3339")]
    max_expires_at: Timestamp,
    #[serde(serialize_with = "as_text_opt")]
    booking: Option<soldonce_core::BookingId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    together: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

impl<'a> HoldBody<'a> {
    /// `hold` of `event`, in the state it has at the time of the answer.
    pub fn new(event: &'a Event, hold: &'a Hold, state: &'a HoldState, seq: Option<Seq>) -> Self {
        let reason = match state {
            HoldState::Revoked(reason) => Some(reason.as_str()),
            HoldState::Active
            | HoldState::Pinned(_)
            | HoldState::Consumed(_)
            | HoldState::Released
            | HoldState::Expired => None,
        };
        let unit = |held: &soldonce_core::HeldUnit| HeldUnitBody {
            unit: UnitBody::new(&event.chart, held.unit),
            price: held.price.minor(),
            version: held.version.0,
        };
        Self {
            id: hold.id,
            event: event.id.as_str(),
            holder: hold.holder.name.as_str(),
            state: state.as_str(),
            fence: hold.fence.0,
            units: hold.units.iter().map(unit).collect(),
            total: hold.total().minor(),
            currency: event.currency.as_str(),
            created_at: hold.created_at,
            expires_at: hold.expires_at,
            max_expires_at: hold.max_expires_at,
            booking: state.booking(),
            together: hold.together,
            reason,
            seq: seq.map(|seq| seq.0),
        }
    }
}

#[derive(Serialize)]
struct LineBody {
    #[serde(flatten)]
    unit: UnitBody,
    price: i64,
    version: u64,
    state: &'static str,
}

/// A booking as the API shows it.
#[derive(Serialize)]
pub struct BookingBody<'a> {
    #[serde(serialize_with = "as_text")]
    id: soldonce_core::BookingId,
    event: &'a str,
    holder: &'a str,
    #[serde(serialize_with = "as_text_opt")]
    hold: Option<soldonce_core::HoldId>,
    state: &'static str,
    fence: u64,
    lines: Vec<LineBody>,
    total: i64,
    currency: &'a str,
    reference: Option<&'a str>,
    payment: Option<PaymentBody>,
    #[serde(serialize_with = "as_rfc3339")]
    created_at: Timestamp,
    #[serde(serialize_with = "as_rfc3339_opt")]
    confirmed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

#[derive(Serialize)]
struct PaymentBody {
    state: &'static str,
}

impl<'a> BookingBody<'a> {
    /// `booking` of `event`.
    pub fn new(event: &'a Event, booking: &'a Booking, seq: Option<Seq>) -> Self {
        let line = |line: &soldonce_core::Line| LineBody {
            unit: UnitBody::new(&event.chart, line.unit),
            price: line.price.minor(),
            version: line.version.0,
            state: line.state.as_str(),
        };
        Self {
            id: booking.id,
            event: event.id.as_str(),
            holder: booking.holder.name.as_str(),
            hold: booking.hold,
            state: booking.state.as_str(),
            fence: booking.fence.0,
            lines: booking.lines.iter().map(line).collect(),
            total: booking.total().minor(),
            currency: event.currency.as_str(),
            reference: booking.reference.as_ref().map(soldonce_core::Text::as_str),
            payment: booking.payment.map(|state| PaymentBody { state: state.as_str() }),
            created_at: booking.created_at,
            confirmed_at: booking.confirmed_at,
            seq: seq.map(|seq| seq.0),
        }
    }
}
