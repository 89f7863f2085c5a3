//! A request for one grant: names, times and options. `lease.md` 2.1.

mod acquire;
mod elsewhere;

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Durability, Names};
use crate::client::{Client, OwnerInfo};
use crate::limits::META_BYTES_MAX;
use crate::worker::Ctx;
use crate::{BackendError, FencingToken, InvalidRequest, Name, ReleaseOutcome};

pub use elsewhere::RemoteGrant;

/// The default of [`Request::ttl`].
const TTL_DEFAULT: Duration = Duration::from_secs(10);

/// A request for a lease. Nothing is sent before one of its futures is polled.
///
/// ```
/// # use std::time::Duration;
/// # use soldonce_lease::Leases;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = Leases::memory().connect().await?;
/// let request = leases
///     .lease("import")
///     .ttl(Duration::from_secs(30))
///     .max_lifetime(Duration::from_hours(2)) // renewed at most so long
///     .fair() // first come, first served
///     .meta("host", "db-1");
/// let lease = request.clone().acquire().await?;
/// assert!(request.clone().try_acquire().await?.is_none());
/// let holder = request.inspect().await?.expect("it is held");
/// assert_eq!(holder.meta, [("host".to_owned(), "db-1".to_owned())]);
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is acquired"]
pub struct Request {
    client: Arc<Client>,
    names: Result<Names, InvalidRequest>,
    ttl: Duration,
    max_lifetime: Option<Duration>,
    manual: bool,
    fair: bool,
    floor: Option<FencingToken>,
    safety: Duration,
    meta: Result<String, InvalidRequest>,
    durability: Durability,
}

impl Request {
    pub(crate) fn new(client: Arc<Client>, names: Result<Names, InvalidRequest>) -> Self {
        let ttl = TTL_DEFAULT.min(client.ctx.facts.ttl_max);
        Self {
            client,
            names,
            ttl,
            max_lifetime: None,
            manual: false,
            fair: false,
            floor: None,
            safety: Duration::ZERO,
            meta: Ok(String::new()),
            durability: Durability::Primary,
        }
    }

    /// Sets how long the lease lives without renewal; the default is 10 s. Memory takes 1 ms or
    /// more, networked backends 1 s, Redlock 2 s; 24 h at most.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// Limits how long it may live with all renewals; the backend enforces it. Without it a stuck
    /// task holds the lease until its process ends, and after 15 minutes a notice tells so.
    pub fn max_lifetime(mut self, most: Duration) -> Self {
        self.max_lifetime = Some(most);
        self
    }

    /// Leaves renewals to [`crate::Lease::renew`]. By default the lease thread renews every third
    /// of the ttl.
    pub fn manual_renewal(mut self) -> Self {
        self.manual = true;
        self
    }

    /// Waits in the backend's queue: first come, first served among processes. Not for groups, and
    /// not on every backend.
    pub fn fair(self) -> Self {
        Self { fair: true, ..self }
    }

    /// Requires a token above `floor`, the highest that a target has seen.
    pub fn floor(self, floor: FencingToken) -> Self {
        let floor = Some(floor);
        Self { floor, ..self }
    }

    /// Treats the lease as lost this much earlier than the backend does: less than half of the ttl.
    pub fn safety(self, safety: Duration) -> Self {
        Self { safety, ..self }
    }

    /// Adds a line of text for people who inspect the lease. All lines together take at most 256
    /// bytes, as `key=value` joined by `;`. Neither part may hold a `;` or a control character, and a key is not
    /// empty and holds no `=`.
    pub fn meta(mut self, key: &str, value: &str) -> Self {
        if let Ok(text) = &mut self.meta {
            let separator = if text.is_empty() { "" } else { ";" };
            let line = format!("{separator}{key}={value}");
            let key_is_plain = !key.is_empty() && !key.contains('=');
            let is_plain = |part: &str| !part.contains(|c: char| c.is_control() || c == ';');
            let fits = text.len() + line.len() <= META_BYTES_MAX;
            if key_is_plain && is_plain(key) && is_plain(value) && fits {
                text.push_str(&line);
            } else {
                self.meta = Err(InvalidRequest::Meta);
            }
        }
        self
    }

    /// Waits up to `within`, 1 ms to 9 s, for `n` replicas to have the grant. Fewer are reported by
    /// [`crate::Lease::replica_count`], and are never an error. Such requests of a process wait for each other: while a
    /// replica does not answer, more than one in each `within` get no answer in time.
    pub fn replicas(mut self, n: u32, within: Duration) -> Self {
        self.durability = Durability::Replicas { n, within };
        self
    }

    /// Reads the holder of the name; `None` if it is free. For a request of one name.
    ///
    /// # Errors
    /// [`BackendError`] when the backend does not answer; `Config` for several names, or one that is not valid.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn inspect(&self) -> Result<Option<OwnerInfo>, BackendError> {
        let name = self.one_name()?;
        let inspect = |ctx: Arc<Ctx>| async move { ctx.holder(&name).await };
        let holder = self.client.ask(inspect).await??;
        Ok(holder.as_ref().map(OwnerInfo::of))
    }

    /// Ends another owner's lease on the name if its token is still `expect`; `why` is logged. For
    /// a request of one name. The holder learns of it at its next renewal: a target that does not
    /// compare tokens is not safe from it.
    ///
    /// ```
    /// # use soldonce_lease::{Leases, ReleaseOutcome};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let stuck = leases.lease("nightly").acquire().await?;
    /// // What an operator sees, and then breaks: this grant and no later one.
    /// let nightly = leases.lease("nightly");
    /// let holder = nightly.inspect().await?.expect("it is held");
    /// let broken = nightly.force_release(holder.token, "the host is gone").await?;
    /// assert_eq!(broken, ReleaseOutcome::Released);
    /// assert!(stuck.verify().await.is_err(), "the holder learns it when it asks");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Request::inspect`]; with `Unknown` it may have been released.
    ///
    /// # Cancel safety
    /// Dropped after sending, the release may have happened.
    pub async fn force_release(
        &self,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        let name = self.one_name()?;
        tracing::warn!(?name, token = %expect, why, "lease released by force");
        let release = |ctx: Arc<Ctx>| async move { ctx.break_lease(name, expect).await };
        self.client.ask(release).await?
    }

    fn one_name(&self) -> Result<Names, BackendError> {
        let names = self.names.clone();
        let names = names.map_err(|error| BackendError::Config(error.to_string()))?;
        if names.as_slice().len() == 1 {
            return Ok(names);
        }
        let why = "ask about one name at a time";
        Err(BackendError::Config(why.to_owned()))
    }
}

pub(crate) fn name_of(name: impl AsRef<str>) -> Result<Name, InvalidRequest> {
    Ok(Name::new(name.as_ref())?)
}
