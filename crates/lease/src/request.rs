//! What is asked for: names, times and manners of one grant. `lease.md` 2.1.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::{Acquire, Durability, Facts, Kind, Names, Waiter};
use crate::lease::Lease;
use crate::limits::{CAP_MAX, META_BYTES_MAX, TTL_MAX};
use crate::locks::{Door, OwnerInfo};
use crate::worker::{Ask, Command, Recipient, Where};
use crate::{
    AcquireError, BackendError, FencingToken, InvalidName, InvalidRequest, Name, Owner,
    ReleaseOutcome, SystemEntropy, blocking,
};

/// The ttl of a request that names none.
const TTL_DEFAULT: Duration = Duration::from_secs(10);

/// The cap of a request that names none.
const CAP_DEFAULT: Duration = Duration::from_mins(15);

/// Shortest ttl over Redlock: its majority vote takes longer than one answer.
const REDLOCK_TTL_MIN: Duration = Duration::from_secs(2);

/// How long a lease may live with all renewals. The backend enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cap {
    /// So long from the grant; at least the ttl, at most 30 days.
    After(Duration),
    /// For ever. A stuck task then holds the lease until its process ends.
    None,
}

/// How long to wait for a lease that another holds. It has nothing to do with the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Ask, and take no for an answer.
    No,
    /// So long. A question that is under way at the end is waited for, at most the call timeout.
    UpTo(Duration),
    /// Until it is granted or the future is dropped.
    Forever,
}

/// Who renews.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Renew {
    /// The lease thread, every third of the ttl.
    #[default]
    Auto,
    /// The holder, with [`Lease::renew`].
    Manual,
}

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
    door: Arc<Door>,
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
    pub(crate) fn new(door: Arc<Door>, names: Result<Names, InvalidRequest>) -> Self {
        Self {
            door,
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
        let door = self.door.clone();
        let (reply, answer) = oneshot::channel();
        let ask = self.into_ask(wait, reply)?;
        door.send(Command::Acquire(Box::new(ask)));
        answer.await.unwrap_or(Err(AcquireError::Closed))
    }

    fn into_ask(
        self,
        wait: Wait,
        reply: oneshot::Sender<Result<Lease, AcquireError>>,
    ) -> Result<Ask, InvalidRequest> {
        let facts = self.door.facts();
        let ttl_min = self.door.ttl_min();
        let names = self.names?;
        check_names(&names, &facts)?;
        check_ttl(self.ttl, ttl_min)?;
        let cap = check_cap(self.cap, self.ttl)?;
        if self.fair && (!facts.fair || names.group().is_some()) {
            return Err(unsupported(&facts, "queue waiters in order"));
        }
        let waits = self.fair && wait != Wait::No;
        let command = Acquire {
            names,
            owner: Owner::draw(&SystemEntropy),
            ttl: self.ttl,
            cap,
            floor: self.floor,
            // Only a fair queue keeps places.
            waiter: (waits && self.fair).then(|| draw_waiter(&self.door)),
            fair: self.fair,
            meta: self.meta?.into(),
            durability: self.durability,
        };
        Ok(Ask {
            command,
            wait,
            safety: self.safety,
            renew: self.renew,
            to: Recipient {
                reply,
                door: self.door,
            },
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

/// Names that can be leased together in one step.
///
/// ```
/// # use soldonce_lease::{AcquireError, Locks, Name};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let hall = Locks::memory().connect().await?.group("hall");
/// let family = hall.names(["A-1", "A-2", "A-3"]).try_acquire().await?; // all, with one token
/// let Err(AcquireError::Refused(refusal)) = hall.names(["A-3", "A-4"]).try_acquire().await else {
///     panic!("A-3 is held");
/// };
/// assert_eq!(refusal.conflicts[0].name, Name::new("A-3")?);
/// let free = hall.inspect(&Name::new("A-4")?).await?;
/// assert!(free.is_none(), "nothing of a refused group is kept");
/// family.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    door: Arc<Door>,
    group: Result<Name, InvalidRequest>,
}

impl Group {
    pub(crate) fn new(door: Arc<Door>, group: Result<Name, InvalidRequest>) -> Self {
        Self { door, group }
    }

    /// One name of the group.
    pub fn name(&self, name: impl TryInto<Name, Error: Into<InvalidName>>) -> Request {
        self.names([name])
    }

    /// Several names: all are granted together, with one token, or none.
    pub fn names<N>(&self, names: impl IntoIterator<Item = N>) -> Request
    where
        N: TryInto<Name, Error: Into<InvalidName>>,
    {
        let names = names.into_iter().map(name_of).collect::<Result<_, _>>();
        let names = self
            .group
            .clone()
            .and_then(|group| names.map(|names: Vec<Name>| Names::of_group(group, names)));
        Request::new(self.door.clone(), names)
    }

    /// As [`crate::Locks::inspect`], for a name of the group.
    ///
    /// # Errors
    /// As [`crate::Locks::inspect`].
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn inspect(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        self.door.inspect(self.place(name)?).await
    }

    /// As [`crate::Locks::force_release`], for a name of the group.
    ///
    /// # Errors
    /// As [`crate::Locks::force_release`].
    ///
    /// # Cancel safety
    /// As [`crate::Locks::force_release`].
    pub async fn force_release(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        self.door
            .force_release(self.place(name)?, expect, why)
            .await
    }

    /// [`Group::inspect`] for code without an executor.
    ///
    /// # Errors
    /// As [`Group::inspect`].
    pub fn inspect_blocking(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        blocking::wait(self.inspect(name))
    }

    /// [`Group::force_release`] for code without an executor.
    ///
    /// # Errors
    /// As [`Group::force_release`].
    pub fn force_release_blocking(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        blocking::wait(self.force_release(name, expect, why))
    }

    fn place(&self, name: &Name) -> Result<Where, BackendError> {
        let group = self.group.clone();
        let group = group.map_err(|error| BackendError::Config(error.to_string()))?;
        Ok(Where {
            group: Some(group),
            name: name.clone(),
        })
    }
}

pub(crate) fn name_of(
    name: impl TryInto<Name, Error: Into<InvalidName>>,
) -> Result<Name, InvalidRequest> {
    name.try_into()
        .map_err(|error| InvalidRequest::Name(error.into()))
}

fn check_names(names: &Names, facts: &Facts) -> Result<(), InvalidRequest> {
    let (got, most) = (names.as_slice().len(), facts.names_max);
    if got == 0 || got > most {
        return Err(InvalidRequest::Names { got, most });
    }
    Ok(())
}

fn check_ttl(ttl: Duration, least: Duration) -> Result<(), InvalidRequest> {
    let most = TTL_MAX;
    if ttl < least || ttl > most {
        return Err(InvalidRequest::Ttl { ttl, least, most });
    }
    Ok(())
}

fn check_cap(cap: Option<Cap>, ttl: Duration) -> Result<Option<Duration>, InvalidRequest> {
    match cap {
        None => Ok(Some(CAP_DEFAULT.max(ttl))),
        Some(Cap::None) => Ok(None),
        Some(Cap::After(cap)) if cap < ttl || cap > CAP_MAX => Err(InvalidRequest::Cap(cap)),
        Some(Cap::After(cap)) => Ok(Some(cap)),
    }
}

/// Shortest ttl of a backend.
pub(crate) fn ttl_min(facts: &Facts) -> Duration {
    match facts.kind {
        Kind::Redlock => facts.ttl_min.max(REDLOCK_TTL_MIN),
        Kind::Memory | Kind::Redis | Kind::Cluster | Kind::Postgres | Kind::Other(_) => {
            facts.ttl_min
        }
    }
}

fn unsupported(facts: &Facts, what: &'static str) -> InvalidRequest {
    InvalidRequest::Unsupported {
        backend: facts.kind.as_str(),
        what,
    }
}

fn draw_waiter(door: &Door) -> Waiter {
    let mut bits = [0; 8];
    door.entropy().fill(&mut bits);
    Waiter(u64::from_le_bytes(bits))
}
