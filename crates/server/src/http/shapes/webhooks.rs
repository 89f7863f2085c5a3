//! Webhook endpoints, what was delivered to them, and the messages.
#![expect(dead_code, reason = "only their shape is read")]

use utoipa::ToSchema;

use super::holds::{Booking, Hold};
use super::words::MessageType;

/// News of a hold.
#[derive(ToSchema)]
pub(in crate::http) struct HoldMessage {
    r#type: MessageType,
    /// When it happened.
    #[schema(format = DateTime)]
    timestamp: String,
    data: Hold,
}

/// News of a booking.
#[derive(ToSchema)]
pub(in crate::http) struct BookingMessage {
    r#type: MessageType,
    /// When it happened.
    #[schema(format = DateTime)]
    timestamp: String,
    data: Booking,
}

/// News of an event.
#[derive(ToSchema)]
pub(in crate::http) struct EventMessage {
    r#type: MessageType,
    /// When it happened.
    #[schema(format = DateTime)]
    timestamp: String,
    data: CancelledEvent,
}

/// An event that was called off.
#[derive(ToSchema)]
pub(in crate::http) struct CancelledEvent {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    starts_at: Option<String>,
    /// What staff gave as the reason.
    reason: String,
}

/// Where messages are posted.
#[derive(ToSchema)]
pub(in crate::http) struct WebhookEndpoint {
    id: String,
    url: String,
    types: Vec<MessageType>,
    #[schema(format = DateTime)]
    created_at: String,
    /// When its secret was changed last.
    #[schema(format = DateTime)]
    rotated_at: Option<String>,
    /// Since when nothing is sent to it, because it answered 410 or staff said so.
    #[schema(format = DateTime)]
    disabled_at: Option<String>,
    /// It asked by `Retry-After` not to be called before.
    #[schema(format = DateTime)]
    quiet_until: Option<String>,
}

#[derive(ToSchema)]
pub(in crate::http) struct NewWebhookEndpoint {
    id: String,
    url: String,
    types: Vec<MessageType>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    rotated_at: Option<String>,
    #[schema(format = DateTime)]
    disabled_at: Option<String>,
    #[schema(format = DateTime)]
    quiet_until: Option<String>,
    /// `whsec_` and base 64: what messages are signed with, shown to the caller that made or rotated it.
    secret: String,
}
