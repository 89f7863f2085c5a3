//! Frames of a feed: how they are written, and the task that sends them to all readers of an event.

mod hub;
#[cfg(test)]
mod tests;
mod written;

use bytes::Bytes;
use soldonce_core::Timestamp;
use soldonce_engine::EventSummary;

pub(super) use self::hub::{Hub, Hubs, Surroundings, Tick};
pub(super) use self::written::{Cut, FrameBody, json, json_reset};

use super::event_body::EventBody;

/// Writes the event as `GET /v1/events/{event}` shows it, for a reader that just came or when it
/// changed. It has no id: a reader that comes again gets it anew.
pub(super) fn event_message(summary: &EventSummary, now: Timestamp) -> Bytes {
    let body = EventBody::new(summary, now, &[]);
    // Writing to memory does not fail.
    let data = serde_json::to_string(&body).unwrap_or_default();
    Bytes::from(format!("event: event\ndata: {data}\n\n"))
}
