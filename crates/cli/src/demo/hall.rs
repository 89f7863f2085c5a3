//! The events of the demo: a playhouse with positions and an area, and a small studio without.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use soldonce_core::{
    Adjacency, Amount, Chart, Currency, EventId, NewEvent, Policy, Rejection, Span, Text, Timestamp,
};
use soldonce_engine::{Call, Caller, Engine, chart};

/// One event of the demo, before it has an owner.
struct Show {
    id: &'static str,
    name: &'static str,
    /// Days from now.
    in_days: i64,
    prices: &'static [(&'static str, i64)],
    adjacency: Adjacency,
}

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
};
const STUDIO: Show = Show {
    id: "quartet",
    name: "String Quartet in the Studio",
    in_days: 9,
    prices: &[("Standard", 2_800)],
    adjacency: Adjacency::NoOrphan,
};
const STUDIO_PLAN: &str = r#"{"format":"grid","rows":8,"seats_per_row":14,"category":"Standard"}"#;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Half past seven, UTC.
const CURTAIN_MS: i64 = (19 * 60 + 30) * 60 * 1_000;

/// Makes the demo's events unless the ledger has them.
///
/// # Errors
/// When the ledger cannot store them.
pub(super) async fn prepare(engine: &Engine) -> anyhow::Result<()> {
    let playhouse = chart::demo().context("the demo's own plan is wrong")?;
    let document = serde_json::to_vec(&chart::write(&playhouse))?;
    make(engine, &PLAYHOUSE, playhouse, document).await?;
    let studio = chart::read(STUDIO_PLAN.as_bytes()).context("the studio's plan is wrong")?;
    make(
        engine,
        &STUDIO,
        studio.chart,
        STUDIO_PLAN.as_bytes().to_vec(),
    )
    .await
}

async fn make(engine: &Engine, show: &Show, plan: Chart, document: Vec<u8>) -> anyhow::Result<()> {
    let id = EventId::parse(show.id)?;
    match engine.event(&id) {
        Ok(_) => return Ok(()),
        Err(Rejection::EventNotFound) => {}
        Err(other) => return Err(other.into()),
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
        policy: policy(show.adjacency),
        fingerprint: [0; 32],
    };
    engine
        .create_event(&operator(engine), new, document.into())
        .await?;
    Ok(())
}

/// Short holds, so that a visitor sees them end.
fn policy(adjacency: Adjacency) -> Policy {
    Policy {
        hold_ttl: Span::from_ms(3 * 60 * 1_000),
        hold_max: Span::from_ms(10 * 60 * 1_000),
        adjacency,
        ..Policy::default()
    }
}

/// The demo's own hand, as the audit names it.
fn operator(engine: &Engine) -> Call {
    let (session, _) = engine.open_session();
    Call {
        caller: Caller::Shopper(session),
        request: "demo".into(),
        key: None,
        secret: None,
    }
}
