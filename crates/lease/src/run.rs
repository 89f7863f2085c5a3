//! Work under a lease: the body runs only while the lease is ours. `lease.md` 2.2.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::grant::LeaseState;
use crate::inbox::Command;
use crate::lease::{Lease, LeaseRef};
use crate::request::Request;
use crate::{AcquireError, LostReason, RunError, Wait, blocking};

impl Request {
    /// Acquires, runs `body`, releases. The body is dropped at its next await once the lease is
    /// lost; code that does not await cannot be stopped, so its writes need the token.
    ///
    /// A body that finished is never discarded: should the lease have been lost meanwhile, its
    /// output is in the error. A release that fails is a notice, not the result.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::{Locks, RunError, TokenError, Wait};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect().await?;
    /// let request = locks.lease("report:2026").ttl(Duration::from_secs(10));
    /// let run = request.run(Wait::UpTo(Duration::from_secs(3)), async |lease| {
    ///     let token = lease.live_token()?;
    ///     Ok::<_, TokenError>(token.number())
    /// });
    /// assert_eq!(run.await?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::NotAcquired`] before the body, `Lost` during it, `Body` with its own error.
    ///
    /// # Cancel safety
    /// Dropping it drops the body and releases the lease.
    pub async fn run<T, E, F, Fut>(self, wait: Wait, body: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let lease = self.acquire(wait).await.map_err(RunError::NotAcquired)?;
        let body = std::pin::pin!(body(lease.handle()));
        let output = until_lost(&lease, body).await.ok();
        conclude(lease, output).await
    }

    /// As [`Request::run`], but the body gets `grace` after the loss to end by itself: it sees the
    /// loss by [`LeaseRef::lost`].
    ///
    /// # Errors
    /// As [`Request::run`].
    ///
    /// # Cancel safety
    /// As [`Request::run`].
    pub async fn run_cooperative<T, E, F, Fut>(
        self,
        wait: Wait,
        grace: Duration,
        body: F,
    ) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let lease = self.acquire(wait).await.map_err(RunError::NotAcquired)?;
        let mut body = std::pin::pin!(body(lease.handle()));
        let output = match until_lost(&lease, body.as_mut()).await {
            Ok(output) => Some(output),
            Err(_) => within_grace(&lease, grace, body).await,
        };
        conclude(lease, output).await
    }

    /// [`Request::run_cooperative`] for code without an executor: the body is polled on this thread,
    /// which sleeps while the body waits.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::{Locks, Wait};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Locks::memory().connect_blocking()?;
    /// let grace = Duration::from_secs(1);
    /// let run = locks.lease("import").run_cooperative_blocking(Wait::No, grace, async |lease| {
    ///     let lost = lease.lost();
    ///     let mut rows = 0;
    ///     while rows < 100 && !lost.is_lost() {
    ///         rows += 1; // one step, which takes less than the grace
    ///     }
    ///     Ok::<_, std::io::Error>(rows)
    /// });
    /// assert_eq!(run?, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Request::run`].
    pub fn run_cooperative_blocking<T, E, F, Fut>(
        self,
        wait: Wait,
        grace: Duration,
        body: F,
    ) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        blocking::wait(self.run_cooperative(wait, grace, body))
    }

    /// [`Request::run`] for code without an executor. Nothing stops the body when the lease is lost:
    /// it has to look.
    ///
    /// # Errors
    /// As [`Request::run`]; `Lost` always has the body's output.
    pub fn run_blocking<T, E, F>(self, wait: Wait, body: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Result<T, E>,
    {
        let lease = self.acquire_blocking(wait).map_err(RunError::NotAcquired)?;
        let output = body(lease.handle());
        blocking::wait(conclude(lease, Some(output)))
    }
}

/// The body's output, or the reason if the lease is lost before. The body is polled first: output
/// that is there is taken.
async fn until_lost<T>(
    lease: &Lease,
    body: Pin<&mut impl Future<Output = T>>,
) -> Result<T, LostReason> {
    let lost = lease.lost();
    tokio::select! {
        biased;
        output = body => Ok(output),
        reason = lost.wait() => Err(reason),
    }
}

async fn within_grace<T>(
    lease: &Lease,
    grace: Duration,
    body: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let client = lease.client();
    let (alarm, rings) = oneshot::channel();
    client.send(Command::WakeAt(client.ctx.now().plus(grace), alarm));
    tokio::select! {
        biased;
        output = body => Some(output),
        // Without the lease thread nothing keeps time, and the grace is over.
        _ = rings => None,
    }
}

/// Releases, and puts output and loss together.
async fn conclude<T, E>(lease: Lease, output: Option<Result<T, E>>) -> Result<T, RunError<T, E>> {
    let reason = match lease.state() {
        LeaseState::Lost(reason) => Some(reason),
        LeaseState::Held { .. } | LeaseState::Suspect { .. } | LeaseState::Released => None,
    };
    match (reason, output) {
        (None, Some(output)) => {
            // A release that did not settle is told as a notice, and tried on.
            lease.release().await.ok();
            output.map_err(RunError::Body)
        }
        (Some(reason), output) => Err(RunError::Lost { reason, output }),
        // The thread has ended and taken the lease with it.
        (None, None) => Err(RunError::Lost {
            reason: LostReason::Gone,
            output: None,
        }),
    }
}

/// For callers who prefer an option.
///
/// ```
/// # use soldonce_lease::{AcquireResultExt, Locks};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::memory().connect_blocking()?;
/// let mine = locks.lease("job").try_acquire_blocking().granted()?;
/// assert!(mine.is_some());
/// assert!(locks.lease("job").try_acquire_blocking().granted()?.is_none());
/// # Ok(())
/// # }
/// ```
pub trait AcquireResultExt<T> {
    /// `Ok(None)` if another holds it, however long we waited.
    ///
    /// # Errors
    /// All but `Refused` and `TimedOut`.
    fn granted(self) -> Result<Option<T>, AcquireError>;
}

impl<T> AcquireResultExt<T> for Result<T, AcquireError> {
    fn granted(self) -> Result<Option<T>, AcquireError> {
        match self {
            Ok(lease) => Ok(Some(lease)),
            Err(AcquireError::Refused(_) | AcquireError::TimedOut { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
