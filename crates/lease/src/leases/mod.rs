//! The entry point: one backend, one thread, many leases. `lease.md` 2.1.

mod builder;
mod in_process;
mod thread;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::backend::{Facts, Finding, Names};
use crate::client::Client;
use crate::error::NotGranted;
use crate::grant::LeaseTicket;
use crate::inbox::Command;
use crate::lease::Lease;
use crate::limits::NAMES_MAX;
use crate::notice::NoticeStream;
use crate::request::{Request, name_of};
use crate::worker::Ctx;
use crate::{AcquireError, Drained, Stats};

/// Most readers at the same time: a writer takes the permits of all of them.
const READERS: usize = NAMES_MAX;

pub use builder::Builder;
pub use thread::Doctor;

/// Leases on one backend. Clones share its thread, which ends when the last clone, request and lease
/// are gone, or with [`Leases::shutdown`].
///
/// ```
/// # use std::time::Duration;
/// # use soldonce_lease::Leases;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = Leases::memory().connect().await?;
/// if let Some(lease) = leases.lease("report").try_acquire().await? {
///     lease.release().await?;
/// } // else another holds it
/// leases.shutdown(Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Leases {
    client: Arc<Client>,
}

impl Leases {
    /// Starts a request for a single name. What is wrong with a name or with an option is told by the call that
    /// acquires, as [`AcquireError::Invalid`].
    pub fn lease(&self, name: impl AsRef<str>) -> Request {
        Request::new(self.client.clone(), name_of(name).map(Names::one))
    }

    /// Starts a request for names of a group: all are granted together, with one token, or none.
    /// They exclude every request for any of them in the same group. A plain [`Leases::lease`] of
    /// the same name is another lease.
    ///
    /// ```
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let seats = leases.group("hall", ["A-1", "A-2"]).acquire().await?;
    /// assert!(leases.group("hall", ["A-2"]).try_acquire().await?.is_none());
    /// # drop(seats);
    /// # Ok(())
    /// # }
    /// ```
    pub fn group(
        &self,
        group: impl AsRef<str>,
        names: impl IntoIterator<Item: AsRef<str>>,
    ) -> Request {
        let names = names.into_iter().map(name_of).collect::<Result<_, _>>();
        let names = name_of(group).and_then(|group| Ok(Names::of_group(group, names?)));
        Request::new(self.client.clone(), names)
    }

    /// Starts a request for one of the names of a group, whichever is free;
    /// [`crate::LeaseRef::names`] tells which one was granted. At most 64 names.
    pub fn any_of(
        &self,
        group: impl AsRef<str>,
        names: impl IntoIterator<Item: AsRef<str>>,
    ) -> Request {
        let names = names.into_iter().map(name_of).collect::<Result<_, _>>();
        let names = name_of(group).and_then(|group| Ok(Names::any_of(group, names?)));
        Request::new(self.client.clone(), names)
    }

    /// Starts a request for one of the `count` permits of a semaphore, at most 64. All callers must
    /// give the same count: the highest decides. Each permit is a lease of its own, and its tokens
    /// rise for each permit by itself.
    ///
    /// ```
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let first = leases.permit("api", 2).acquire().await?;
    /// let second = leases.permit("api", 2).acquire().await?;
    /// assert!(leases.permit("api", 2).try_acquire().await?.is_none());
    /// first.release().await?;
    /// assert!(leases.permit("api", 2).try_acquire().await?.is_some());
    /// # drop(second);
    /// # Ok(())
    /// # }
    /// ```
    pub fn permit(&self, semaphore: impl AsRef<str>, count: usize) -> Request {
        self.any_of(semaphore, permits(count))
    }

    /// Starts a request for a read lock that excludes [`Leases::write`]. At most 64 read at once.
    ///
    /// ```
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let readers = [leases.read("doc").acquire().await?, leases.read("doc").acquire().await?];
    /// assert!(leases.write("doc").try_acquire().await?.is_none());
    /// drop(readers);
    /// let writer = leases.write("doc").acquire().await?;
    /// assert!(leases.read("doc").try_acquire().await?.is_none());
    /// # drop(writer);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self, name: impl AsRef<str>) -> Request {
        self.any_of(name, permits(READERS))
    }

    /// Starts a request for the write lock of what [`Leases::read`] reads; it excludes readers and
    /// writers. Readers that keep coming can starve a writer.
    pub fn write(&self, name: impl AsRef<str>) -> Request {
        self.group(name, permits(READERS))
    }

    /// Resumes a lease that was detached: verifies and renews it in one step. `None` if its grant
    /// has ended. Where these leases had resumed it before, that guard is lost.
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Cancel safety
    /// Dropped after sending, the renewal may have happened; the ticket stays good until its ttl.
    pub async fn resume(&self, ticket: LeaseTicket) -> Result<Option<Lease>, AcquireError> {
        match self.client.resume(ticket).await {
            Ok(grant) => Ok(Some(Lease::of(grant, self.client.clone()))),
            Err(NotGranted::Refused(_)) => Ok(None),
            Err(NotGranted::Failed(error)) => Err(error),
        }
    }

    /// Checks the settings of the backend, and returns what each check found: also of those that passed, see
    /// [`Finding::verdict`]. Empty in memory and after the end of these leases.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn doctor(&self) -> Vec<Finding> {
        let examine = |ctx: Arc<Ctx>| async move { ctx.backend.doctor().await };
        self.client.ask(examine).await.unwrap_or_default()
    }

    /// Returns a stream of the notices from now on.
    ///
    /// ```
    /// # use soldonce_lease::{Leases, NoticeKind};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let mut notices = leases.notices();
    /// let lease = leases.lease("job").acquire().await?;
    /// let told = notices.next().await.expect("the leases live");
    /// assert_eq!((told.what, told.token), (NoticeKind::Acquired, lease.token_for_logs()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn notices(&self) -> NoticeStream {
        self.client.ctx.notices.listen()
    }

    /// Reads the counters since the start.
    ///
    /// ```
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("job").acquire().await?;
    /// assert!(leases.lease("job").try_acquire().await?.is_none());
    /// lease.release().await?;
    /// let stats = leases.stats();
    /// assert_eq!((stats.acquired, stats.refused, stats.released), (1, 1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        self.client.ctx.counters.read()
    }

    /// Returns the abilities and bounds of the backend.
    pub fn facts(&self) -> Facts {
        self.client.ctx.facts
    }

    /// Releases all live leases, waits for all releases under way, at most `within`, and ends the
    /// thread. Later callers get [`AcquireError::Closed`].
    ///
    /// An acquire that never got its answer is released a second time after half its ttl, for a
    /// command that was still in a buffer. If that time comes `within`, it is waited for, else it
    /// counts as left to the ttl.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("job").acquire().await?;
    /// let drained = leases.shutdown(Duration::from_secs(1)).await;
    /// assert_eq!((drained.released, drained.left_to_ttl), (1, 0));
    /// assert!(lease.token().is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// The shutdown continues.
    pub async fn shutdown(self, within: Duration) -> Drained {
        let (to, answer) = oneshot::channel();
        self.client.send(Command::Shutdown(within, to));
        let drained = answer.await.unwrap_or_default();
        // Blocks for a moment: the answer is the last act of the thread.
        self.client.join();
        drained
    }
}

/// Lists the names of a semaphore's permits. One more than can be leased together is the most, so
/// that a request for too many is refused as such.
fn permits(count: usize) -> impl Iterator<Item = String> {
    (0..count.min(NAMES_MAX + 1)).map(|number| format!("{number:02}"))
}
