//! The events of the demo: a playhouse with positions and an area, a small studio without, and a sale
//! in which time runs out within a minute.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use soldonce_core::{
    Adjacency, Amount, Chart, Currency, EventId, NewEvent, Policy, Span, Text, Timestamp,
};
use soldonce_engine::{Call, Caller, Engine, chart};

/// The data from which one event of the demo is created.
struct Show {
    id: &'static str,
    name: &'static str,
    in_days: i64,
    prices: &'static [(&'static str, i64)],
    adjacency: Adjacency,
    /// How long a buyer may hold, and then pay.
    decide: [Span; 2],
}

/// Short holds, so that a visitor sees them end.
const MINUTES: [Span; 2] = [Span::from_ms(180_000), Span::from_ms(120_000)];
/// So short that a visitor sees what happens to a payment that arrives too late.
const SECONDS: [Span; 2] = [Span::from_ms(40_000); 2];

const PLAYHOUSE: Show = Show {
    id: "hamlet",
    name: "Hamlet at the Playhouse",
    in_days: 21,
    prices: &[
        ("Premium", 9_500),
        ("Standard", 6_000),
        ("Balcony", 3_500),
        ("Standing", 2_500),
    ],
    adjacency: Adjacency::None,
    decide: MINUTES,
};
const STUDIO: Show = Show {
    id: "quartet",
    name: "String Quartet in the Studio",
    in_days: 9,
    prices: &[("Standard", 2_800)],
    adjacency: Adjacency::NoOrphan,
    decide: MINUTES,
};
const LAST_MINUTE: Show = Show {
    id: "last-minute",
    name: "Last Minute: Improv Night",
    in_days: 2,
    prices: &[("Standard", 1_500)],
    adjacency: Adjacency::None,
    decide: SECONDS,
};
const BAR_PLAN: &str = r#"{"format":"grid","rows":6,"seats_per_row":12,"category":"Standard"}"#;
const STUDIO_PLAN: &str = r#"{"format":"grid","rows":8,"seats_per_row":14,"category":"Standard"}"#;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// 19:30 UTC, when events start, as milliseconds of the day.
const CURTAIN_MS: i64 = (19 * 60 + 30) * 60 * 1_000;

/// Makes the demo's events unless the ledger has them.
pub(super) async fn prepare(engine: &Engine) -> anyhow::Result<()> {
    let theatre = include_bytes!("../../../../charts/playhouse.json");
    for (show, plan) in [
        (&PLAYHOUSE, &theatre[..]),
        (&STUDIO, STUDIO_PLAN.as_bytes()),
        (&LAST_MINUTE, BAR_PLAN.as_bytes()),
    ] {
        let read =
            chart::read(plan).with_context(|| format!("the plan of {} is wrong", show.id))?;
        make(engine, show, read.chart, plan.to_vec()).await?;
    }
    Ok(())
}

async fn make(engine: &Engine, show: &Show, plan: Chart, document: Vec<u8>) -> anyhow::Result<()> {
    let id = EventId::parse(show.id)?;
    if engine.known_event(&id).is_some() {
        return Ok(());
    }
    let today = engine.now().ms().div_euclid(DAY_MS);
    let starts_at = Timestamp::from_ms((today + show.in_days) * DAY_MS + CURTAIN_MS);
    let prices = show
        .prices
        .iter()
        .map(|(category, minor)| ((*category).to_owned(), Amount::from_minor(*minor)));
    let new = NewEvent {
        id,
        name: Text::parse(show.name)?,
        starts_at: Some(starts_at),
        currency: Currency::parse("EUR").context("EUR is a currency")?,
        chart: Arc::new(plan),
        prices: prices.collect::<BTreeMap<_, _>>(),
        policy: policy(show),
        fingerprint: [0; 32],
    };
    engine
        .create_event(&operator(engine), new, document.into())
        .await?;
    Ok(())
}

fn policy(show: &Show) -> Policy {
    let [hold_ttl, payment_window] = show.decide;
    Policy {
        hold_ttl,
        hold_max: Span::from_ms(10 * 60 * 1_000),
        payment_window,
        adjacency: show.adjacency,
        ..Policy::default()
    }
}

/// Builds the call by which the demo creates events: a new session's, with request id `demo`.
fn operator(engine: &Engine) -> Call {
    let (session, _) = engine.open_session();
    Call::new(Caller::Shopper(session), "demo")
}
