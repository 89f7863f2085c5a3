//! How a backend is made: on the library's own thread, from the settings of the builder.
//!
//! A backend plugs in with three things in its own module:
//!
//! 1. a settings type, turned into a [`BackendFactory`];
//! 2. `impl Leases { pub fn <kind>(settings) -> Builder { Builder::of(..) } }` under its feature;
//! 3. a [`Backend`].
//!
//! The future of [`BackendFactory::connect`] and all futures of the backend are polled on one thread with
//! one single-threaded runtime, timers and I/O enabled. Drivers tie their connections to the
//! runtime they were made on, so connections are made in `connect` or later, never before. A
//! background task of a backend belongs to a `JoinSet` that the backend holds, so that it ends with
//! the backend.

use std::sync::Arc;
use std::time::Duration;

use super::{Backend, Fut, Kind};
use crate::{
    BackendError, Clock, Entropy, FenceSource, Namespace, Notices, SystemClock, SystemEntropy,
};

/// The settings of a backend, from which it is made.
pub trait BackendFactory: Send + 'static {
    /// Returns the kind of the backend, which is known before it is connected.
    fn kind(&self) -> Kind;

    /// Makes a second backend for acquires and releases on the caller's own runtime, which connects
    /// when it is first used; `None` if one backend serves both.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the settings cannot work.
    fn in_place(&self, _: &BackendContext) -> Result<Option<Arc<dyn Backend>>, BackendError> {
        Ok(None)
    }

    /// Connects. Runs on the library's own thread.
    ///
    /// # Errors
    /// [`BackendError::Config`] when the settings cannot work, `NotSent` when there is no answer.
    ///
    /// # Cancel safety
    /// A dropped future leaves no connection and no task behind.
    fn connect(
        self: Box<Self>,
        with: BackendContext,
    ) -> Fut<'static, Result<Arc<dyn Backend>, BackendError>>;
}

/// The settings and tools that all backends share.
#[derive(Clone)]
#[non_exhaustive]
pub struct BackendContext {
    /// Keeps the leases of one application apart.
    pub namespace: Namespace,
    /// Local time, for time-outs, back-off and watchdogs; never for expiry.
    pub clock: Arc<dyn Clock>,
    /// Randomness for jitter.
    pub entropy: Arc<dyn Entropy>,
    /// The source of what tokens need to rise through loss of data.
    pub fencing: Fencing,
    /// Longest wait for one answer. [`crate::Builder::connect`] gives nine tenths of its own, so that the backend
    /// sees first that an answer did not come, and leaves a silent connection. A backend that is made elsewhere, for
    /// [`crate::Leases::backend`], needs less than its builder, too.
    pub call_timeout: Duration,
    /// Receives the notices of a backend, about epochs, connections and orphans.
    pub notices: Notices,
    /// Another text for the script of Redis in this file: a test must see that a wrong script fails.
    #[cfg(all(feature = "redis", feature = "test-kit", debug_assertions))]
    #[doc(hidden)]
    pub script: Option<(&'static str, String)>,
}

impl BackendContext {
    /// Creates the defaults: clock and randomness of the system, tokens by the server's clock, 500 ms
    /// for a call.
    pub fn new(namespace: Namespace) -> Self {
        Self {
            namespace,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            fencing: Fencing::default(),
            call_timeout: Duration::from_millis(500),
            notices: Notices::default(),
            #[cfg(all(feature = "redis", feature = "test-kit", debug_assertions))]
            script: None,
        }
    }
}

/// The source of what tokens need to rise through loss of the backend's data.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Fencing {
    /// The clock of the server, if there is nothing better.
    #[default]
    Clock,
    /// Durable storage outside the backend.
    Source(Arc<dyn FenceSource>),
    /// The caller wants no tokens at all.
    Off,
}

#[cfg(feature = "redis")]
impl Fencing {
    /// Returns the storage outside the backend, if there is one.
    pub(super) fn source(self) -> Option<Arc<dyn FenceSource>> {
        match self {
            Fencing::Source(source) => Some(source),
            Fencing::Clock | Fencing::Off => None,
        }
    }
}
