//! Scenarios in which every request wants the seat that another holder has.

use super::product::{Setting, hold_seats, make_event};
use crate::load::{Holds, Makers, Requests, Wish, always};

const EVENT: &str = "hot";
const ROWS: u64 = 10;
const SEATS_PER_ROW: u64 = 20;
const SEAT: &str = "E-10";

async fn make_hot(setting: &Setting) -> anyhow::Result<()> {
    make_event(&setting.admin, EVENT, (ROWS, SEATS_PER_ROW)).await?;
    hold_seats(&setting.admin, EVENT, &[SEAT.to_owned()]).await
}

/// Sends the same request again and again, without an idempotency key.
pub(super) async fn refusals(setting: &Setting) -> anyhow::Result<Makers> {
    make_hot(setting).await?;
    let holds = Holds::new(setting.transport, setting.address, &setting.key);
    Ok(Box::new(move |connection| {
        let mut bytes = Vec::new();
        let wish = Wish {
            event: format_args!("{EVENT}"),
            holder: Some(format_args!("user-{connection}")),
            seat: format_args!("{SEAT}"),
        };
        holds.write(&mut bytes, wish);
        always(bytes)
    }))
}

/// Sends the same with a fresh idempotency key each.
pub(super) async fn keyed_refusals(setting: &Setting) -> anyhow::Result<Makers> {
    make_hot(setting).await?;
    let requests = Requests::new(setting.address, &setting.key);
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
