//! The rules of Soldonce: what may be held, for how long, and what is sold once.
//!
//! Everything here is decided by [`Inventory::apply`] from its own state, a command and a given
//! `now`. No async, no I/O, no clock, no randomness, nothing outside the standard library.
//!
//! Reading order: the states ([`UnitState`], [`Hold`], [`Booking`]), the commands ([`Command`]) and their
//! refusals ([`Rejection`]), then the decisions in `inventory/`, one file a command. The [`Auditor`] checks
//! a history with rules of its own.
#![warn(clippy::as_conversions)]
#![allow(
    missing_docs,
    reason = "a field or variant whose name says it all has no line"
)]

pub mod limits;

mod id;
mod money;
mod number;
mod text;
mod time;
mod words;

mod booking;
mod chart;
mod event;
mod hold;
mod payment;
mod policy;
mod unit;

mod applied;
mod command;
mod rejection;
mod terms;

mod adjacency;
mod bits;
mod near;
mod pick;
mod seating;
mod tally;

mod auditor;
mod inventory;

pub use applied::{Answer, Applied, Basis, Commit};
pub use auditor::{Auditor, History, HoldTerms, Invariant, Violation};
pub use booking::{Booking, BookingState, Line, LineState};
pub use chart::{
    Area, AreaNo, AreaSpec, CategoryNo, Chart, ChartBuilder, Frame, Position, Row, RowNo, SeatSpec,
    Selection, UnitName, Zone,
};
pub use command::{
    Actor, Authority, Change, Command, Difference, LineChoice, NewHold, OnHold, Origin, Together,
    Wish,
};
pub use event::{Event, EventChange, EventState, EventUse, NewEvent};
pub use hold::{HeldUnit, Hold, HoldState};
pub use id::{
    BookingId, CallerId, EventId, HoldId, Holder, HolderName, Id, InvalidId, decode_128, encode_128,
};
pub use inventory::Inventory;
pub use money::{Amount, Currency};
pub use near::alternatives_near;
pub use number::{EventNo, Seq};
pub use payment::{Effect, GivenLines, Intent, Payment, PaymentReport, PaymentState};
pub use policy::{
    Adjacency, Deadline, LatePayment, OnPaymentFailure, POLICY_FIELDS, Policy, PolicyBounds,
    PolicyChange, PolicyField, PolicyKind, PolicyValue,
};
pub use rejection::{
    Advice, Alternative, Budget, Conflict, ConflictState, Invalid, Member, REJECTION_CODES,
    Rejection, Unavailable,
};
pub use seating::{Availability, Seating};
pub use tally::Tally;
pub use terms::{RequestedTerms, TtlMax};
pub use text::Text;
pub use time::{Span, Timestamp};
pub use unit::{Cause, Fence, StateKind, Transition, Unit, UnitNo, UnitState, Version};
