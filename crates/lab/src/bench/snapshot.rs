//! Looking at a hall of a thousand seats, some of them held; still, or while one buyer holds and
//! releases without pause.

use std::net::SocketAddr;

use super::super::load::{Fixed, Makers, RequestMaker, Turn};
use super::hall::{admin, make_event, sell_key};
use super::requests::{Requests, text_field};
use super::scenario::{Prepared, Scenario, Setting};

/// The scenarios `snapshot` and `snapshot-moving`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// Nobody buys.
    Still,
    /// The first connection holds and releases a seat.
    Moving,
}

const EVENT: &str = "hall";
const ROWS: u64 = 25;
const SEATS_PER_ROW: u64 = 40;

impl Scenario for Snapshot {
    fn name(&self) -> &'static str {
        match self {
            Self::Still => "snapshot",
            Self::Moving => "snapshot-moving",
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Still => "GET the seats of a hall of 1,000, 64 of them held",
            Self::Moving => "the same while the first connection holds and releases a seat",
        }
    }

    fn expects(&self) -> &'static [u16] {
        match self {
            Self::Still => &[200],
            Self::Moving => &[200, 201],
        }
    }

    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async move {
            let admin = admin(setting)?;
            let key = sell_key(admin).await?;
            make_event(admin, EVENT, (ROWS, SEATS_PER_ROW)).await?;
            let seats: Vec<_> = (0..64)
                .map(|at| serde_json::json!({ "seat": format!("{}-{}", row(at / 16), at % 16 * 2 + 1) }))
                .collect();
            let first = serde_json::json!({ "holder": "first", "units": seats });
            let path = format!("/v1/events/{EVENT}/holds");
            admin
                .send(axum::http::Method::POST, &path, Some(&first))
                .await?
                .into_success()?;
            Ok((*self).makers_of(setting.address, key))
        })
    }
}

impl Snapshot {
    fn makers_of(self, address: SocketAddr, key: String) -> Makers {
        let moving = self == Self::Moving;
        Box::new(move |connection| -> Box<dyn RequestMaker> {
            let mut requests = Requests::new(address, &key);
            if moving && connection == 0 {
                return Box::new(Restless { requests });
            }
            let path = format_args!("/v1/events/{EVENT}/seats");
            Box::new(Fixed(requests.get(path).to_vec()))
        })
    }
}

fn row(number: u64) -> char {
    char::from(b'A' + u8::try_from(number % 26).unwrap_or(0))
}

/// Holds a seat, releases it, and so on.
struct Restless {
    requests: Requests,
}

impl RequestMaker for Restless {
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]> {
        let held = turn.last.filter(|answer| answer.status == 201);
        if let Some(hold) = held.and_then(|answer| text_field(answer.body, "\"id")) {
            return Some(self.requests.delete(format_args!("/v1/holds/{hold}")));
        }
        let row = row(8 + turn.request % 16);
        Some(self.requests.post(
            format_args!("/v1/events/{EVENT}/holds"),
            format_args!(""),
            format_args!(r#"{{"holder":"restless","units":[{{"seat":"{row}-5"}}]}}"#),
        ))
    }
}
