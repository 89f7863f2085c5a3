//! Decides which messages a command makes: from its transitions, on the state in which it left the
//! rules' memory, before the next command of the same batch changes it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use sha2::{Digest, Sha256};
use soldonce_core::{
    Amount, Applied, Booking, BookingId, BookingState, Cause, Command, Event, HoldId, Inventory,
    Timestamp, Transition, UnitState,
};

use super::{MessageId, MessageKind};
use crate::ledger::named;
use crate::reply::{BookingBody, CancelledEventBody, HoldBody, Rfc3339};

/// A message before it has an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) kind: MessageKind,
    /// The hold, or a booking that never had one: messages of one subject are delivered in
    /// sequence. An event has its number, which no id is as small as.
    pub(crate) subject: [u8; 16],
    pub(crate) body: String,
}

/// The state before a command that its messages depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    /// The money of the booking that it names, if it names one.
    Booking(Option<RefundState>),
    /// It cancels an event.
    CancelEvent,
}

/// The state of a booking and its refunds at one time, such as before a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefundState {
    booking: BookingId,
    state: BookingState,
    refunded: Amount,
}

impl RefundState {
    fn new(booking: &Booking) -> Self {
        let payment = booking.payment.as_deref();
        Self {
            booking: booking.id,
            state: booking.state,
            refunded: payment.map_or(Amount::ZERO, |payment| {
                Amount::sum([payment.refunded, payment.elsewhere].into_iter())
            }),
        }
    }

    /// Tells whether money was refunded, by the provider or elsewhere, or given up before it was taken, since `before`.
    fn is_refunded_since(self, before: Self) -> bool {
        let is = |known: Self| known.state == BookingState::Refunded;
        self.refunded > before.refunded || (is(self) && !is(before))
    }
}

#[derive(Serialize)]
struct Body<T> {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: Rfc3339,
    data: T,
}

impl Before {
    /// Reads the state of what `command` names.
    pub(crate) fn of(inventory: &Inventory, command: &Command) -> Self {
        if let Command::CancelEvent { .. } = command {
            return Self::CancelEvent;
        }
        let booking = named(command).booking.and_then(|id| inventory.booking(id));
        Self::Booking(booking.map(RefundState::new))
    }

    /// Writes the messages about the command, in the sequence in which they are delivered.
    pub(crate) fn messages(
        self,
        inventory: &Inventory,
        applied: &Applied,
        at: Timestamp,
    ) -> Vec<Message> {
        let mut messages = Vec::new();
        let before = match self {
            Self::Booking(before) => before,
            Self::CancelEvent => {
                let event = applied.event.and_then(|no| inventory.event(no));
                messages.extend(event.and_then(|event| of_cancelled(event, at)));
                None
            }
        };
        for (hold, kind) in ended(applied) {
            messages.extend(of_hold(inventory, hold, kind, at));
        }
        let mut told = told_of_bookings(applied);
        let bookings = applied.bookings.iter();
        for booking in bookings.filter_map(|id| inventory.booking(*id)) {
            let mut kinds = told.remove(&booking.id).unwrap_or_default();
            // Only commands that name the booking refund its money.
            let before = before.filter(|known| known.booking == booking.id);
            if before.is_some_and(|before| RefundState::new(booking).is_refunded_since(before)) {
                kinds.insert(MessageKind::BookingRefunded);
            }
            let kinds = kinds.into_iter();
            messages.extend(kinds.filter_map(|kind| of_booking(inventory, booking, kind, at)));
        }
        messages
    }
}

/// Finds the holds that this command wrote down as ended by the clock or by staff.
fn ended(applied: &Applied) -> BTreeMap<HoldId, MessageKind> {
    let end = |step: &Transition| match step.from {
        UnitState::Held { hold, .. } => told_as(step.cause).map(|kind| (hold, kind)),
        UnitState::Free | UnitState::Sold(_) | UnitState::Blocked => None,
    };
    let of_hold = |(_, kind): &(HoldId, MessageKind)| {
        matches!(kind, MessageKind::HoldExpired | MessageKind::HoldRevoked)
    };
    applied.steps().filter_map(end).filter(of_hold).collect()
}

/// Finds the kinds of messages of each booking that got or lost units.
fn told_of_bookings(applied: &Applied) -> BTreeMap<BookingId, BTreeSet<MessageKind>> {
    let mut told: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for step in applied.steps() {
        for state in [step.from, step.to] {
            if let (UnitState::Sold(booking), Some(kind)) = (state, told_as(step.cause)) {
                told.entry(booking).or_default().insert(kind);
            }
        }
    }
    told
}

fn told_as(cause: Cause) -> Option<MessageKind> {
    match cause {
        Cause::Confirmed | Cause::SoldDirectly => Some(MessageKind::BookingConfirmed),
        Cause::Cancelled => Some(MessageKind::BookingCancelled),
        Cause::Exchanged => Some(MessageKind::BookingExchanged),
        Cause::Expired => Some(MessageKind::HoldExpired),
        Cause::Revoked => Some(MessageKind::HoldRevoked),
        Cause::Held
        | Cause::Extended
        | Cause::Changed
        | Cause::Pinned
        | Cause::Unpinned
        | Cause::Released
        | Cause::Blocked
        | Cause::Unblocked
        | Cause::ClockCorrected => None,
    }
}

fn of_hold(
    inventory: &Inventory,
    hold: HoldId,
    kind: MessageKind,
    at: Timestamp,
) -> Option<Message> {
    let hold = inventory.hold(hold)?;
    let data = HoldBody::new(inventory.event(hold.event)?, hold, &hold.state, None);
    message(kind, *hold.id.bytes(), at, data)
}

fn of_cancelled(event: &Event, at: Timestamp) -> Option<Message> {
    let subject = u128::from(event.no.0).to_be_bytes();
    let data = CancelledEventBody::new(event)?;
    message(MessageKind::EventCancelled, subject, at, data)
}

fn of_booking(
    inventory: &Inventory,
    booking: &Booking,
    kind: MessageKind,
    at: Timestamp,
) -> Option<Message> {
    let event = inventory.event(booking.event)?;
    let subject = booking.hold.map_or(*booking.id.bytes(), |id| *id.bytes());
    message(kind, subject, at, BookingBody::new(event, booking, None))
}

fn message(
    kind: MessageKind,
    subject: [u8; 16],
    at: Timestamp,
    data: impl Serialize,
) -> Option<Message> {
    let body = Body {
        kind: kind.as_str(),
        timestamp: Rfc3339(at),
        data,
    };
    let body = serde_json::to_string(&body).ok()?;
    // The same message has the same id wherever it is written: no two of a booking have one body,
    // because its state or its amounts differ.
    let sum: [u8; 32] = Sha256::digest(body.as_bytes()).into();
    let id = sum.first_chunk::<16>().copied().unwrap_or_default();
    Some(Message {
        id: MessageId::from_bytes(id),
        kind,
        subject,
        body,
    })
}
