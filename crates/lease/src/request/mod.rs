//! What is asked for: names, times and manners of one grant. `lease.md` 2.1.

mod group;
mod validate;

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Durability, Names, Waiter};
use crate::client::Client;
use crate::inbox::AcquireParams;
use crate::lease::Lease;
use crate::limits::META_BYTES_MAX;
use crate::options::{Cap, Renew, Wait};
use crate::{AcquireError, FencingToken, InvalidRequest, blocking};

pub use group::Group;
pub(crate) use group::name_of;

/// The ttl of a request that names none.
const TTL_DEFAULT: Duration = Duration::from_secs(10);

/// A lease that can be asked for. Nothing is sent before one of the methods at its end is polled.
///
/// ```
/// # use std::time::Duration;
/// # use soldonce_lease::{AcquireError, Cap, Locks, Renew, Wait};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::memory().connect().await?;
/// let request = locks
///     .lease("import")
///     .ttl(Duration::from_secs(30))
///     .cap(Cap::After(Duration::from_hours(2))) // renewed at most so long
///     .renew(Renew::Auto)
///     .fair() // first come, first served
///     .meta("host", "db-1");
/// let lease = request.clone().acquire(Wait::UpTo(Duration::from_secs(3))).await?;
/// match request.try_acquire().await {
///     Err(AcquireError::Refused(refusal)) => assert_eq!(refusal.conflicts.len(), 1),
///     other => panic!("{other:?}"),
/// }
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is acquired or run"]
pub struct Request {
    client: Arc<Client>,
    names: Result<Names, InvalidRequest>,
    ttl: Duration,
    cap: Option<Cap>,
    renew: Renew,
    fair: bool,
    floor: Option<FencingToken>,
    safety: Duration,
    meta: Result<String, InvalidRequest>,
    durability: Durability,
}

impl Request {
    pub(crate) fn new(client: Arc<Client>, names: Result<Names, InvalidRequest>) -> Self {
        Self {
            client,
            names,
            ttl: TTL_DEFAULT,
            cap: None,
            renew: Renew::Auto,
            fair: false,
            floor: None,
            safety: Duration::ZERO,
            meta: Ok(String::new()),
            durability: Durability::Primary,
        }
    }

    /// How long the lease lives without renewal; 10 s if nothing is said. Memory takes 1 ms or
    /// more, networked backends 1 s, Redlock 2 s; 24 h at most.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// How long it may live with all renewals; 15 min (or the ttl, if that is longer) if nothing is
    /// said.
    pub fn cap(self, cap: Cap) -> Self {
        let cap = Some(cap);
        Self { cap, ..self }
    }

    /// Who renews it; the lease thread if nothing is said.
    pub fn renew(self, renew: Renew) -> Self {
        Self { renew, ..self }
    }

    /// Waits in the backend's queue: first come, first served among processes. Not for groups, and
    /// not on every backend.
    pub fn fair(self) -> Self {
        Self { fair: true, ..self }
    }

    /// The token must be above `floor`, the highest that a target has seen.
    pub fn floor(self, floor: FencingToken) -> Self {
        let floor = Some(floor);
        Self { floor, ..self }
    }

    /// Treats the lease as lost so much earlier than the backend does.
    pub fn safety(self, safety: Duration) -> Self {
        Self { safety, ..self }
    }

    /// Adds a line that people see who inspect the lease. All lines together take at most 256 bytes,
    /// as `key=value` joined by `;`.
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

    /// What must be durable before the grant is answered. Too few replicas are reported by
    /// [`Lease::replicas`], never an error.
    pub fn durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Asks once, and a second time if the first stayed without an answer.
    ///
    /// # Errors
    /// [`AcquireError::Refused`] with every conflict; never `TimedOut` or `QueueFull`.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind: what it may have taken is released in the background.
    pub async fn try_acquire(self) -> Result<Lease, AcquireError> {
        self.acquire(Wait::No).await
    }

    /// Asks until it is granted or the wait is over.
    ///
    /// # Errors
    /// [`AcquireError::TimedOut`] when another held it for the whole wait; with [`Wait::No`],
    /// `Refused`.
    ///
    /// # Cancel safety
    /// As [`Request::try_acquire`], and its place in every queue is given up.
    pub async fn acquire(self, wait: Wait) -> Result<Lease, AcquireError> {
        let client = self.client.clone();
        let grant = client.acquire(self.into_params(wait)?).await?;
        Ok(Lease::of(grant, client))
    }

    fn into_params(self, wait: Wait) -> Result<AcquireParams, InvalidRequest> {
        let facts = self.client.ctx.facts;
        let ttl_min = self.client.ttl_min();
        let names = self.names?;
        validate::names(&names, &facts)?;
        validate::ttl(self.ttl, ttl_min)?;
        let cap = validate::cap(self.cap, self.ttl)?;
        if self.fair && (!facts.fair || names.group().is_some()) {
            return Err(validate::unsupported(&facts, "queue waiters in order"));
        }
        let waits = self.fair && wait != Wait::No;
        Ok(AcquireParams {
            names,
            ttl: self.ttl,
            cap,
            floor: self.floor,
            // Only a fair queue keeps places.
            waiter: (waits && self.fair).then(|| draw_waiter(&self.client)),
            fair: self.fair,
            meta: self.meta?.into(),
            durability: self.durability,
            wait,
            safety: self.safety,
            renew: self.renew,
        })
    }

    /// [`Request::try_acquire`] for code without an executor.
    ///
    /// # Errors
    /// As [`Request::try_acquire`].
    pub fn try_acquire_blocking(self) -> Result<Lease, AcquireError> {
        blocking::wait(self.try_acquire())
    }

    /// [`Request::acquire`] for code without an executor.
    ///
    /// # Errors
    /// As [`Request::acquire`].
    pub fn acquire_blocking(self, wait: Wait) -> Result<Lease, AcquireError> {
        blocking::wait(self.acquire(wait))
    }
}

fn draw_waiter(client: &Client) -> Waiter {
    let mut bits = [0; 8];
    client.ctx.entropy.fill(&mut bits);
    Waiter(u64::from_le_bytes(bits))
}
