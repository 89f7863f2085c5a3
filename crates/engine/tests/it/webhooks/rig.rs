//! An engine that delivers, on the ledger and the clock of a test, and an endpoint that judges it.

use std::sync::Arc;
use std::time::Duration;

use soldonce_clock::{Clock, Entropy, SeededEntropy, SystemClock};
use soldonce_core::{Command, Event, Hold};
use soldonce_engine::live::Live;
use soldonce_engine::metrics::Metrics;
use soldonce_engine::webhook::address::Destinations;
use soldonce_engine::webhook::{
    Delivery, DeliveryState, Endpoint, EndpointChange, EndpointId, Kinds, Lookup, Sender,
    SystemLookup,
};
use soldonce_engine::{Engine, EngineError, World, run_webhooks};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::webhooks::{Receiver, violations};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ledgers::TestLedger;

/// More than any list has here.
pub(super) const ALL: usize = 100;

pub(super) struct Rig {
    pub(super) test: TestLedger,
    pub(super) engine: Engine,
    pub(super) receiver: Receiver,
    tasks: JoinSet<()>,
    end: CancellationToken,
}

/// Every kind of ledger.
pub(super) async fn every_ledger() -> [TestLedger; 2] {
    let many = TestLedger::postgres().await;
    [TestLedger::sqlite(), many]
}

impl Rig {
    /// Delivers to this machine, too.
    pub(super) async fn on(test: TestLedger) -> Self {
        let sender = Sender::new(Destinations::Any, Arc::new(SystemLookup)).unwrap();
        Self::with(test, sender).await
    }

    pub(super) async fn looking_up(
        test: TestLedger,
        by: Destinations,
        lookup: impl Lookup,
    ) -> Self {
        let sender = Sender::new(by, Arc::new(lookup)).unwrap();
        Self::with(test, sender).await
    }

    pub(super) async fn with(test: TestLedger, sender: Sender) -> Self {
        Self {
            engine: engine(&test, sender).await,
            test,
            receiver: Receiver::start().unwrap(),
            tasks: JoinSet::new(),
            end: CancellationToken::new(),
        }
    }

    /// Delivers from now on.
    pub(super) fn run(&mut self) {
        self.run_of(self.engine.clone());
    }

    pub(super) fn run_of(&mut self, engine: Engine) {
        self.tasks.spawn(run_webhooks(engine, self.end.clone()));
    }

    /// Stops it in the middle of its work, as a process that is killed.
    pub(super) async fn kill(&mut self) {
        self.tasks.shutdown().await;
    }

    /// The same with an engine anew, on a ledger that was opened anew.
    pub(super) async fn again(self) -> Self {
        let sender = self.engine.sender().unwrap().clone();
        let engine = engine(&self.test, sender).await;
        Self { engine, ..self }
    }

    /// An endpoint at the receiver that hears of everything, and its secret.
    pub(super) async fn endpoint(&self) -> (Endpoint, String) {
        let url = self.receiver.url();
        self.endpoint_at(&url, Kinds::ALL).await.unwrap()
    }

    /// An endpoint anywhere.
    pub(super) async fn endpoint_at(
        &self,
        url: &str,
        kinds: Kinds,
    ) -> Result<(Endpoint, String), EngineError> {
        let made = self.engine.add_endpoint(url, kinds, None).await?;
        let id = EndpointId::from_bytes(made.stored.subject);
        let all = self.engine.endpoints().await?;
        let endpoint = all.into_iter().find(|known| known.id == id).unwrap();
        Ok((endpoint, made.secret.unwrap()))
    }

    /// Sells a seat to `who`.
    pub(super) async fn sold(&self, event: &Event, who: &str, seat: &str) -> Hold {
        let hold = self.test.hold(event, who, &[seat]).await.unwrap();
        self.test.confirm(&hold).await.unwrap();
        hold
    }

    pub(super) async fn sweep(&self) {
        self.test.ask(Command::Sweep { limit: 9 }).await.unwrap();
    }

    pub(super) async fn change(
        &self,
        endpoint: &Endpoint,
        change: EndpointChange,
    ) -> Option<Endpoint> {
        let changed = self.engine.change_endpoint(endpoint.id, change).await;
        changed.unwrap()
    }

    pub(super) async fn log(&self, endpoint: &Endpoint) -> Vec<Delivery> {
        let log = self.engine.deliveries(endpoint.id, None, ALL).await;
        log.unwrap().unwrap()
    }

    /// Lets time go on, so much with each look, until the log is as it should be; slower while an
    /// attempt is due or under way: on a busy machine it may take many looks, and the log must not
    /// be forgotten meanwhile.
    pub(super) async fn until(
        &self,
        endpoint: &Endpoint,
        step_ms: u64,
        is_so: impl Fn(&[Delivery]) -> bool,
    ) -> Vec<Delivery> {
        let end = SystemClock.boot().plus(PATIENCE);
        loop {
            let log = self.log(endpoint).await;
            if is_so(&log) {
                return log;
            }
            assert!(SystemClock.boot() < end, "never: {log:#?}");
            let now = self.test.ledger.now();
            let is_due = |one: &Delivery| one.next_at.is_some_and(|at| at <= now);
            let step = if log.iter().any(is_due) {
                step_ms.min(20_000)
            } else {
                step_ms
            };
            self.test.advance_ms(step);
            let soon = SystemClock.boot().plus(Duration::from_millis(5));
            SystemClock.sleep_until(soon).await;
        }
    }

    /// Until each of `count` deliveries is over.
    pub(super) async fn until_over(&self, endpoint: &Endpoint, count: usize) -> Vec<Delivery> {
        let is_over = |one: &Delivery| one.state != DeliveryState::Open;
        self.until(endpoint, 200, |log| {
            log.len() == count && log.iter().all(is_over)
        })
        .await
    }

    /// What the receiver has against us; `told` are subjects and types.
    pub(super) fn violations(&self, secrets: &[&str], told: &[(String, &str)]) -> Vec<String> {
        let told: Vec<(String, String)> = told
            .iter()
            .map(|(subject, kind)| (subject.clone(), (*kind).to_owned()))
            .collect();
        violations(&self.receiver.received(), secrets, &told)
    }

    #[track_caller]
    pub(super) fn assert_heard(&self, secrets: &[&str], told: &[(String, &str)]) {
        let found = self.violations(secrets, told);
        assert!(found.is_empty(), "{found:#?}");
    }
}

/// An engine of its own, as another process has one.
pub(super) async fn engine(test: &TestLedger, sender: Sender) -> Engine {
    engine_with(test, sender, Arc::new(SeededEntropy::new(11))).await
}

/// The same, with this source of random bits.
pub(super) async fn engine_with(
    test: &TestLedger,
    sender: Sender,
    entropy: Arc<dyn Entropy>,
) -> Engine {
    let metrics = Arc::new(Metrics::default());
    let world = World {
        clock: Arc::new(test.clock.clone()),
        entropy,
    };
    let live = Arc::new(Live::new(Arc::clone(&metrics)));
    let ledger = Arc::clone(&test.ledger);
    let engine = Engine::new(ledger, live, metrics, world).await.unwrap();
    engine.posted_by(sender)
}
