//! The engine between a shield and its ledger: what it asks, what it answers, what it tells, for
//! every answer of the shield.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use soldonce_clock::{Clock, ManualClock, SeededEntropy, SystemClock};
use soldonce_core::{
    CallerId, Conflict, ConflictState, HolderName, Rejection, Span, Unavailable, UnitNo,
};
use soldonce_engine::keys::Scope;
use soldonce_engine::ledger::Observer;
use soldonce_engine::ledger::sqlite::{SqliteLedger, SqliteOptions};
use soldonce_engine::limits::SHIELD_MESSAGES_MAX;
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::shield::{Belief, Kind, Note, Part, Shield, Thing, Tried, Who, Zone};
use soldonce_engine::{
    Call, Caller, Engine, EngineError, HoldAsk, NamedUnits, Reply, WishAsk, World,
    run_shield_messages,
};
use soldonce_lease::backend::Fut;
use soldonce_testkit::TempFolder;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::redis::PATIENCE;
use crate::ledgers::{HALL, START_MS, key, new_event};

/// A shield that says what it is told to, and writes down what it hears.
#[derive(Debug, Default)]
struct Puppet {
    says: Mutex<Option<Vec<Belief>>>,
    asked: Mutex<usize>,
    notes: Mutex<Vec<(u32, u64, Kind, u64)>>,
    drops: Mutex<Vec<Part>>,
    is_stuck: AtomicBool,
    keeps_waiting: AtomicBool,
}

impl Shield for Puppet {
    fn try_units<'a>(&'a self, _: Who, _: &'a [Part]) -> Fut<'a, Tried> {
        *self.asked.lock().unwrap() += 1;
        let said = self.says.lock().unwrap().clone();
        let keeps_waiting = self.keeps_waiting.load(Ordering::Relaxed);
        Box::pin(async move {
            if keeps_waiting {
                std::future::pending::<()>().await;
            }
            said.map_or(Tried::Passed, Tried::Refused)
        })
    }

    fn note<'a>(&'a self, _: Zone, notes: &'a [Note]) -> Fut<'a, bool> {
        let shown = notes
            .iter()
            .map(|it| (it.number, it.version, it.kind, it.left.ms()));
        self.notes.lock().unwrap().extend(shown);
        let is_stuck = self.is_stuck.load(Ordering::Relaxed);
        Box::pin(async move {
            if is_stuck {
                std::future::pending::<()>().await;
            }
            true
        })
    }

    fn drop_claims<'a>(&'a self, _: Who, part: &'a Part) -> Fut<'a, bool> {
        self.drops.lock().unwrap().push(part.clone());
        Box::pin(std::future::ready(true))
    }
}

/// An engine on core's own rules, behind a puppet.
struct Stage {
    puppet: Arc<Puppet>,
    engine: Engine,
    clock: ManualClock,
    _messages: JoinSet<()>,
    _folder: TempFolder,
}

pub(super) fn call(key: Option<soldonce_engine::RequestKey>) -> Call {
    let shop = Caller::Key {
        id: CallerId::from_bits(1),
        scopes: Arc::new([Scope::Sell]),
    };
    Call {
        key: key.map(Into::into),
        ..Call::new(shop, "req_test")
    }
}

pub(super) async fn hold(
    engine: &Engine,
    call: &Call,
    who: &str,
    seats: &[&str],
) -> Result<Reply, EngineError> {
    let units = NamedUnits {
        seats: seats.iter().map(|seat| (*seat).into()).collect(),
        ..NamedUnits::default()
    };
    hold_units(engine, call, who, units).await
}

async fn hold_units(
    engine: &Engine,
    call: &Call,
    who: &str,
    units: NamedUnits<'_>,
) -> Result<Reply, EngineError> {
    let event = soldonce_core::EventId::parse("hamlet-1").unwrap();
    let ask = HoldAsk {
        holder: Some(HolderName::parse(who).unwrap()),
        wish: WishAsk::Named(units),
        ttl: None,
    };
    engine.hold(call, &event, ask).await
}

impl Stage {
    async fn open() -> Self {
        let puppet = Arc::new(Puppet::default());
        let clock = ManualClock::at(START_MS);
        let metrics = Arc::new(Metrics::default());
        let live = Live::new(Arc::clone(&metrics)).behind(Arc::clone(&puppet) as Arc<dyn Shield>);
        let live = Arc::new(live);
        let entropy = SeededEntropy::new(7);
        let observer = Arc::clone(&live) as Arc<dyn Observer>;
        let folder = TempFolder::new().unwrap();
        let options = SqliteOptions::new(folder.path());
        let ledger = SqliteLedger::open(&options, Arc::new(clock.clone()), &entropy, observer);
        let ledger = ledger.unwrap();
        let world = World {
            clock: Arc::new(clock.clone()),
            entropy: Arc::new(entropy),
        };
        let engine = Engine::new(Arc::new(ledger), live, metrics, world);
        let engine = engine.await.unwrap();
        let new = new_event("hamlet-1", HALL, |_| {});
        engine
            .create_event(&call(None), new, Arc::from(HALL.as_bytes()))
            .await
            .unwrap();
        let mut messages = JoinSet::new();
        messages.spawn(run_shield_messages(
            engine.clone(),
            CancellationToken::new(),
        ));
        Self {
            puppet,
            engine,
            clock,
            _messages: messages,
            _folder: folder,
        }
    }

    async fn hold(&self, who: &str, seats: &[&str]) -> Result<Reply, EngineError> {
        hold(&self.engine, &call(None), who, seats).await
    }

    async fn release(&self, made: &Reply) {
        let hold = soldonce_core::HoldId::from_bytes(made.stored.subject);
        let released = self.engine.release(&call(None), hold, None).await;
        released.unwrap();
    }

    /// As a request with a key, which no shield may refuse.
    async fn hold_past_shields(&self, who: &str, seats: &[&str]) -> Result<Reply, EngineError> {
        let seed = u8::try_from(seats.len()).unwrap();
        hold(&self.engine, &call(Some(key(seed, seed))), who, seats).await
    }

    fn say(&self, beliefs: &[(u32, Kind, u64, u64)]) {
        let belief = |(seat, kind, left_ms, version): &(u32, Kind, u64, u64)| Belief {
            thing: Thing::Seat(UnitNo(*seat)),
            kind: *kind,
            left: Span::from_ms(*left_ms),
            version: *version,
        };
        *self.puppet.says.lock().unwrap() = Some(beliefs.iter().map(belief).collect());
    }

    fn refusals(&self) -> u64 {
        refusals(&self.engine)
    }

    /// Waits until the puppet has heard so many notes; all it heard.
    async fn heard(&self, notes: usize) -> Vec<(u32, u64, Kind, u64)> {
        let heard = || self.puppet.notes.lock().unwrap().clone();
        self.until("the notes come", || heard().len() >= notes)
            .await;
        heard()
    }

    async fn until_claims_are_dropped(&self) {
        let drops = || self.puppet.drops.lock().unwrap().len();
        self.until("the claims are dropped", || drops() > 0).await;
    }

    async fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = SystemClock.boot().plus(PATIENCE);
        while !is_so() {
            assert!(SystemClock.boot() < end, "not in time: {what}");
            tokio::task::yield_now().await;
        }
    }
}

/// Refusals by the shield between servers.
pub(super) fn refusals(engine: &Engine) -> u64 {
    let counted = &engine.metrics().shield_refusals;
    counted.get_or_create(&[("shield", "redis")]).get()
}

pub(super) fn unavailable(answer: Result<Reply, EngineError>) -> Unavailable {
    match answer {
        Err(EngineError::Rejected(Rejection::UnitUnavailable(why))) => *why,
        other => panic!("{other:?}"),
    }
}

fn seat(unit: u32, state: ConflictState, retry_after_ms: Option<u64>) -> Conflict {
    Conflict::Seat {
        unit: UnitNo(unit),
        state,
        retry_after: retry_after_ms.map(Span::from_ms),
    }
}

#[tokio::test]
async fn a_refusal_has_the_body_that_the_ledger_would_give() {
    let stage = Stage::open().await;
    // What the ledger would say after ann held A-1 for ten minutes.
    stage.say(&[(0, Kind::Held, 600_000 - 250, 1)]);
    let by_shield = unavailable(stage.hold("bob", &["A-1", "A-2"]).await);
    assert_eq!(stage.refusals(), 1);
    *stage.puppet.says.lock().unwrap() = None;
    stage.hold("ann", &["A-1"]).await.unwrap();
    let by_ledger = unavailable(stage.hold_past_shields("bob", &["A-1", "A-2"]).await);
    assert_eq!(by_shield.conflicts, by_ledger.conflicts);
    assert_eq!(by_shield.alternatives, by_ledger.alternatives);
    assert!(!by_shield.alternatives.is_empty());
    assert_eq!(by_shield.seq.next(), by_ledger.seq, "before the hold");
}

#[tokio::test]
async fn every_kind_of_belief_is_a_conflict_of_the_ledgers_words() {
    let stage = Stage::open().await;
    stage.say(&[(0, Kind::Claimed, 1_900, 0), (1, Kind::Sold, 5, 1)]);
    let refused = unavailable(stage.hold("bob", &["A-1", "A-2"]).await);
    assert_eq!(
        refused.conflicts,
        [
            seat(0, ConflictState::Held, Some(1_900)),
            seat(1, ConflictState::Sold, None)
        ]
    );
    let offered = refused.alternatives.iter().flat_map(|offer| &offer.units);
    assert!(offered.clone().all(|unit| unit.0 > 1), "{offered:?}");
}

#[tokio::test]
async fn what_this_server_knows_better_is_no_conflict_and_is_told() {
    let stage = Stage::open().await;
    let made = stage.hold("ann", &["A-1"]).await.unwrap();
    stage.heard(1).await;
    stage.release(&made).await;
    assert_eq!(stage.heard(2).await.len(), 2);
    // Version 2 is free: what a shield that missed the release says of version 1 is old.
    stage.say(&[(0, Kind::Held, 500_000, 1), (1, Kind::Held, 500_000, 1)]);
    let refused = unavailable(stage.hold("bob", &["A-1", "A-2"]).await);
    assert_eq!(
        refused.conflicts,
        [seat(1, ConflictState::Held, Some(500_250))]
    );
    assert_eq!(stage.heard(3).await[2], (0, 2, Kind::Free, 0));
    stage.say(&[(0, Kind::Sold, 500_000, 2)]);
    stage.hold("bob", &["A-1"]).await.unwrap();
    // A hold that is over is no conflict at the millisecond of its end, though no sweep wrote it down.
    stage.clock.advance(Duration::from_mins(10));
    stage.say(&[(0, Kind::Held, 500_000, 3)]);
    stage.hold("cid", &["A-1"]).await.unwrap();
    assert_eq!(stage.refusals(), 1);
}

#[tokio::test]
async fn a_holders_own_hold_comes_back_though_the_shield_refuses() {
    let stage = Stage::open().await;
    let first = stage.hold("ann", &["A-1"]).await.unwrap();
    stage.say(&[(0, Kind::Held, 500_000, 1)]);
    let again = stage.hold("ann", &["A-1"]).await.unwrap();
    assert_eq!(again.stored.subject, first.stored.subject);
}

#[tokio::test]
async fn only_named_seats_without_a_key_are_asked_for() {
    let stage = Stage::open().await;
    let asked = || *stage.puppet.asked.lock().unwrap();
    stage.hold_past_shields("ann", &["A-1"]).await.unwrap();
    assert_eq!(asked(), 0);
    stage.hold("bob", &["A-2"]).await.unwrap();
    assert_eq!(asked(), 1);
    unavailable(stage.hold("cid", &["A-2"]).await);
    assert_eq!(asked(), 1, "the shield in process refuses first");
}

#[tokio::test]
async fn claims_that_the_ledger_refused_are_given_up_and_what_it_knows_is_told() {
    let stage = Stage::open().await;
    stage.hold("ann", &["A-1"]).await.unwrap();
    assert_eq!(stage.heard(1).await, [(0, 1, Kind::Held, 599_750)]);
    assert!(stage.puppet.drops.lock().unwrap().is_empty());
    // Ann's own A-1 lets the request past both shields; the ledger refuses.
    unavailable(stage.hold("ann", &["A-1", "A-2"]).await);
    assert_eq!(stage.heard(2).await[1], (0, 1, Kind::Held, 599_750));
    stage.until_claims_are_dropped().await;
}

#[tokio::test]
async fn an_abandoned_request_gives_its_claims_up() {
    let stage = Stage::open().await;
    stage.puppet.keeps_waiting.store(true, Ordering::Relaxed);
    tokio::select! {
        biased;
        answer = stage.hold("ann", &["A-1"]) => panic!("{answer:?}"),
        () = stage.until("it is asked", || *stage.puppet.asked.lock().unwrap() == 1) => {}
    }
    stage.until_claims_are_dropped().await;
}

#[tokio::test]
async fn an_area_is_told_to_be_full_only_if_nothing_is_left() {
    let stage = Stage::open().await;
    let floor = |quantity| NamedUnits {
        areas: vec![("floor".into(), quantity)],
        ..NamedUnits::default()
    };
    let ask = async |who: &str, quantity| {
        hold_units(&stage.engine, &call(None), who, floor(quantity)).await
    };
    ask("ann", 3).await.unwrap();
    let event = soldonce_core::EventId::parse("hamlet-1").unwrap();
    let snapshot = stage.engine.event(&event).await.unwrap().snapshot;
    let left = snapshot.areas[0].free;
    unavailable(ask("bob", left + 1).await);
    ask("bob", left).await.unwrap();
    unavailable(ask("cid", 1).await);
    assert_eq!(stage.heard(1).await, [(0, 0, Kind::Sold, 2_000)]);
}

#[tokio::test]
async fn notes_that_are_not_taken_delay_no_answer_and_are_counted() {
    let stage = Stage::open().await;
    stage.puppet.is_stuck.store(true, Ordering::Relaxed);
    for _ in 0..=SHIELD_MESSAGES_MAX {
        let made = stage.hold("ann", &["A-1"]).await.unwrap();
        stage.release(&made).await;
    }
    let dropped = stage.engine.metrics().shield_notes_dropped.get();
    assert!(dropped > 0);
}
