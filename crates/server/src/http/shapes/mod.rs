//! The shapes of answers that are not written from a type of this crate: the engine writes holds, bookings and
//! webhook endpoints, and hot paths write their JSON by hand. Tests compare every answer with them.

mod holds;
mod refusals;
mod seats;
mod webhooks;
mod words;

pub(super) use self::holds::{
    BlockedUnits, Booking, BookingList, Hold, HoldList, Transition, UnblockedUnits,
};
pub(super) use self::refusals::Problem;
pub(super) use self::seats::{AreaCounts, Chart, Seats};
pub(super) use self::webhooks::{
    BookingMessage, EventMessage, HoldMessage, NewWebhookEndpoint, WebhookEndpoint,
};
pub(super) use self::words::{DeliveryState, MessageType, UnitState};
