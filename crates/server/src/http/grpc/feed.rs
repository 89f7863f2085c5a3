//! The feed as a stream of messages: each server-sent event is one.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, iter, once};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::message;
use super::shape::Shape;

/// Returns the messages of an answer. At shutdown they end with `UNAVAILABLE`: another server goes on.
pub(super) fn messages(
    shape: Arc<Shape>,
    body: Body,
    shutdown: CancellationToken,
) -> BoxStream<'static, Result<Bytes, Status>> {
    // A part of the answer has whole events.
    let parts = body.into_data_stream().flat_map(move |part| {
        let part = part.unwrap_or_default();
        let text = String::from_utf8_lossy(&part).into_owned();
        let messages: Vec<_> = text
            .split("\n\n")
            .filter_map(|event| message_of(&shape, event))
            .collect();
        iter(messages)
    });
    let end = once(async move {
        let stopping = shutdown.is_cancelled();
        stopping.then(|| Err(Status::unavailable("the server is stopping")))
    });
    parts.chain(end.filter_map(std::future::ready)).boxed()
}

/// Builds the message of a server-sent event; None where it is a comment.
fn message_of(shape: &Shape, event: &str) -> Option<Result<Bytes, Status>> {
    let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let mut data: Value = serde_json::from_str(line("data: ")?).ok()?;
    let kind = line("event: ").unwrap_or_else(|| {
        write_runs(&mut data);
        "frame"
    });
    Some(message::read_json(shape, json!({ kind: data })))
}

/// Writes seats as runs: `"A-1"` has a first one alone.
fn write_runs(frame: &mut Value) {
    let changes = frame.get_mut("changes").and_then(Value::as_array_mut);
    let seats = |change: &mut Value| change.get_mut("seats").map(Value::take);
    for change in changes.into_iter().flatten() {
        if let Some(Value::Array(runs)) = seats(change) {
            let run = |run: Value| match run.as_array() {
                Some(ends) => json!({ "first": ends.first(), "last": ends.last() }),
                None => json!({ "first": run }),
            };
            if let Some(change) = change.as_object_mut() {
                change.insert("seats".to_owned(), runs.into_iter().map(run).collect());
            }
        }
    }
}
