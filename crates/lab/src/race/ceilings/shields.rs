//! Refusals of a taken seat by the shield in front of a ledger, called through the engine, below HTTP. The
//! embedded ledger has its shield in process. Of two servers on PostgreSQL behind the shield on Redis, one
//! has made the hold and the other refuses: it hears of the hold within milliseconds, and refuses nearly all from its
//! own memory. So that shield is measured by itself as well.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use soldonce_clock::{Clock, SystemClock, SystemEntropy};
use soldonce_core::{EventId, EventNo, HolderName, Rejection, Span, UnitNo};
use soldonce_engine::ledger::postgres::PostgresLedger;
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::shield::{Contents, Kind, Note, Part, RedisShield, Shield, Tried, Who, Zone};
use soldonce_engine::{
    Call, Caller, Engine, EngineError, HoldAsk, NamedUnits, OptionalRedis, WishAsk, World,
    run_shield_messages,
};
use soldonce_lease::Namespace;
use soldonce_testkit::TempFolder;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::super::contender::new_event;
use super::super::environment::Environment;
use super::super::plan::Hall;
use super::Rate;
use crate::kit::{Load, closed};
use crate::limits::{CEILING_HEARD_EVERY, CEILING_HEARD_TRIES, CEILING_SCRIPT_WAIT};

/// Separates the keys of this shield from others on the same Redis.
const NAMESPACE: &str = "soldonce-lab";

pub(super) struct Refusals {
    pub(super) embedded: Rate,
    pub(super) shared: Rate,
    pub(super) script: Rate,
}

pub(super) async fn measure(
    environment: &Environment,
    load: Load,
    run: u32,
) -> anyhow::Result<Refusals> {
    let hall = Hall {
        id: format!("shields-{run}"),
        number: i32::try_from(run)?,
        rows: 1,
        seats_per_row: 10,
    };
    Ok(Refusals {
        embedded: embedded(&hall, load).await?,
        shared: shared(environment, &hall, load).await?,
        script: script(environment, load).await?,
    })
}

async fn embedded(hall: &Hall, load: Load) -> anyhow::Result<Rate> {
    let folder = TempFolder::new()?;
    let engine = Engine::open_folder(folder.path()).await?;
    let event = sell_first(&engine, hall).await?;
    let rate = refuse(&engine, &event, hall, load).await?;
    engine.close().await;
    Ok(rate)
}

async fn shared(environment: &Environment, hall: &Hall, load: Load) -> anyhow::Result<Rate> {
    let shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let metrics = Arc::new(Metrics::default());
        let shield = Arc::new(RedisShield::new(redis(environment)?));
        let live = Arc::new(Live::new(Arc::clone(&metrics)).behind(shield));
        let (clock, observer) = (Arc::new(SystemClock), Arc::clone(&live));
        let options = environment.options();
        let world = World {
            clock: clock.clone(),
            entropy: Arc::new(SystemEntropy),
        };
        let ledger = PostgresLedger::open(&options, clock, &SystemEntropy, observer);
        let engine = Engine::new(Arc::new(ledger.await?), live, metrics, world).await?;
        tasks.spawn(run_shield_messages(engine.clone(), shutdown.clone()));
        servers.push(engine);
    }
    let [first, second] = servers.as_slice() else {
        bail!("there are two servers");
    };
    let event = sell_first(first, hall).await?;
    sees_event(second, &event).await?;
    let rate = refuse(second, &event, hall, load).await?;
    shutdown.cancel();
    tasks.join_all().await;
    for server in &servers {
        server.close().await;
    }
    Ok(rate)
}

/// Measures the shield alone: one script a request, over one connection.
async fn script(environment: &Environment, load: Load) -> anyhow::Result<Rate> {
    // The product gives up sooner, and asks its ledger.
    let redis = redis(environment)?.wait(CEILING_SCRIPT_WAIT);
    let shield = Arc::new(RedisShield::new(redis));
    let zone = Zone {
        ledger: 0,
        event: EventNo(0),
        no: 0,
    };
    let held = Note {
        number: 0,
        version: 1,
        kind: Kind::Held,
        left: Span::from_ms(u64::try_from(load.span.as_millis())?.saturating_mul(10)),
        who: Who(0),
    };
    anyhow::ensure!(shield.note(zone, &[held]).await, "Redis does not answer");
    let contents = Contents::Seats(vec![UnitNo(0)]);
    let wanted = Arc::new([Part { zone, contents }]);
    let request = move |n: u64| {
        let (shield, wanted) = (Arc::clone(&shield), Arc::clone(&wanted));
        async move {
            match shield.try_units(Who(n.saturating_add(1)), &*wanted).await {
                Tried::Refused(_) => Ok(()),
                Tried::Passed => Err("passed".to_owned()),
                Tried::Missed => Err("missed".to_owned()),
            }
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}

fn redis(environment: &Environment) -> anyhow::Result<OptionalRedis> {
    let namespace = Namespace::new(NAMESPACE).context("the name of the lab is legal")?;
    let redis = OptionalRedis::at(environment.redis_url()?, &namespace, Arc::new(SystemClock));
    redis.context("--redis-url")
}

fn call(engine: &Engine) -> Call {
    let caller = Caller::Key {
        id: engine.ids().caller(),
        scopes: Arc::new([]),
    };
    Call::new(caller, "race")
}

/// Makes the event, and a hold of its first seat.
async fn sell_first(engine: &Engine, hall: &Hall) -> anyhow::Result<EventId> {
    let (new, document) = new_event(hall)?;
    let (event, call) = (new.id.clone(), call(engine));
    engine.create_event(&call, new, document).await?;
    engine.hold(&call, &event, ask("first", hall)?).await?;
    Ok(event)
}

fn ask(holder: &str, hall: &Hall) -> anyhow::Result<HoldAsk<'static>> {
    let units = NamedUnits {
        seats: vec![Cow::Owned(hall.seat_name(0))],
        ..NamedUnits::default()
    };
    Ok(HoldAsk {
        holder: Some(HolderName::parse(holder)?),
        wish: WishAsk::Named(units),
        ttl: None,
    })
}

/// Waits until a server sees an event that another made.
async fn sees_event(engine: &Engine, event: &EventId) -> anyhow::Result<()> {
    for _ in 0..CEILING_HEARD_TRIES {
        if engine.known_event(event).is_some() {
            return Ok(());
        }
        let next = SystemClock.boot().plus(CEILING_HEARD_EVERY);
        SystemClock.sleep_until(next).await;
    }
    let waited: Duration = CEILING_HEARD_EVERY * CEILING_HEARD_TRIES;
    bail!("the second server did not see the event in {waited:?}")
}

/// Measures refusals of the first seat, each request from another buyer.
async fn refuse(engine: &Engine, event: &EventId, hall: &Hall, load: Load) -> anyhow::Result<Rate> {
    let call = Arc::new(call(engine));
    let (engine, event, hall) = (engine.clone(), event.clone(), hall.clone());
    let request = move |n| {
        let (engine, event, call) = (engine.clone(), event.clone(), Arc::clone(&call));
        let wanted = ask(&format!("buyer-{n}"), &hall);
        async move {
            let wanted = wanted.map_err(|error| error.to_string())?;
            match engine.hold(&call, &event, wanted).await {
                Err(EngineError::Rejected(Rejection::UnitUnavailable(_))) => Ok(()),
                Err(EngineError::Rejected(other)) => Err(other.code().to_owned()),
                Err(EngineError::Read(_)) => Err("unreadable".to_owned()),
                Err(EngineError::Provider(_)) => Err("unpaid".to_owned()),
                Ok(_) => Err("sold twice".to_owned()),
            }
        }
    };
    Ok(Rate::of(&closed(load, request).await?))
}
