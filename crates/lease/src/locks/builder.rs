//! From settings to a running [`Locks`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Door, Locks};
use crate::backend::{
    Backend, Connect, Facts, Fencing, Finding, Fut, Kind, Memory, Verdict, Wiring,
};
use crate::notice::{Notice, Notices, What};
use crate::stats::Counters;
use crate::worker::{Command, Ctx, Inbox, Parts, Worker};
use crate::{
    BackendError, Clock, Entropy, EpochSource, InvalidName, Namespace, SeededEntropy, SystemClock,
    SystemEntropy, TokenSource, blocking,
};

/// Shards of a namespace if nothing is said.
const SHARDS_DEFAULT: u16 = 64;

/// Longest wait for one answer if nothing is said.
const CALL_TIMEOUT_DEFAULT: Duration = Duration::from_millis(500);

/// A connection is made of several calls.
const CONNECT_CALLS: u32 = 10;

/// What to do at connect about what the doctor finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Doctor {
    /// Log it, and tell it as notices.
    #[default]
    Warn,
    /// Refuse to connect if a promise does not hold.
    Strict,
    /// Do not look.
    Off,
}

/// Settings of a [`Locks`] that is not connected yet.
#[must_use = "a builder does nothing until it is connected"]
pub struct Builder {
    connect: Box<dyn Connect>,
    namespace: Option<Result<Namespace, InvalidName>>,
    shards: u16,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    fencing: Fencing,
    doctor: Doctor,
    call_timeout: Duration,
    ttl_min: Option<Duration>,
    #[cfg(all(feature = "test-kit", debug_assertions))]
    planted: Option<crate::test_kit::Planted>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("backend", &self.connect.kind())
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Locks {
    /// Leases in this process.
    pub fn memory() -> Builder {
        Builder::of(InProcess)
    }

    /// Leases on a backend that exists already, on this clock or its own.
    pub fn backend(backend: Arc<dyn Backend>) -> Builder {
        Builder::of(Given(backend))
    }
}

impl Builder {
    /// Settings for the backend that `connect` makes. This is where a backend plugs in: see
    /// [`crate::backend::Connect`].
    pub fn of(connect: impl Connect) -> Self {
        Self {
            connect: Box::new(connect),
            namespace: None,
            shards: SHARDS_DEFAULT,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            fencing: Fencing::default(),
            doctor: Doctor::default(),
            call_timeout: CALL_TIMEOUT_DEFAULT,
            ttl_min: None,
            #[cfg(all(feature = "test-kit", debug_assertions))]
            planted: None,
        }
    }

    /// Keeps these leases apart from those of other applications on the same backend. Required for
    /// networked backends.
    pub fn namespace(self, namespace: &str) -> Self {
        let namespace = Some(Namespace::new(namespace));
        Self { namespace, ..self }
    }

    /// Over how many shards the namespace is spread; 64 if nothing is said. All processes of a
    /// namespace must say the same.
    pub fn shards(self, shards: u16) -> Self {
        Self { shards, ..self }
    }

    /// Takes local time from `clock`.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Draws jitter from a seed, so that a run can be repeated. Owners stay secret.
    pub fn seed(self, seed: u64) -> Self {
        let entropy = Arc::new(SeededEntropy::new(seed));
        Self { entropy, ..self }
    }

    /// Anchors tokens: they rise through every loss of the backend's data.
    pub fn epochs(self, source: impl EpochSource) -> Self {
        let fencing = Fencing::Epochs(Arc::new(source));
        Self { fencing, ..self }
    }

    /// Takes whole tokens from a durable sequence: one durable write for each grant. For Redlock,
    /// which has no other way, and for leases in memory.
    pub fn tokens(self, source: impl TokenSource) -> Self {
        let fencing = Fencing::Tokens(Arc::new(source));
        Self { fencing, ..self }
    }

    /// Gives no tokens at all.
    pub fn no_fencing(self) -> Self {
        let fencing = Fencing::Off;
        Self { fencing, ..self }
    }

    /// What to do about what the doctor finds; [`Doctor::Warn`] if nothing is said.
    pub fn doctor(self, doctor: Doctor) -> Self {
        Self { doctor, ..self }
    }

    /// Longest wait for one answer of the backend; 500 ms if nothing is said.
    pub fn call_timeout(self, call_timeout: Duration) -> Self {
        Self {
            call_timeout,
            ..self
        }
    }

    /// Allows shorter ttls than the backend keeps honestly, so that tests end soon.
    #[cfg(feature = "test-kit")]
    pub fn ttl_min(self, least: Duration) -> Self {
        let ttl_min = Some(least);
        Self { ttl_min, ..self }
    }

    /// Plants a bug in the facade, to see whether tests catch it.
    #[cfg(all(feature = "test-kit", debug_assertions))]
    pub fn planted(self, bug: crate::test_kit::Planted) -> Self {
        let planted = Some(bug);
        Self { planted, ..self }
    }

    /// Starts the thread and connects.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the settings cannot work, or the doctor is strict and found a
    /// promise that does not hold; `NotSent` when nobody answered.
    ///
    /// # Cancel safety
    /// A dropped future ends the thread.
    pub async fn connect(self) -> Result<Locks, BackendError> {
        let start = self.into_start()?;
        let (inbox, counters) = (Arc::new(Inbox::default()), Arc::new(Counters::default()));
        let (wiring, ttl_min) = (start.wiring.clone(), start.ttl_min);
        let unclaimed = CloseOnDrop(Some(inbox.clone()));
        let (ready, connected) = oneshot::channel();
        let parts = (inbox.clone(), counters.clone());
        let thread = std::thread::Builder::new()
            .name("soldonce-lease".to_owned())
            .spawn(move || run(start, parts, ready))
            .map_err(|error| BackendError::Config(format!("no thread: {error}")))?;
        let ended = |_| Err(BackendError::Config("the lease thread ended".to_owned()));
        let facts = connected.await.unwrap_or_else(ended)?;
        unclaimed.disarm();
        Ok(Locks {
            door: Arc::new(Door {
                inbox,
                facts,
                clock: wiring.clock,
                entropy: wiring.entropy,
                notices: wiring.notices,
                counters,
                ttl_min,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// [`Builder::connect`] for code without an executor.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub fn connect_blocking(self) -> Result<Locks, BackendError> {
        blocking::wait(self.connect())
    }

    fn into_start(self) -> Result<Start, BackendError> {
        let config = |why: &dyn std::fmt::Display| BackendError::Config(why.to_string());
        let namespace = match (self.namespace, self.connect.kind()) {
            (Some(namespace), _) => namespace.map_err(|error| config(&error))?,
            (None, Kind::Memory | Kind::Other(_)) => {
                Namespace::new("local").map_err(|error| config(&error))?
            }
            (None, kind) => {
                let why = format!("{} needs a namespace: .namespace(\"..\")", kind.as_str());
                return Err(BackendError::Config(why));
            }
        };
        if self.shards == 0 || self.call_timeout.is_zero() {
            return Err(config(&"shards and call_timeout must be above zero"));
        }
        Ok(Start {
            connect: self.connect,
            doctor: self.doctor,
            ttl_min: self.ttl_min,
            #[cfg(all(feature = "test-kit", debug_assertions))]
            planted: self.planted,
            wiring: Wiring {
                namespace,
                shards: self.shards,
                clock: self.clock,
                entropy: self.entropy,
                fencing: self.fencing,
                call_timeout: self.call_timeout,
                notices: Notices::default(),
            },
        })
    }
}

/// Ends the thread when whoever connects goes away before there is a [`Door`].
struct CloseOnDrop(Option<Arc<Inbox>>);

impl CloseOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(inbox) = &self.0 {
            // Fails when the thread has ended already.
            inbox.push(Command::Close).ok();
        }
    }
}

/// What the thread starts with.
struct Start {
    connect: Box<dyn Connect>,
    doctor: Doctor,
    ttl_min: Option<Duration>,
    #[cfg(all(feature = "test-kit", debug_assertions))]
    planted: Option<crate::test_kit::Planted>,
    wiring: Wiring,
}

type Ready = oneshot::Sender<Result<Facts, BackendError>>;

/// The life of the thread.
fn run(start: Start, (inbox, counters): (Arc<Inbox>, Arc<Counters>), mut ready: Ready) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = format!("no runtime: {error}");
            return drop(ready.send(Err(BackendError::Config(why))));
        }
    };
    let told = runtime.block_on(async {
        let wiring = start.wiring.clone();
        #[cfg(all(feature = "test-kit", debug_assertions))]
        let planted = start.planted;
        let backend = tokio::select! {
            biased;
            backend = open(start) => backend,
            () = ready.closed() => return None,
        };
        let backend = match backend {
            Ok(backend) => backend,
            Err(error) => {
                drop(ready.send(Err(error)));
                return None;
            }
        };
        let ctx = Arc::new(Ctx::new(Parts {
            backend: backend.clone(),
            clock: wiring.clock,
            entropy: wiring.entropy,
            call_timeout: wiring.call_timeout,
            fenced: !matches!(wiring.fencing, Fencing::Off),
            inbox,
            counters,
            notices: wiring.notices,
            #[cfg(all(feature = "test-kit", debug_assertions))]
            planted,
        }));
        ready.send(Ok(backend.facts())).ok()?;
        Worker::new(ctx).run().await
    });
    // Connections end before anybody is told that all has ended.
    drop(runtime);
    if let Some((to, drained)) = told {
        to.send(drained).ok();
    }
}

async fn open(start: Start) -> Result<Arc<dyn Backend>, BackendError> {
    let wiring = start.wiring;
    let limit = wiring.call_timeout.saturating_mul(CONNECT_CALLS);
    let (clock, notices) = (wiring.clock.clone(), wiring.notices.clone());
    let backend = tokio::select! {
        biased;
        backend = start.connect.connect(wiring) => backend?,
        () = clock.sleep_until(clock.boot().plus(limit)) => {
            let why = format!("no connection within {} ms", limit.as_millis());
            return Err(BackendError::NotSent(why));
        }
    };
    if start.doctor != Doctor::Off {
        let kind = backend.facts().kind;
        examine(start.doctor, kind, &notices, backend.doctor().await)?;
    }
    Ok(backend)
}

fn examine(
    doctor: Doctor,
    kind: Kind,
    notices: &Notices,
    findings: Vec<Finding>,
) -> Result<(), BackendError> {
    for finding in findings {
        let text = format!("{}: {} {}", finding.check, finding.found, finding.mend);
        match finding.verdict {
            Verdict::Ok | Verdict::NotVerifiable => continue,
            Verdict::Fail if doctor == Doctor::Strict => return Err(BackendError::Config(text)),
            Verdict::Warn | Verdict::Fail => {}
        }
        tracing::warn!(backend = kind.as_str(), finding = text, "lease backend");
        notices.tell(|| Notice::of(What::DoctorFinding, kind).because(text));
    }
    Ok(())
}

/// The memory backend, made when it is connected.
struct InProcess;

impl Connect for InProcess {
    fn kind(&self) -> Kind {
        Kind::Memory
    }

    fn connect(
        self: Box<Self>,
        with: Wiring,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move {
            let memory = match with.fencing {
                Fencing::Epochs(source) => {
                    Memory::anchored(with.clock, source, with.namespace.as_str()).await?
                }
                Fencing::Tokens(source) => {
                    Memory::with_tokens(with.clock, source, with.namespace.as_str())
                }
                Fencing::Unanchored | Fencing::Off => Memory::new(with.clock),
            };
            Ok(Arc::new(memory) as Arc<dyn Backend>)
        })
    }
}

/// A backend that exists already.
struct Given(Arc<dyn Backend>);

impl Connect for Given {
    fn kind(&self) -> Kind {
        // It has its namespace already, so none is asked for.
        Kind::Other("given")
    }

    fn connect(self: Box<Self>, _: Wiring) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>> {
        Box::pin(async move { Ok(self.0) })
    }
}
