//! Scenarios in which each request gets a seat that no other wants: holds, and holds that are confirmed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use soldonce_server::Client;

use super::product::{Setting, make_event};
use crate::load::{Holds, Makers, Requests, Transport, Wish, hold_id};

/// Seats of a row, and rows, of the events from which fresh seats are taken.
const SEATS_PER_ROW: u64 = 200;
const ROWS_MAX: u64 = 200;
/// Distance between seats given: a prime that divides no hall here, so that each is given once.
const STRIDE: u64 = 618_041;

/// Makes events with enough seats for the load, and sends holds of them.
pub(super) async fn fresh_holds(setting: &Setting, filling: Filling) -> anyhow::Result<Makers> {
    Ok(holds(setting, FreshSeats::make(setting, filling).await?))
}

pub(super) fn holds(setting: &Setting, seats: FreshSeats) -> Makers {
    let holds = Holds::new(setting.transport, setting.address, &setting.key);
    let seats = Arc::new(seats);
    Box::new(move |_connection| {
        let (seats, holds) = (Arc::clone(&seats), holds.clone());
        Box::new(move |_, buffer| seats.hold_next(&holds, buffer))
    })
}

/// Sends a hold, then its confirm, and so on: only over HTTP, where the id of the hold is seen.
pub(super) async fn pairs(setting: &Setting) -> anyhow::Result<Makers> {
    let seats = Arc::new(FreshSeats::make(setting, Filling::InRows).await?);
    let requests = Requests::new(setting.address, &setting.key);
    let holds = Holds::new(Transport::Http, setting.address, &setting.key);
    Ok(Box::new(move |_connection| {
        let (seats, requests, holds) = (Arc::clone(&seats), requests.clone(), holds.clone());
        let mut held = false;
        Box::new(move |turn, buffer| {
            if let Some(hold) = hold_id(turn.last.filter(|_| held)) {
                held = false;
                confirm(&requests, buffer, hold);
                return true;
            }
            held = true;
            seats.hold_next(&holds, buffer)
        })
    }))
}

pub(super) fn confirm(requests: &Requests, buffer: &mut Vec<u8>, hold: &str) {
    requests.post_once(
        buffer,
        format_args!("/v1/holds/{hold}/confirm"),
        format_args!("pay-{hold}"),
        format_args!(r#"{{"reference":"order-77"}}"#),
    );
}

/// Formats the label of a grid's row: A, B, .. Z, AA, AB, ..
pub(super) fn row_label(row: u64) -> String {
    let before = (row / 26).checked_sub(1).map(row_label);
    let letter = char::from(b'A' + u8::try_from(row % 26).unwrap_or(0));
    format!("{}{letter}", before.unwrap_or_default())
}

/// Seats that no request wanted yet, each given once, over all connections.
#[derive(Debug)]
pub(super) struct FreshSeats {
    prefix: &'static str,
    rows: u64,
    seats_per_row: u64,
    events: u64,
    filling: Filling,
    taken: AtomicU64,
}

/// In which order fresh seats are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// As rows fill up.
    InRows,
    /// All over the hall: each changes another page of the ledger's table.
    Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FreshSeat {
    /// Which of the events `<prefix>-<event>`.
    event: u64,
    row: u64,
    /// From 1.
    seat: u64,
    /// Rises with every seat given.
    number: u64,
}

impl FreshSeats {
    /// Makes events with enough seats for the load.
    async fn make(setting: &Setting, filling: Filling) -> anyhow::Result<Self> {
        let seats = setting.requests_max;
        let rows = seats.div_ceil(SEATS_PER_ROW).clamp(1, ROWS_MAX);
        let events = seats.div_ceil(rows * SEATS_PER_ROW);
        let size = (rows, SEATS_PER_ROW);
        let made = Self::make_events(&setting.admin, "fresh", events, size).await?;
        Ok(Self { filling, ..made })
    }

    /// Makes so many events of this size; seats are given all over each.
    pub(super) async fn make_events(
        admin: &Client,
        prefix: &'static str,
        events: u64,
        (rows, seats_per_row): (u64, u64),
    ) -> anyhow::Result<Self> {
        for event in 0..events {
            make_event(admin, &format!("{prefix}-{event}"), (rows, seats_per_row)).await?;
        }
        Ok(Self {
            prefix,
            rows,
            seats_per_row,
            events,
            filling: Filling::Spread,
            taken: AtomicU64::new(0),
        })
    }

    /// Writes a hold of the next seat for a holder of its own; false when all are given.
    fn hold_next(&self, holds: &Holds, buffer: &mut Vec<u8>) -> bool {
        let Some(fresh) = self.take() else {
            return false;
        };
        let (prefix, label) = (self.prefix, row_label(fresh.row));
        let wish = Wish {
            event: format_args!("{prefix}-{}", fresh.event),
            holder: Some(format_args!("user-{}", fresh.number)),
            seat: format_args!("{label}-{}", fresh.seat),
        };
        holds.write(buffer, wish);
        true
    }

    fn take(&self) -> Option<FreshSeat> {
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
            prefix: "e",
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

    #[test]
    fn rows_are_labelled_as_a_grid_labels_them() {
        assert_eq!(
            [0, 25, 26, 27, 702].map(row_label),
            ["A", "Z", "AA", "AB", "AAA"]
        );
    }
}
