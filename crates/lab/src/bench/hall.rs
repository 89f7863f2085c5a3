//! What the scenarios on the real server share: a key that sells, events, fresh seats.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use axum::http::Method;
use serde_json::{Value, json};

use super::scenario::Setting;
use crate::client::Client;

/// Seats of a row, and rows, of the events from which fresh seats are taken.
const FRESH_SEATS_PER_ROW: u64 = 200;
const FRESH_ROWS_MAX: u64 = 200;
/// From seat to seat given: a prime that divides no hall here, so that every seat is met once.
const STRIDE: u64 = 618_041;

/// Staff's way in.
///
/// # Errors
/// When the server is not the real one.
pub(super) fn admin(setting: &Setting) -> anyhow::Result<&Client> {
    setting
        .admin
        .as_ref()
        .context("this scenario needs the real server")
}

/// Makes a key that sells; gives its text.
///
/// # Errors
/// When the server refuses.
pub(super) async fn sell_key(admin: &Client) -> anyhow::Result<String> {
    let body = json!({ "name": "bench", "scopes": ["sell"] });
    let answer = admin
        .send(Method::POST, "/v1/keys", Some(&body))
        .await?
        .into_success()?;
    let key = answer.get("key").and_then(Value::as_str);
    Ok(key.context("the server made no key")?.to_owned())
}

/// Makes an event with a grid of seats whose holds outlast the benchmark.
///
/// # Errors
/// When the server refuses.
pub(super) async fn make_event(
    admin: &Client,
    id: &str,
    (rows, seats_per_row): (u64, u64),
) -> anyhow::Result<()> {
    let body = json!({
        "id": id, "name": "Bench", "currency": "EUR",
        "chart": {
            "format": "grid", "rows": rows, "seats_per_row": seats_per_row, "category": "Standard",
        },
        "prices": { "Standard": 4_500 },
        "policy": {
            "hold_ttl_ms": 7_200_000, "hold_max_ms": 14_400_000,
            "units_per_hold_max": 64, "units_per_holder_max": 64,
        },
    });
    admin
        .send(Method::POST, "/v1/events", Some(&body))
        .await?
        .into_success()?;
    Ok(())
}

/// The label of a grid's row: A, B, .. Z, AA, AB, ..
pub(super) fn push_row_label(text: &mut String, row: u64) {
    if let Some(before) = (row / 26).checked_sub(1) {
        push_row_label(text, before);
    }
    let letter = u8::try_from(row % 26).unwrap_or(0);
    text.push(char::from(b'A' + letter));
}

/// Seats that nobody asked for yet, each given once, over all connections.
#[derive(Debug)]
pub(super) struct FreshSeats {
    prefix: String,
    rows: u64,
    seats_per_row: u64,
    events: u64,
    filling: Filling,
    taken: AtomicU64,
}

/// In which order fresh seats are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// One beside the other, as rows fill up.
    InRows,
    /// All over the event: neighbours in time are none in the hall.
    Spread,
}

/// A fresh seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreshSeat {
    /// Which of the events `<prefix>-<event>`.
    pub(super) event: u64,
    pub(super) row: u64,
    /// From 1.
    pub(super) seat: u64,
    /// Rises with every seat given.
    pub(super) number: u64,
}

impl FreshSeats {
    /// Makes events with at least so many seats.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) async fn make(
        admin: &Client,
        prefix: &str,
        seats: u64,
        filling: Filling,
    ) -> anyhow::Result<Self> {
        let rows = seats.div_ceil(FRESH_SEATS_PER_ROW).clamp(1, FRESH_ROWS_MAX);
        let events = seats.div_ceil(rows * FRESH_SEATS_PER_ROW);
        let made = Self::make_events(admin, prefix, events, (rows, FRESH_SEATS_PER_ROW)).await?;
        Ok(Self { filling, ..made })
    }

    /// Makes so many events of this size; seats are given all over each.
    ///
    /// # Errors
    /// When the server refuses.
    pub(super) async fn make_events(
        admin: &Client,
        prefix: &str,
        events: u64,
        (rows, seats_per_row): (u64, u64),
    ) -> anyhow::Result<Self> {
        for event in 0..events {
            make_event(admin, &format!("{prefix}-{event}"), (rows, seats_per_row)).await?;
        }
        let (prefix, filling, taken) = (prefix.to_owned(), Filling::Spread, AtomicU64::new(0));
        Ok(Self {
            prefix,
            rows,
            seats_per_row,
            events,
            filling,
            taken,
        })
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The next one; None when all are given.
    pub(super) fn take(&self) -> Option<FreshSeat> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let in_event = self.rows * self.seats_per_row;
        let (event, at) = (number / in_event, number % in_event);
        let at = match self.filling {
            Filling::InRows => at,
            Filling::Spread => at * STRIDE % in_event,
        };
        let (row, seat) = (at / self.seats_per_row, at % self.seats_per_row + 1);
        (event < self.events).then_some(FreshSeat {
            event,
            row,
            seat,
            number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seat_is_given_once_and_then_none() {
        let seats = FreshSeats {
            filling: Filling::Spread,
            prefix: "e".to_owned(),
            rows: 2,
            seats_per_row: 3,
            events: 2,
            taken: AtomicU64::new(0),
        };
        let mut given: Vec<_> = std::iter::from_fn(|| seats.take())
            .map(|seat| (seat.event, seat.row, seat.seat))
            .collect();
        assert_eq!(given.len(), 12);
        given.sort_unstable();
        given.dedup();
        assert_eq!(given.len(), 12);
        assert_eq!(seats.take(), None);
    }
}
