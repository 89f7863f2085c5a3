//! What a server calls: resolves names, asks the shield, carries commands to the ledger. Decides
//! nothing about units; `core` does.

mod access;
mod bookings;
mod clock;
mod dropped;
mod events;
mod holds;
mod lists;
mod money;
mod names;
mod shields;
mod sweep;
mod webhooks;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, RwLock};

pub use access::{AdoptedKey, run_key_watch};
pub use bookings::{ExchangeAsk, GivenAsk, SellAsk};
pub use clock::ClockState;
pub use dropped::run_dropper;
pub use events::EventSummary;
pub use holds::{ChangeAsk, ExtendAsk, HoldAsk};
pub use lists::{ListAsk, ListPage};
pub use money::{CheckoutAsk, Mismatch, Remedy, mismatches, run_outbox, run_reconciler};
pub use names::{NamedUnits, WishAsk};
pub use shields::run_shield_messages;
pub use sweep::run_sweeper;
pub use webhooks::run_webhooks;

use soldonce_clock::{Clock, Entropy, SystemClock, SystemEntropy};
use soldonce_core::{Command, Event, Rejection, Timestamp};
use tracing::Instrument;
use tracing::instrument::Instrumented;

use crate::caller::Call;
use crate::ids::Ids;
use crate::keys::{ApiKey, KeyHash};
use crate::ledger::sqlite::{OpenError, SqliteLedger, SqliteOptions};
use crate::ledger::{Done, Ledger, ReadError, Transaction, Write};
use crate::live::{Live, LiveEvent};
use crate::metrics::{Metrics, SPANS};
use crate::payment::{PaymentProvider, ProviderError};
use crate::reply::{self, ReplyKind, StoredReply};
use crate::secret::Secrets;
use crate::shared_reading::SharedReading;
use crate::webhook::{EndpointId, Sender, secret_text};

/// The machine's clock and randomness, or a test's.
#[derive(Clone)]
pub struct World {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

/// An open ledger with everything in front of it. Cheap to clone. The drop of the last clone of an embedded one
/// blocks until the writer has ended: call [`Engine::close`] first.
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
}

struct Parts {
    ledger: Arc<dyn Ledger>,
    live: Arc<Live>,
    metrics: Arc<Metrics>,
    world: World,
    ids: Ids,
    secrets: Secrets,
    keys: RwLock<BTreeMap<KeyHash, ApiKey>>,
    /// Shares readings of the keys among requests with an unknown key.
    key_readings: SharedReading,
    provider: OnceLock<Arc<dyn PaymentProvider>>,
    free_sales: AtomicBool,
    sender: OnceLock<Sender>,
}

/// Why a call on the engine failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The rules or the ledger refused. Each call that writes may be answered with `Overloaded`, `ReadOnly`,
    /// `ShuttingDown` or `OutcomeUnknown`, too: its own list does not repeat them.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The payment provider failed or refused.
    #[error(transparent)]
    Provider(ProviderError),
}

/// An answer: a body that lacks only the server's time, and a secret if it carries one.
#[derive(Clone, Debug)]
pub struct Reply {
    pub stored: StoredReply,
    /// The secret of the hold, the booking or the webhook endpoint, for answers that carry one.
    pub secret: Option<String>,
    /// Whether this is the stored answer to the same request.
    pub replayed: bool,
    /// The intent that the buyer pays, in the answer to checkout.
    pub intent: Option<soldonce_core::Intent>,
}

impl Reply {
    fn naming(self, name: &str) -> Self {
        Self {
            stored: self.stored.naming(name),
            ..self
        }
    }
}

impl Engine {
    /// Opens the ledger in a folder, or creates it, by the machine's clock: for a program that
    /// embeds the engine. Blocks while it reads the folder, and starts no tasks: [`run_sweeper`], [`run_outbox`],
    /// [`run_reconciler`] and [`run_webhooks`] are for the caller to spawn. Without the sweeper a hold ends in time,
    /// but maps and the feed show it only when its seats are asked for.
    ///
    /// # Errors
    /// [`OpenError`] when the folder belongs to another process, is damaged, or lacks commits.
    pub async fn open_folder(folder: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let metrics = Arc::new(Metrics::default());
        let live = Arc::new(Live::new(Arc::clone(&metrics)));
        let options = SqliteOptions::new(folder);
        let ledger = SqliteLedger::open(&options, clock.clone(), &SystemEntropy, live.clone())?;
        let engine = Self::new(Arc::new(ledger), live, metrics, World { clock, entropy }).await;
        engine.map_err(|error| OpenError::Failed(error.to_string()))
    }

    /// Builds the engine over an open ledger whose observer is `live`.
    ///
    /// # Errors
    /// [`ReadError`] when the ledger's keys cannot be read.
    pub async fn new(
        ledger: Arc<dyn Ledger>,
        live: Arc<Live>,
        metrics: Arc<Metrics>,
        world: World,
    ) -> Result<Self, ReadError> {
        let keys = ledger.keys().await?.into_iter();
        let keys = keys.map(|key| (key.hash, key)).collect();
        let ids = Ids::new(Arc::clone(&world.clock), Arc::clone(&world.entropy));
        let secrets = Secrets::new(&ledger.master_keys());
        let keys = RwLock::new(keys);
        let parts = Parts {
            ledger,
            live,
            metrics,
            world,
            ids,
            secrets,
            keys,
            key_readings: SharedReading::default(),
            provider: OnceLock::new(),
            free_sales: AtomicBool::new(false),
            sender: OnceLock::new(),
        };
        Ok(Self {
            parts: Arc::new(parts),
        })
    }

    /// Reads the ledger's clock.
    pub fn now(&self) -> Timestamp {
        self.parts.ledger.now()
    }

    /// Reads the machine's wall clock, for times that leave this server or that others signed. The
    /// ledger's clock only orders commands and ends holds, and may be ahead
    /// (`docs/decisions/0090`).
    pub fn wall_now(&self) -> Timestamp {
        Timestamp::from_ms(self.world().clock.wall_ms())
    }

    /// Returns the lead of the ledger's clock over the wall clock, milliseconds; negative if
    /// behind.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.now().ms().saturating_sub(self.wall_now().ms())
    }

    /// Returns the machine's clock and randomness.
    pub fn world(&self) -> &World {
        &self.parts.world
    }

    /// Returns the generator of ids.
    pub fn ids(&self) -> &Ids {
        &self.parts.ids
    }

    /// Returns the metrics of the engine.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }

    /// Tells whether commands are taken, as far as the ledger knows without asking its store.
    pub fn is_writable(&self) -> bool {
        self.parts.ledger.is_writable()
    }

    /// Returns the ledger itself, for operators' reports.
    pub fn ledger(&self) -> &Arc<dyn Ledger> {
        &self.parts.ledger
    }

    /// Stops taking commands and finishes those that wait.
    pub async fn close(&self) {
        self.parts.ledger.close().await;
    }

    /// Finds an event, also one that another server created a moment ago: the store is asked before
    /// an id is denied.
    ///
    /// # Errors
    /// `EventNotFound`, `EventDropped`; `Read` when the store must be asked and cannot be read.
    pub async fn live(
        &self,
        event: &soldonce_core::EventId,
    ) -> Result<Arc<LiveEvent>, EngineError> {
        if let Ok(live) = self.parts.live.find(event) {
            return Ok(live);
        }
        self.parts.ledger.find_new_events().await?;
        Ok(self.parts.live.find(event)?)
    }

    fn event_of(&self, no: soldonce_core::EventNo) -> Result<Arc<Event>, Rejection> {
        Ok(self.parts.live.event(no)?.event())
    }

    /// Executes a command in the ledger; counts a refusal.
    async fn submit(&self, call: &Call, command: Command) -> Result<Done, Rejection> {
        let transaction = Transaction {
            origin: call.origin(),
            command,
            key: call.record(),
            chart: None,
        };
        let done = self.transact(transaction).await;
        if let Err(rejection) = &done {
            self.parts.metrics.refused(rejection);
        }
        done
    }

    /// Passes a command to the ledger. Its span lasts until the command's batch is committed or it is refused.
    fn transact(&self, transaction: Transaction) -> Instrumented<Write<'_, Done>> {
        let span = tracing::info_span!(target: SPANS, "ledger.transact");
        self.parts.ledger.transact(transaction).instrument(span)
    }

    /// Renders the reply to what the ledger did, secret included where there is one.
    fn reply(&self, done: Done) -> Result<Reply, EngineError> {
        match done {
            Done::Replayed(stored) => Ok(Reply {
                replayed: true,
                ..self.answered(stored)
            }),
            Done::Fresh { answer, seq } => {
                let event = match reply::event_of(&answer) {
                    Some(no) => Some(self.event_of(no)?),
                    None => None,
                };
                let stored = reply::render(event.as_deref(), &answer, seq)
                    .ok_or_else(|| ReadError::Failed("the answer has no body".to_owned()))?;
                Ok(self.answered(stored))
            }
        }
    }

    /// Completes a stored reply, not marked as replayed, with its secret where there is one.
    fn answered(&self, stored: StoredReply) -> Reply {
        Reply {
            secret: self.secret_of(&stored),
            stored,
            replayed: false,
            intent: None,
        }
    }

    fn secret_of(&self, stored: &StoredReply) -> Option<String> {
        let secrets = &self.parts.secrets;
        match stored.kind {
            ReplyKind::Held | ReplyKind::OwnHold => {
                Some(secrets.of_hold(soldonce_core::HoldId::from_bytes(stored.subject)))
            }
            // The first one, also when it was rotated since: that is what was answered.
            ReplyKind::Endpoint => {
                let endpoint = EndpointId::from_bytes(stored.subject);
                secrets.of_endpoint(endpoint, 0).first().map(secret_text)
            }
            ReplyKind::Booked | ReplyKind::Booking | ReplyKind::GivenBack => {
                Some(secrets.of_booking(soldonce_core::BookingId::from_bytes(stored.subject)))
            }
            ReplyKind::Hold | ReplyKind::Units => None,
        }
    }
}
