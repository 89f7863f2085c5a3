//! Holds every seat of a hall, in holds of many seats, and confirms every second hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::hall::{make_event, push_row_label, sell_key};
use super::product::Product;
use super::requests::{Requests, text_field};
use super::scenario::Setting;
use crate::limits::LOAD_SECONDS_MAX;
use crate::load::{self, LoadPlan, Makers, Pace, RequestMaker, Turn, Until};

const EVENT: &str = "full";
/// Seats of one hold; divides the seats of every row that is filled.
const SEATS_PER_HOLD: u64 = 50;

/// Fills a hall of so many rows and seats.
///
/// # Errors
/// When the server refuses any of it.
pub(super) async fn fill(
    server: &Product,
    setting: &Setting,
    (rows, seats_per_row): (u64, u64),
) -> anyhow::Result<()> {
    let key = sell_key(&server.admin).await?;
    make_event(&server.admin, EVENT, (rows, seats_per_row)).await?;
    let blocks = Arc::new(Blocks {
        per_row: seats_per_row / SEATS_PER_HOLD,
        all: rows * (seats_per_row / SEATS_PER_HOLD),
        taken: AtomicU64::new(0),
    });
    let all = blocks.all;
    let requests = Requests::new(setting.address, &key);
    let makers: Makers = Box::new(move |_connection| {
        let (blocks, requests) = (Arc::clone(&blocks), requests.clone());
        Box::new(FillMaker {
            blocks,
            requests,
            confirms: false,
        }) as Box<dyn RequestMaker>
    });
    let plan = LoadPlan {
        address: setting.address,
        connections: setting.connections,
        pace: Pace::Closed,
        until: Until::Elapsed(Duration::from_secs(LOAD_SECONDS_MAX)),
    };
    let report = load::run(plan, &makers).await?;
    let made = report.statuses.get(&201).copied().unwrap_or_default();
    anyhow::ensure!(
        made == report.sent && made >= all,
        "the hall was not filled: {report:?}"
    );
    Ok(())
}

/// Runs of seats, each given once.
struct Blocks {
    per_row: u64,
    all: u64,
    taken: AtomicU64,
}

struct FillMaker {
    blocks: Arc<Blocks>,
    requests: Requests,
    /// Whether the last hold is to be confirmed.
    confirms: bool,
}

impl RequestMaker for FillMaker {
    fn next(&mut self, turn: Turn<'_>) -> Option<&[u8]> {
        let held = turn.last.filter(|_| std::mem::take(&mut self.confirms));
        if let Some(hold) = held.and_then(|answer| text_field(answer.body, "\"id")) {
            return Some(self.requests.post(
                format_args!("/v1/holds/{hold}/confirm"),
                format_args!("idempotency-key: pay-{hold}\r\n"),
                format_args!("{{}}"),
            ));
        }
        let block = self.blocks.taken.fetch_add(1, Ordering::Relaxed);
        if block >= self.blocks.all {
            return None;
        }
        self.confirms = block.is_multiple_of(2);
        let mut row = String::new();
        push_row_label(&mut row, block / self.blocks.per_row);
        let first = block % self.blocks.per_row * SEATS_PER_HOLD + 1;
        let seats = (first..first + SEATS_PER_HOLD)
            .map(|seat| format!(r#"{{"seat":"{row}-{seat}"}}"#))
            .collect::<Vec<_>>()
            .join(",");
        Some(self.requests.post(
            format_args!("/v1/events/{EVENT}/holds"),
            format_args!(""),
            format_args!(r#"{{"holder":"user-{block}","units":[{seats}]}}"#),
        ))
    }
}
