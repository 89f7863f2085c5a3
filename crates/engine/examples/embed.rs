//! Embeds the engine: a ledger in a folder, an event, a hold, a booking. No server.
//! `cargo run -p soldonce-engine --example embed`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_core::{Amount, Currency, EventId, HoldId, NewEvent, Policy, Text};
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::{Call, Caller, Engine, HoldAsk, NamedUnits, RequestKey, WishAsk, World};
use soldonce_engine::{chart, live::Live, metrics::Metrics};

const HALL: &[u8] = br#"{"format":"grid","rows":5,"seats_per_row":10,"category":"Any"}"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
    let metrics = Arc::new(Metrics::default());
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let options = SqliteOptions::new(std::env::temp_dir().join("soldonce-embedded"));
    let ledger = SqliteLedger::open(&options, clock.clone(), &SystemEntropy, live.clone())?;
    let engine = Engine::new(Arc::new(ledger), live, metrics, World { clock, entropy }).await?;
    let mut call = Call {
        caller: Caller::Shopper(engine.open_session().0),
        request: "example".into(),
        key: None,
        secret: None,
        booking_secret: None,
    };

    let id = EventId::parse(&format!("talk-{}", engine.now().ms()))?;
    let new = NewEvent {
        id: id.clone(),
        name: Text::parse("A talk")?,
        starts_at: None,
        currency: Currency::parse("EUR").ok_or("no currency")?,
        chart: Arc::new(chart::read(HALL)?.chart),
        prices: [("Any".to_owned(), Amount::ZERO)].into(),
        policy: Policy::default(),
        fingerprint: [0; 32],
    };
    engine.create_event(&call, new, HALL.into()).await?;
    let mut units = NamedUnits::default();
    units.seats.extend(["A-1".into(), "A-2".into()]);
    let (holder, wish, ttl) = (None, WishAsk::Named(units), None);
    let made = engine.hold(&call, &id, HoldAsk { holder, wish, ttl });
    let hold = HoldId::from_bits(u128::from_be_bytes(made.await?.stored.subject));
    let path = hold.to_string(); // a key, since it sells: repeated with it, it has its effect once
    let key = RequestKey::new(call.caller.id(), "confirm", "order-77", &[&path], b"{}");
    call.key = Some(key.into());
    let booked = engine.confirm(&call, hold, None, None).await?;
    println!("{}}}", String::from_utf8_lossy(&booked.stored.body));
    engine.close().await;
    Ok(())
}
