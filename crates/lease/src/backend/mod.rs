//! The contract of a backend: seven methods and ten laws. Timers, retries, deadlines, queues and
//! events belong to [`crate::Leases`], written once above this contract. `lease.md` 5.1.

mod connect;
mod memory;
mod message;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "redis"))]
#[cfg_attr(
    not(feature = "redis"),
    expect(dead_code, reason = "time-outs in a row are counted for Redis alone")
)]
mod reconnecting;
#[cfg(feature = "redis")]
pub mod redis;
mod worst;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;

use crate::{BackendError, Name};

pub use connect::{BackendContext, BackendFactory, Fencing};
pub use memory::{Memory, State};
pub use message::{
    Acquire, AcquireReply, Durability, Holder, Names, Release, ReleaseReply, Renew, RenewReply,
    Waiter,
};

/// A boxed future, so that [`Backend`] can be a trait object.
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Stores leases. Each law is a test of the conformance suite, run over every backend here:
///
/// - **B1** at most one live owner per name on the backend's clock;
/// - **B2** all names of a grant, or none;
/// - **B3** acquire again by the live owner gives the same token and a fresh ttl, or
///   the longer life that it had;
/// - **B4** renew never shortens, never creates, never passes the cap, and needs owner and token;
/// - **B5** release removes only the current (owner, token); repeating it is harmless;
/// - **B6** the token of a later grant of a name is higher;
/// - **B7** [`BackendError::Unknown`] whenever the command may have run; `NotSent` and `Rejected`
///   only when it certainly did not;
/// - **B8** a grant never ends before its answered life on the backend's clock, and at most 2 ms
///   later, unless the backend loses data;
/// - **B9** refusals list every conflicting name;
/// - **B10** every stored thing but the fence record ends by itself.
///
/// # Cancel safety
/// Dropping a future of `acquire` may leave a grant behind: the caller then releases by owner. `renew` and
/// `release` may be dropped and repeated.
pub trait Backend: Send + Sync + 'static {
    /// Returns the abilities and the bounds of this backend. They never change.
    fn facts(&self) -> Facts;

    /// Grants all names of `command`, or lists every conflict.
    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply>;

    /// Renews up to 100 grants; one reply each, in order.
    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>>;

    /// Ends up to 100 grants; one reply each, in order.
    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>>;

    /// Reads the holder of `name` (of `group`); `None` if it is free.
    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>>;

    /// Begins to listen for releases of `names`; ready when the backend has acknowledged that it
    /// listens, or given up. Hints only: the stream may never wake.
    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream>;

    /// Checks the server's settings, and returns one finding for each check.
    fn doctor(&self) -> Fut<'_, Vec<Finding>>;
}

/// The abilities and bounds of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Its kind, for logs, metrics and reports.
    pub kind: Kind,
    /// Shortest ttl it can keep reliably.
    pub ttl_min: Duration,
    /// Longest ttl.
    pub ttl_max: Duration,
    /// Whether it can queue waiters in order.
    pub fair: bool,
    /// Longest sleep of a waiter between two tries.
    pub poll: Duration,
}

impl Facts {
    /// Creates the facts of a backend of `kind` with the bounds that all networked ones share: ttl
    /// of a second to a day, 64 names, a poll each second, no queue.
    pub const fn of(kind: Kind) -> Self {
        Self {
            kind,
            ttl_min: Duration::from_secs(1),
            ttl_max: crate::limits::TTL_MAX,
            fair: false,
            poll: Duration::from_secs(1),
        }
    }
}

/// The kinds of backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// In this process.
    Memory,
    /// One Redis primary.
    Redis,
    /// Redis Cluster.
    Cluster,
    /// A majority of independent Redis primaries.
    Redlock,
    /// PostgreSQL.
    Postgres,
    /// A backend that is not of this crate.
    Other(&'static str),
}

impl Kind {
    /// Returns the word for it in logs, metrics and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Memory => "memory",
            Kind::Redis => "redis",
            Kind::Cluster => "cluster",
            Kind::Redlock => "redlock",
            Kind::Postgres => "postgres",
            Kind::Other(word) => word,
        }
    }
}

/// The result of one check of the doctor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The check, in a few words.
    pub check: &'static str,
    /// The verdict of the check.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do about it; empty if there is nothing to do.
    pub fix: String,
}

impl Finding {
    /// Creates a finding of `check`; `fix` is empty if there is nothing to do.
    pub fn new(check: &'static str, verdict: Verdict, found: impl Into<String>, fix: &str) -> Self {
        Self {
            check,
            verdict,
            found: found.into(),
            fix: fix.to_owned(),
        }
    }
}

#[cfg(any(feature = "redis", feature = "postgres"))]
impl Finding {
    /// Creates a finding of `check`: as it should be if `is_good`, else `bad` and with `fix`.
    pub(crate) fn judged(
        (check, is_good, bad): (&'static str, bool, Verdict),
        found: impl Into<String>,
        fix: &str,
    ) -> Self {
        if is_good {
            return Self::new(check, Verdict::Ok, found, "");
        }
        Self::new(check, bad, found, fix)
    }

    /// Judges a round trip, which may take a twentieth of the shortest ttl.
    pub(crate) fn round_trip(took: Duration) -> Self {
        const MOST: Duration = Duration::from_millis(50);
        let check = ("round trip", took <= MOST, Verdict::Warn);
        let fix = "use ttls of at least twenty round trips, or a nearer server";
        Self::judged(check, format!("{} ms", took.as_millis()), fix)
    }

    /// Judges how many epochs are left: a tenth at least.
    pub(crate) fn epochs_left(used: u32) -> Self {
        const ALL: u32 = crate::EPOCH_MAX;
        let check = ("epochs left", used < ALL / 10 * 9, Verdict::Warn);
        let fix = "find out who takes them, and move to a new namespace before they are used up";
        Self::judged(check, format!("{used} of {ALL} used"), fix)
    }
}

/// How a check of the doctor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// The server does not let a client check it.
    NotVerifiable,
    /// It works now, and will do harm one day.
    Warn,
    /// A guarantee of this crate does not hold on this server.
    Fail,
}

/// Hints that a name may be free. A stream may never wake.
#[derive(Debug)]
pub struct WakeStream(Option<watch::Receiver<u64>>);

/// The sender of [`WakeStream`]s: wakes all of them.
#[derive(Clone, Debug, Default)]
pub struct WakeSender(watch::Sender<u64>);

impl WakeStream {
    /// Creates a stream that never wakes.
    pub const fn silent() -> Self {
        Self(None)
    }

    /// Forgets the hints that came so far.
    pub fn forget(&mut self) {
        if let Some(hints) = &mut self.0 {
            hints.mark_unchanged();
        }
    }

    /// Waits for the next hint. Hints that came since the last wait count as one.
    ///
    /// # Cancel safety
    /// A dropped wait loses no hint.
    pub async fn next(&mut self) {
        if let Some(hints) = &mut self.0
            && hints.changed().await.is_ok()
        {
            return;
        }
        self.0 = None;
        std::future::pending::<()>().await;
    }
}

impl WakeSender {
    /// Subscribes a new stream to this sender.
    pub fn stream(&self) -> WakeStream {
        WakeStream(Some(self.0.subscribe()))
    }

    /// Wakes every stream.
    pub fn wake(&self) {
        self.0.send_modify(|hints| *hints = hints.wrapping_add(1));
    }

    /// Counts the streams that listen.
    pub fn listeners(&self) -> usize {
        self.0.receiver_count()
    }
}
