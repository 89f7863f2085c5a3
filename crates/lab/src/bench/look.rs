//! Scenarios that read the seats of a hall of a thousand, some of them held.

use super::fresh::row_label;
use super::product::{Setting, hold_seats, make_event};
use crate::load::{Maker, Makers, Requests, always, hold_id};

const EVENT: &str = "hall";
const ROWS: u64 = 25;
const SEATS_PER_ROW: u64 = 40;

pub(super) async fn still(setting: &Setting) -> anyhow::Result<Makers> {
    let requests = requests(setting).await?;
    Ok(Box::new(move |_connection| look(&requests)))
}

/// Reads, while the first connection holds and releases a seat.
pub(super) async fn moving(setting: &Setting) -> anyhow::Result<Makers> {
    let requests = requests(setting).await?;
    Ok(Box::new(move |connection| match connection {
        0 => hold_and_release(requests.clone(), EVENT, 8),
        _ => look(&requests),
    }))
}

async fn requests(setting: &Setting) -> anyhow::Result<Requests> {
    make_event(&setting.admin, EVENT, (ROWS, SEATS_PER_ROW)).await?;
    let seat = |at: u64| format!("{}-{}", row_label(at / 16), at % 16 * 2 + 1);
    let seats: Vec<_> = (0..64).map(seat).collect();
    hold_seats(&setting.admin, EVENT, &seats).await?;
    Ok(Requests::new(setting.address, &setting.key))
}

fn look(requests: &Requests) -> Maker {
    let mut bytes = Vec::new();
    requests.bare(&mut bytes, "GET", format_args!("/v1/events/{EVENT}/seats"));
    always(bytes)
}

/// Makes each connection hold and release seats of its own rows.
pub(super) fn own_seats(setting: &Setting, event: &'static str) -> Makers {
    let requests = Requests::new(setting.address, &setting.key);
    Box::new(move |connection| {
        let first_row = u64::try_from(connection).unwrap_or(0) * ROWS_OF_ONE;
        hold_and_release(requests.clone(), event, first_row)
    })
}

/// Rows of one connection: it holds a seat in each, one after the other.
const ROWS_OF_ONE: u64 = 16;

fn hold_and_release(requests: Requests, event: &'static str, first_row: u64) -> Maker {
    Box::new(move |turn, buffer| {
        if let Some(hold) = hold_id(turn.last) {
            requests.bare(buffer, "DELETE", format_args!("/v1/holds/{hold}"));
            return true;
        }
        let row = row_label(first_row + turn.request % ROWS_OF_ONE);
        requests.post(
            buffer,
            format_args!("/v1/events/{event}/holds"),
            format_args!(r#"{{"holder":"restless-{first_row}","units":[{{"seat":"{row}-5"}}]}}"#),
        );
        true
    })
}
