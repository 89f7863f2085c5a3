//! Scenarios in which every request wants the seat that another holder has.

use super::product::{Setting, hold_seats, make_event};
use crate::load::{Makers, Requests, always};

const EVENT: &str = "hot";
const ROWS: u64 = 10;
const SEATS_PER_ROW: u64 = 20;
const SEAT: &str = "E-10";

async fn requests(setting: &Setting) -> anyhow::Result<Requests> {
    make_event(&setting.admin, EVENT, (ROWS, SEATS_PER_ROW)).await?;
    hold_seats(&setting.admin, EVENT, &[SEAT.to_owned()]).await?;
    Ok(Requests::new(setting.address, &setting.key))
}

/// Sends the same request again and again, without an idempotency key.
pub(super) async fn refusals(setting: &Setting) -> anyhow::Result<Makers> {
    let requests = requests(setting).await?;
    Ok(Box::new(move |connection| {
        let mut bytes = Vec::new();
        requests.post(
            &mut bytes,
            format_args!("/v1/events/{EVENT}/holds"),
            format_args!(r#"{{"holder":"user-{connection}","units":[{{"seat":"{SEAT}"}}]}}"#),
        );
        always(bytes)
    }))
}

/// Sends the same with a fresh idempotency key each.
pub(super) async fn keyed_refusals(setting: &Setting) -> anyhow::Result<Makers> {
    let requests = requests(setting).await?;
    Ok(Box::new(move |connection| {
        let requests = requests.clone();
        Box::new(move |turn, buffer| {
            requests.post_once(
                buffer,
                format_args!("/v1/events/{EVENT}/holds"),
                format_args!("{connection}-{}", turn.request),
                format_args!(r#"{{"holder":"user-{connection}","units":[{{"seat":"{SEAT}"}}]}}"#),
            );
            true
        })
    }))
}
