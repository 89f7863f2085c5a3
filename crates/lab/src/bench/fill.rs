//! Holds every seat of a hall, in holds of many seats, and confirms every second hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::fresh::{confirm, row_label};
use super::product::{Setting, make_event};
use crate::limits::LOAD_SECONDS_MAX;
use crate::load::{self, LoadPlan, Maker, Makers, Pace, Requests, Until, hold_id};

const EVENT: &str = "full";
/// Seats of one hold; divides the seats of every row that is filled.
const SEATS_PER_HOLD: u64 = 50;

/// Fills a hall of so many rows and seats.
pub(super) async fn fill(
    setting: &Setting,
    connections: u32,
    (rows, seats_per_row): (u64, u64),
) -> anyhow::Result<()> {
    make_event(&setting.admin, EVENT, (rows, seats_per_row)).await?;
    let per_row = seats_per_row / SEATS_PER_HOLD;
    let holds = rows * per_row;
    let requests = Requests::new(setting.address, &setting.key);
    let taken = Arc::new(AtomicU64::new(0));
    let next = move || {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        (number < holds).then_some(number)
    };
    let makers: Makers =
        Box::new(move |_connection| maker(requests.clone(), next.clone(), per_row));
    let until = Until::Elapsed(Duration::from_secs(LOAD_SECONDS_MAX));
    let plan = LoadPlan::http(setting.address, connections, Pace::Closed, until);
    let report = load::run(plan, &makers).await?;
    let made = report.count(201);
    anyhow::ensure!(
        made == report.sent && made >= holds,
        "the hall was not filled: {report:?}"
    );
    Ok(())
}

/// Builds a maker: it holds the seats of the next number, and confirms the hold if that is even.
fn maker(
    requests: Requests,
    next: impl Fn() -> Option<u64> + Send + 'static,
    per_row: u64,
) -> Maker {
    let mut confirms = false;
    Box::new(move |turn, buffer| {
        if let Some(hold) = hold_id(turn.last.filter(|_| std::mem::take(&mut confirms))) {
            confirm(&requests, buffer, hold);
            return true;
        }
        let Some(number) = next() else {
            return false;
        };
        confirms = number.is_multiple_of(2);
        let row = row_label(number / per_row);
        let first = number % per_row * SEATS_PER_HOLD + 1;
        let seats = (first..first + SEATS_PER_HOLD)
            .map(|seat| format!(r#"{{"seat":"{row}-{seat}"}}"#))
            .collect::<Vec<_>>()
            .join(",");
        requests.post(
            buffer,
            format_args!("/v1/events/{EVENT}/holds"),
            format_args!(r#"{{"holder":"user-{number}","units":[{seats}]}}"#),
        );
        true
    })
}
