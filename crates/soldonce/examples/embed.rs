//! Embeds the engine: a ledger in a folder, an event, a hold, a booking. No server.
//! `cargo run --example embed -- ./tickets`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use soldonce_core::{Amount, Currency, EventId, HoldId, NewEvent, Policy, Text};
use soldonce_engine::{Call, Caller, Engine, HoldAsk, RequestKey, chart};

const HALL: &[u8] = br#"{"format":"grid","rows":5,"seats_per_row":10,"category":"Any"}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed FOLDER")?;
    let engine = Engine::open_folder(folder).await?;
    let mut call = Call::new(Caller::Shopper(engine.open_session().0), "example");

    let id = EventId::parse("talk")?;
    let talk = NewEvent {
        id: id.clone(),
        name: Text::parse("A talk")?,
        starts_at: None,
        currency: Currency::parse("EUR").ok_or("no currency")?,
        chart: Arc::new(chart::read(HALL)?.chart),
        prices: [("Any".to_owned(), Amount::ZERO)].into(),
        policy: Policy::default(),
        fingerprint: [0; 32], // of the request: the same one again finds the event
    };
    engine.create_event(&call, talk, HALL.into()).await?;
    let made = engine.hold(&call, &id, HoldAsk::best(2)).await?;
    let hold = HoldId::from_bytes(made.stored.subject);
    let path = hold.to_string(); // a key, since it sells: repeated with it, it has its effect once
    let key = RequestKey::new(call.caller.id(), "confirm", "order-77", &[&path], b"{}");
    call.key = Some(key.into());
    let booked = engine.confirm(&call, hold, None, None).await?;
    println!("{}", String::from_utf8(booked.stored.json())?);
    engine.close().await;
    Ok(())
}
