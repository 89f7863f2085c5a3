//! The product: the PostgreSQL ledger, called as the engine calls it, without the shield in front, which
//! would answer most losers from memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::json;
use soldonce_clock::{SystemClock, SystemEntropy};
use soldonce_core::{
    Actor, Amount, Answer, Authority, CallerId, Command, Currency, Event, EventId, History, Hold,
    Holder, HolderName, NewEvent, NewHold, OnHold, Origin, Policy, Rejection, Text, TtlMax, Wish,
};
use soldonce_engine::ledger::postgres::{PostgresLedger, PostgresOptions};
use soldonce_engine::ledger::{Done, Ledger, Observer, Transaction};
use soldonce_engine::{Ids, chart};

use super::super::outcome::Outcome;
use super::super::plan::{Hall, Want};

/// What `queue` sends: one call of the function in `crates/engine/migrations/postgres/V12__store_batch.sql`.
const WRITE: &str = "-- store_batch\nSELECT stored_at, wall FROM store_batch_12(batch_id => .., unit_rows => .., ..)";

/// The product as it is called by the engine, without HTTP.
#[derive(Clone)]
pub(in super::super) struct Product {
    ledger: Arc<PostgresLedger>,
    ids: Ids,
    caller: CallerId,
}

impl Product {
    pub(super) const STATEMENTS: &'static [&'static str] = &[WRITE];

    /// Opens the ledger in a database that was migrated.
    pub(in super::super) async fn open(options: &PostgresOptions) -> anyhow::Result<Self> {
        let (clock, observer) = (Arc::new(SystemClock), Arc::new(NoObserver));
        let ledger = PostgresLedger::open(options, clock.clone(), &SystemEntropy, observer).await;
        let ids = Ids::new(clock, Arc::new(SystemEntropy));
        let caller = ids.caller();
        Ok(Self {
            ledger: Arc::new(ledger.context("the ledger under test does not open")?),
            ids,
            caller,
        })
    }

    pub(super) async fn open_hall(&self, hall: &Hall) -> anyhow::Result<ProductSale> {
        let (new, document) = new_event(hall)?;
        let mut create = self.transaction(Command::CreateEvent(Box::new(new)));
        create.chart = Some(document);
        let Done::Fresh {
            answer: Answer::EventCreated(event),
            ..
        } = self.ledger.transact(create).await?
        else {
            bail!("the ledger made no event of {}", hall.id)
        };
        Ok(ProductSale {
            product: self.clone(),
            event,
            names: (0..hall.seats()).map(|seat| hall.seat_name(seat)).collect(),
        })
    }

    pub(super) async fn close(&self) {
        self.ledger.close().await;
    }

    fn transaction(&self, command: Command) -> Transaction {
        Transaction {
            origin: Origin {
                actor: Actor::Caller(self.caller),
                request: "race".into(),
            },
            command,
            key: None,
            chart: None,
        }
    }
}

pub(in super::super) struct ProductSale {
    product: Product,
    event: Arc<Event>,
    names: Vec<String>,
}

impl ProductSale {
    fn command(&self, want: &Want) -> anyhow::Result<Command> {
        let names = want.seats.iter().map(|seat| {
            let at = usize::try_from(*seat).unwrap_or(usize::MAX);
            self.names.get(at).map_or("", String::as_str)
        });
        let selection = self.event.chart.select(names, [])?;
        Ok(Command::Hold(NewHold {
            event: self.event.no,
            hold: self.product.ids.hold(),
            holder: Holder {
                caller: self.product.caller,
                name: HolderName::parse(&format!("buyer-{}", want.buyer))?,
            },
            wish: Wish::Named(selection),
            ttl: None,
            ttl_max: TtlMax::HoldMax,
        }))
    }

    pub(super) async fn hold(&self, want: &Want) -> Outcome {
        let command = match self.command(want) {
            Ok(command) => command,
            Err(error) => return Outcome::Failed(format!("{error:#}")),
        };
        let transaction = self.product.transaction(command);
        match self.product.ledger.transact(transaction).await {
            Ok(Done::Fresh {
                answer: Answer::Held(hold),
                ..
            }) if hold.units.len() == want.seats.len() => Outcome::Won(Some(on(&hold))),
            Ok(_) => Outcome::Failed("an unexpected answer".to_owned()),
            Err(taken @ Rejection::UnitUnavailable(_)) => Outcome::Refused(taken.code()),
            Err(rejection) => Outcome::Failed(rejection.code().to_owned()),
        }
    }

    pub(super) async fn confirm(&self, won: OnHold) -> Result<(), String> {
        let confirm = self.product.transaction(Command::Confirm {
            on: won,
            booking: self.product.ids.booking(),
            reference: None,
        });
        let confirmed = self.product.ledger.transact(confirm).await;
        confirmed.map_err(|rejection| format!("confirm: {}", rejection.code()))?;
        Ok(())
    }

    pub(super) async fn history(&self) -> anyhow::Result<History> {
        Ok(self.product.ledger.history(self.event.id.clone()).await?)
    }
}

fn on(hold: &Hold) -> OnHold {
    OnHold {
        hold: hold.id,
        by: Authority::Secret,
        fence: Some(hold.fence),
    }
}

/// Builds the event of a hall, and its seat plan as it is stored.
pub(in super::super) fn new_event(hall: &Hall) -> anyhow::Result<(NewEvent, Arc<[u8]>)> {
    let seats = (0..hall.seats())
        .map(|seat| json!({ "seat": hall.seat_name(seat), "category": "Standard" }));
    let plan = json!({ "format": "seats", "seats": seats.collect::<Vec<_>>() });
    let document = serde_json::to_vec(&plan)?;
    let read = chart::read(&document)?.chart;
    let new = NewEvent {
        id: EventId::parse(&hall.id)?,
        name: Text::parse("Race")?,
        starts_at: None,
        currency: Currency::parse("EUR").context("EUR is a currency")?,
        chart: Arc::new(read),
        prices: BTreeMap::from([("Standard".to_owned(), Amount::from_minor(4_500))]),
        policy: Policy::default(),
        fingerprint: [0; 32],
    };
    Ok((new, document.into()))
}

/// An observer that ignores commits.
struct NoObserver;

impl Observer for NoObserver {
    fn failed(&self, why: &str) {
        tracing::error!(why, "the ledger under test failed");
    }
}
