//! Work under a lease: the body runs only while the lease is held. `lease.md` 2.2.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::grant::LeaseState;
use crate::inbox::Command;
use crate::lease::{Lease, LeaseRef};
use crate::{LostReason, RunError};

impl Lease {
    /// Runs `body` and releases. The body is dropped at its next await once the lease is lost; code that does
    /// not await cannot be stopped, so its writes need the token.
    ///
    /// A body that finished is never discarded: should the lease have been lost meanwhile, its
    /// output is in the error. A release that fails is a notice, not the result.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::{Leases, TokenError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("report:2026").acquire().await?;
    /// let run = lease.run(async |lease| {
    ///     let token = lease.token()?;
    ///     Ok::<_, TokenError>(token.number())
    /// });
    /// assert!(run.await? > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RunError::Lost`] if it was lost meanwhile, or given away by [`crate::Leases::shutdown`]; `Body` with the
    /// body's own error.
    ///
    /// # Cancel safety
    /// Dropping it drops the body and releases the lease.
    pub async fn run<T, E, F, Fut>(self, body: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let body = std::pin::pin!(body(self.handle()));
        let output = until_over(&self, body).await;
        conclude(self, output).await
    }

    /// Runs `body` as [`Lease::run`] does, but gives it `grace` after the loss to end by itself: it
    /// sees the loss by [`LeaseRef::lost`].
    ///
    /// # Errors
    /// As [`Lease::run`].
    ///
    /// # Cancel safety
    /// As [`Lease::run`].
    pub async fn run_cooperative<T, E, F, Fut>(
        self,
        grace: Duration,
        body: F,
    ) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(LeaseRef) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let mut body = std::pin::pin!(body(self.handle()));
        let output = match until_over(&self, body.as_mut()).await {
            Some(output) => Some(output),
            None => within_grace(&self, grace, body).await,
        };
        conclude(self, output).await
    }
}

/// Runs the body to its output; `None` if the lease ends before: lost, or given away by a shutdown.
/// The body is polled first: an output that is ready is taken.
async fn until_over<T>(lease: &Lease, body: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    tokio::select! {
        biased;
        output = body => Some(output),
        () = lease.over() => None,
    }
}

async fn within_grace<T>(
    lease: &Lease,
    grace: Duration,
    body: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    let client = &lease.client;
    let (alarm, rings) = oneshot::channel();
    client.send(Command::WakeAt(client.ctx.now().plus(grace), alarm));
    tokio::select! {
        biased;
        output = body => Some(output),
        // Without the lease thread nothing keeps time, and the grace is over.
        _ = rings => None,
    }
}

/// Releases the lease if it is still held, and combines the output with the loss.
async fn conclude<T, E>(lease: Lease, output: Option<Result<T, E>>) -> Result<T, RunError<T, E>> {
    let reason = match lease.state() {
        LeaseState::Lost(reason) => Some(reason),
        // By a shutdown: another may have it.
        LeaseState::Released => Some(LostReason::Gone),
        LeaseState::Held { .. } | LeaseState::Suspect { .. } => None,
    };
    match (reason, output) {
        (None, Some(output)) => {
            // A release without an answer is reported by a notice, and retried.
            lease.release().await.ok();
            output.map_err(RunError::Body)
        }
        (reason, output) => Err(RunError::Lost {
            reason: reason.unwrap_or(LostReason::Gone),
            output,
        }),
    }
}
