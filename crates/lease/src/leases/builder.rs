//! Builds a [`Leases`] from settings: checks them, starts the lease thread, connects.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::Leases;
use super::thread::{self, Doctor, Start};
use crate::backend::{BackendContext, BackendFactory, Fencing, Kind};
use crate::{BackendError, Clock, FenceSource, InvalidName, Namespace, SeededEntropy, blocking};

/// The kind of a backend that exists already.
pub(super) const GIVEN: Kind = Kind::Other("given");

/// Settings of a [`Leases`] that is not connected yet.
#[must_use = "a builder does nothing until it is connected"]
pub struct Builder {
    connect: Box<dyn BackendFactory>,
    namespace: Option<Result<Namespace, InvalidName>>,
    /// All but the namespace.
    context: BackendContext,
    doctor: Doctor,
    ttl_min: Option<Duration>,
    own_thread: bool,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("backend", &self.connect.kind())
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Starts with the default settings, for the backend that `connect` makes. This is where a
    /// backend plugs in: see [`crate::backend::BackendFactory`].
    pub fn of(connect: impl BackendFactory) -> Self {
        Self {
            connect: Box::new(connect),
            namespace: None,
            context: BackendContext::new(Namespace::local()),
            doctor: Doctor::default(),
            ttl_min: None,
            own_thread: false,
        }
    }

    /// Keeps these leases apart from those of other applications on the same backend. Required for
    /// networked backends.
    pub fn namespace(self, namespace: &str) -> Self {
        let namespace = Some(Namespace::new(namespace));
        Self { namespace, ..self }
    }

    /// Reads local time from `clock`.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.context.clock = clock;
        self
    }

    /// Draws jitter from a seed, so that a run can be repeated. Owners stay secret.
    pub fn seed(mut self, seed: u64) -> Self {
        self.context.entropy = Arc::new(SeededEntropy::new(seed));
        self
    }

    /// Takes numbers for tokens from `source`: they rise even if the backend loses its data.
    /// PostgreSQL keeps its own: with another source [`Builder::connect`] fails.
    pub fn fence(mut self, source: impl FenceSource) -> Self {
        self.context.fencing = Fencing::Source(Arc::new(source));
        self
    }

    /// Gives no tokens at all: [`crate::LeaseRef::token`] fails.
    pub fn no_fencing(mut self) -> Self {
        self.context.fencing = Fencing::Off;
        self
    }

    /// Sets what to do about the findings of the doctor; the default is [`Doctor::Warn`].
    pub fn doctor(self, doctor: Doctor) -> Self {
        Self { doctor, ..self }
    }

    /// Sets the longest wait for one answer of the backend, above zero; the default is 500 ms.
    pub fn call_timeout(mut self, call_timeout: Duration) -> Self {
        self.context.call_timeout = call_timeout;
        self
    }

    /// Acquires and releases on the lease thread, wherever they are called. Otherwise a tokio runtime of
    /// several threads that awaits [`Builder::connect`] also carries the connection of its own calls; it needs
    /// I/O and time enabled, as `#[tokio::main]` has them.
    pub fn own_thread(mut self) -> Self {
        self.own_thread = true;
        self
    }

    /// Allows shorter ttls than the backend can keep reliably, so that tests end soon.
    #[cfg(feature = "test-kit")]
    pub fn ttl_min(self, least: Duration) -> Self {
        let ttl_min = Some(least);
        Self { ttl_min, ..self }
    }

    /// Starts the lease thread and connects.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the settings cannot work, or the doctor is strict and found a
    /// promise that does not hold; `NotSent` when there was no answer.
    ///
    /// # Cancel safety
    /// A dropped future ends the thread.
    pub async fn connect(self) -> Result<Leases, BackendError> {
        let start = self.into_start()?;
        let (ready, connected) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("soldonce-lease".to_owned())
            .spawn(move || thread::run(start, ready))
            .map_err(|error| BackendError::Config(format!("no thread: {error}")))?;
        let ended = |_| Err(BackendError::Config("the lease thread ended".to_owned()));
        let mut client = connected.await.unwrap_or_else(ended)?;
        client.thread = Mutex::new(Some(thread));
        Ok(Leases {
            client: Arc::new(client),
        })
    }

    fn into_start(self) -> Result<Start, BackendError> {
        let config = |why: &dyn std::fmt::Display| BackendError::Config(why.to_string());
        let mut context = self.context;
        if self.connect.kind() == GIVEN {
            let namespace = self.namespace.is_some().then_some("namespace(\"..\")");
            let fence = matches!(context.fencing, Fencing::Source(_)).then_some("fence(..)");
            if let Some(setting) = namespace.or(fence) {
                let why = "a backend that exists already has its own: leave out .";
                return Err(BackendError::Config(format!("{why}{setting}")));
            }
        }
        match (self.namespace, self.connect.kind()) {
            (Some(namespace), _) => {
                context.namespace = namespace.map_err(|error| config(&error))?;
            }
            (None, Kind::Memory | Kind::Other(_)) => {}
            (None, kind) => {
                let why = format!("{} needs a namespace: .namespace(\"..\")", kind.as_str());
                return Err(BackendError::Config(why));
            }
        }
        if context.call_timeout.is_zero() {
            return Err(config(&"call_timeout must be above zero"));
        }
        Ok(Start {
            connect: self.connect,
            doctor: self.doctor,
            ttl_min: self.ttl_min,
            runtime: (!self.own_thread).then(runtime_here).flatten(),
            context,
        })
    }
}

/// Finds the runtime of this thread, if it still runs while one of its threads is blocked.
fn runtime_here() -> Option<Handle> {
    let here = Handle::try_current().ok()?;
    let several = here.runtime_flavor() == RuntimeFlavor::MultiThread;
    (several && !blocking::is_waiting()).then_some(here)
}
