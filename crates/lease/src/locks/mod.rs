//! The facade: one backend, one thread, many leases. `lease.md` 2.1.

mod builder;
mod in_process;
mod thread;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::{Facts, Finding, Names, Verdict};
use crate::client::{Client, OwnerInfo};
use crate::inbox::{Command, Where};
use crate::lease::{Lease, LeaseTicket};
use crate::notice::NoticeStream;
use crate::request::{Group, Request, name_of};
use crate::{
    AcquireError, BackendError, Drained, FencingToken, InvalidName, Name, ReleaseOutcome, Stats,
    blocking,
};

pub use builder::Builder;
pub use thread::Doctor;

/// Leases on one backend. Clones share its thread, which ends when the last clone, request and lease
/// are gone, or with [`Locks::shutdown`].
///
/// ```
/// # use std::time::Duration;
/// # use soldonce_lease::{AcquireResultExt, Locks};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::memory().connect().await?;
/// let seats = locks.group("hall").names(["A-1", "A-2"]).try_acquire().await?;
/// let refused = locks.group("hall").name("A-2").try_acquire().await;
/// assert!(refused.granted()?.is_none());
/// seats.release().await?;
/// locks.shutdown(Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Locks {
    client: Arc<Client>,
}

/// What the doctor found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoctorReport {
    /// All checks.
    pub findings: Vec<Finding>,
}

impl DoctorReport {
    /// The worst verdict; `Ok` if nothing was checked.
    pub fn worst(&self) -> Verdict {
        let verdicts = self.findings.iter().map(|finding| finding.verdict);
        verdicts.max().unwrap_or(Verdict::Ok)
    }
}

impl Locks {
    /// A single name.
    pub fn lease(&self, name: impl TryInto<Name, Error: Into<InvalidName>>) -> Request {
        Request::new(self.client.clone(), name_of(name).map(Names::one))
    }

    /// A group, whose names can be leased together. A plain [`Locks::lease`] of the same name is
    /// another lease.
    pub fn group(&self, group: impl TryInto<Name, Error: Into<InvalidName>>) -> Group {
        Group::new(self.client.clone(), name_of(group))
    }

    /// Takes up a lease that was detached: verifies and renews it in one step.
    ///
    /// # Errors
    /// [`AcquireError::Refused`] if the grant of the ticket has ended.
    ///
    /// # Cancel safety
    /// Dropped after sending, the renewal may have happened; the ticket stays good until its ttl.
    pub async fn resume(&self, ticket: LeaseTicket) -> Result<Lease, AcquireError> {
        let grant = self.client.resume(ticket.into_terms()).await?;
        Ok(Lease::of(grant, self.client.clone()))
    }

    /// Who holds `name`, if anyone does.
    ///
    /// # Errors
    /// When the backend does not answer.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn inspect(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        self.client.inspect(Where::alone(name)).await
    }

    /// Ends another's lease on `name`, if its token is still `expect`; `why` is logged. The holder
    /// learns it at its next renewal: a target that does not compare tokens is not safe from it.
    ///
    /// ```
    /// # use soldonce_lease::{Locks, Name, ReleaseOutcome};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect_blocking()?;
    /// let stuck = locks.lease("nightly").meta("host", "db-1").try_acquire_blocking()?;
    /// let name = Name::new("nightly")?;
    /// // What an operator sees, and then breaks: this grant and no later one.
    /// let holder = locks.inspect_blocking(&name)?.expect("it is held");
    /// assert_eq!(holder.meta, [("host".to_owned(), "db-1".to_owned())]);
    /// let broken = locks.force_release_blocking(&name, holder.token, "the host is gone")?;
    /// assert_eq!(broken, ReleaseOutcome::Released);
    /// assert!(stuck.verify_blocking().is_err(), "the holder learns it when it asks");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the backend does not answer; with `Unknown` it may have been released.
    ///
    /// # Cancel safety
    /// Dropped after sending, the release may have happened.
    pub async fn force_release(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        let place = Where::alone(name);
        self.client.force_release(place, expect, why).await
    }

    /// Looks for settings of the backend that endanger leases.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn doctor(&self) -> DoctorReport {
        let (to, answer) = oneshot::channel();
        self.client.send(Command::Doctor(to));
        DoctorReport {
            findings: answer.await.unwrap_or_default(),
        }
    }

    /// What happens from now on.
    ///
    /// ```
    /// # use soldonce_lease::{Locks, NoticeKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect().await?;
    /// let mut notices = locks.notices();
    /// let lease = locks.lease("job").try_acquire().await?;
    /// let told = notices.next().await.expect("the locks live");
    /// assert_eq!((told.what, told.token), (NoticeKind::Acquired, lease.token()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn notices(&self) -> NoticeStream {
        self.client.ctx.notices.listen()
    }

    /// Counters since the start.
    ///
    /// ```
    /// # use soldonce_lease::Locks;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect_blocking()?;
    /// let lease = locks.lease("job").try_acquire_blocking()?;
    /// locks.lease("job").try_acquire_blocking().expect_err("it is held");
    /// lease.release_blocking()?;
    /// let stats = locks.stats();
    /// assert_eq!((stats.acquired, stats.refused, stats.released), (1, 1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        self.client.ctx.counters.read()
    }

    /// What the backend can do.
    pub fn facts(&self) -> Facts {
        self.client.ctx.facts
    }

    /// Releases all live leases, waits for all releases under way, at most `within`, and ends the
    /// thread. Later callers get `Closed`.
    ///
    /// An acquire that never got its answer is released a second time after half its ttl, for a
    /// command that was still in a buffer. If that time comes `within`, it is waited for, else it
    /// counts as left to the ttl.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::Locks;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect_blocking()?;
    /// let lease = locks.lease("job").try_acquire_blocking()?;
    /// let drained = locks.shutdown_blocking(Duration::from_secs(1));
    /// assert_eq!((drained.released, drained.left_to_ttl), (1, 0));
    /// assert!(lease.live_token().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// The shutdown goes on.
    pub async fn shutdown(self, within: Duration) -> Drained {
        let (to, answer) = oneshot::channel();
        self.client.send(Command::Shutdown(within, to));
        let drained = answer.await.unwrap_or_default();
        self.client.join();
        drained
    }

    /// [`Locks::resume`] for code without an executor.
    ///
    /// # Errors
    /// As [`Locks::resume`].
    pub fn resume_blocking(&self, ticket: LeaseTicket) -> Result<Lease, AcquireError> {
        blocking::wait(self.resume(ticket))
    }

    /// [`Locks::inspect`] for code without an executor.
    ///
    /// # Errors
    /// As [`Locks::inspect`].
    pub fn inspect_blocking(&self, name: &Name) -> Result<Option<OwnerInfo>, BackendError> {
        blocking::wait(self.inspect(name))
    }

    /// [`Locks::force_release`] for code without an executor.
    ///
    /// # Errors
    /// As [`Locks::force_release`].
    pub fn force_release_blocking(
        &self,
        name: &Name,
        expect: FencingToken,
        why: &str,
    ) -> Result<ReleaseOutcome, BackendError> {
        blocking::wait(self.force_release(name, expect, why))
    }

    /// [`Locks::doctor`] for code without an executor.
    pub fn doctor_blocking(&self) -> DoctorReport {
        blocking::wait(self.doctor())
    }

    /// [`Locks::shutdown`] for code without an executor.
    pub fn shutdown_blocking(self, within: Duration) -> Drained {
        blocking::wait(self.shutdown(within))
    }
}
