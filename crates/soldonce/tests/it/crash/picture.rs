//! Everything a ledger answers, as one text: two ledgers with the same text answer the same.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_core::{Authority, BookingId, Command, EventId, HoldId, Inventory, OnHold, Origin};
use soldonce_engine::ledger::sqlite::{OpenError, SqliteLedger, SqliteOptions};
use soldonce_engine::ledger::{Ledger, Observer, RequestKey, Transaction};

use super::cards::{Card, EVENT};

/// What is asked: every hold, booking and key of these clients.
pub(crate) struct Questions(Vec<Card>);

impl From<Vec<Card>> for Questions {
    fn from(cards: Vec<Card>) -> Self {
        Self(cards)
    }
}

/// The memory of a ledger as it was built from the files.
#[derive(Default)]
struct Opened(Mutex<String>);

impl Observer for Opened {
    fn opened(&self, inventory: &Inventory) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for event in inventory.events() {
            writeln!(text, "{event:?}").unwrap();
            let units = inventory
                .seating(event.no)
                .map(|seating| seating.units().to_vec());
            writeln!(text, "{units:?}").unwrap();
        }
        for hold in inventory.holds() {
            writeln!(text, "{hold:?}").unwrap();
        }
    }
}

/// Opens a ledger and asks it everything. The inner error is one that was met at use.
pub(crate) fn picture(
    options: &SqliteOptions,
    asked: &Questions,
) -> Result<Result<String, String>, OpenError> {
    let opened = Arc::new(Opened::default());
    let observer = Arc::clone(&opened);
    let ledger = SqliteLedger::open(options, Arc::new(SystemClock), &SystemEntropy, observer)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let answers = runtime.block_on(async {
        let answers = answers(&ledger, asked).await;
        ledger.close().await;
        answers
    });
    let memory = opened.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(answers.map(|answers| format!("{memory}{answers}")))
}

async fn answers(ledger: &SqliteLedger, asked: &Questions) -> Result<String, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut text = String::new();
    let event = EventId::parse(EVENT).map_err(|error| said(&error))?;
    let history = ledger.history(event).await.map_err(|error| said(&error))?;
    writeln!(text, "{:?} {:?}", history.holds, history.commits).unwrap();
    let keys = ledger.keys().await.map_err(|error| said(&error))?;
    writeln!(text, "{keys:?}").unwrap();
    for card in &asked.0 {
        let Some(hold) = card.id().and_then(|id| id.parse::<HoldId>().ok()) else {
            continue;
        };
        let found = ledger.hold(hold).await.map_err(|error| said(&error))?;
        writeln!(text, "{found:?}").unwrap();
        if let Some(booking) = card
            .booking_id()
            .and_then(|id| id.parse::<BookingId>().ok())
        {
            let found = ledger
                .booking(booking)
                .await
                .map_err(|error| said(&error))?;
            writeln!(text, "{found:?}").unwrap();
        }
        let key = keys.first().and_then(|key| confirm_key(key.id, card));
        if key.is_some() {
            let done = ledger.transact(confirm_again(hold, key)).await;
            writeln!(text, "{done:?}").unwrap();
        }
    }
    if ledger.is_writable() {
        Ok(text)
    } else {
        Err("the ledger went read-only".to_owned())
    }
}

/// The key under which the card's hold was confirmed over HTTP.
fn confirm_key(caller: soldonce_core::CallerId, card: &Card) -> Option<RequestKey> {
    let confirm = &card.confirm.as_ref()?.ask;
    let body = confirm.body.as_ref()?.to_string();
    let route = "POST /v1/holds/{hold}/confirm";
    Some(RequestKey::new(
        caller,
        route,
        confirm.key.as_deref()?,
        &[card.id()?],
        body.as_bytes(),
    ))
}

/// The same confirm again: the answer is the stored one.
fn confirm_again(hold: HoldId, key: Option<RequestKey>) -> Transaction {
    Transaction {
        origin: Origin::system("again"),
        command: Command::Confirm {
            on: OnHold {
                hold,
                by: Authority::Staff,
                fence: None,
            },
            booking: BookingId::from_bits(1),
            reference: None,
        },
        key,
        chart: None,
    }
}
