//! What the scenarios on the real server share: a key that sells, events, fresh seats, requests
//! with the key in them.

use std::fmt::{Arguments, Write as _};
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use hyper::Method;
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

/// Writes requests with a key into buffers that it keeps.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    fields: String,
    body: String,
    whole: Vec<u8>,
}

impl Requests {
    pub(super) fn new(address: SocketAddr, key: &str) -> Self {
        let fields = format!("host: {address}\r\nauthorization: Bearer {key}\r\n");
        Self {
            fields,
            body: String::new(),
            whole: Vec::new(),
        }
    }

    /// A POST of a JSON body; `more` are further header fields, each with its line end.
    pub(super) fn post(
        &mut self,
        path: Arguments<'_>,
        more: Arguments<'_>,
        body: Arguments<'_>,
    ) -> &[u8] {
        self.body.clear();
        self.whole.clear();
        // Writing to memory never fails.
        self.body.write_fmt(body).unwrap_or_default();
        let (fields, body, length) = (&self.fields, &self.body, self.body.len());
        write!(
            self.whole,
            "POST {path} HTTP/1.1\r\n{fields}content-type: application/json\r\n{more}\
             content-length: {length}\r\n\r\n{body}"
        )
        .unwrap_or_default();
        &self.whole
    }

    /// A GET.
    pub(super) fn get(&mut self, path: Arguments<'_>) -> &[u8] {
        self.whole.clear();
        let fields = &self.fields;
        write!(self.whole, "GET {path} HTTP/1.1\r\n{fields}\r\n").unwrap_or_default();
        &self.whole
    }

    /// A DELETE.
    pub(super) fn delete(&mut self, path: Arguments<'_>) -> &[u8] {
        self.whole.clear();
        let fields = &self.fields;
        write!(self.whole, "DELETE {path} HTTP/1.1\r\n{fields}\r\n").unwrap_or_default();
        &self.whole
    }

    /// A hold of one fresh seat for a holder of its own.
    pub(super) fn hold(&mut self, prefix: &str, seat: FreshSeat) -> &[u8] {
        let mut label = String::new();
        push_row_label(&mut label, seat.row);
        let FreshSeat {
            event,
            seat,
            number,
            ..
        } = seat;
        self.post(
            format_args!("/v1/events/{prefix}-{event}/holds"),
            format_args!(""),
            format_args!(r#"{{"holder":"user-{number}","units":[{{"seat":"{label}-{seat}"}}]}}"#),
        )
    }
}

/// The text of a JSON object's first field `name`, without parsing the rest: our own answers only.
pub(super) fn text_field<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, after) = text.split_once(name)?;
    let (value, _) = after.strip_prefix("\":\"")?.split_once('"')?;
    Some(value)
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

    #[test]
    fn a_field_is_found_in_an_answer() {
        let body = br#"{"id":"hld_1","event":"x"}"#;
        assert_eq!(text_field(body, "\"id"), Some("hld_1"));
        assert_eq!(text_field(b"{}", "\"id"), None);
    }

    #[test]
    fn a_request_says_its_length() {
        let mut requests = Requests::new(SocketAddr::from(([127, 0, 0, 1], 1)), "k");
        let post = requests.post(
            format_args!("/x"),
            format_args!("a: b\r\n"),
            format_args!("{{}}"),
        );
        let text = std::str::from_utf8(post).unwrap();
        assert!(
            text.ends_with("a: b\r\ncontent-length: 2\r\n\r\n{}"),
            "{text}"
        );
        assert!(text.contains("authorization: Bearer k\r\n"), "{text}");
    }
}
