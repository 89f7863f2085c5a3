//! The guard of a lease. `lease.md` 2.1, 2.2.

mod handle;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::client::Client;
use crate::grant::{Grant, LeaseState, LeaseTicket};
use crate::inbox::Command;
use crate::{FencingToken, LostReason, ReleaseOutcome, RenewError, Unsettled};

pub use handle::LeaseRef;

/// A lease that is held: renewed until it is dropped, released or lost. Derefs to [`LeaseRef`].
///
/// It belongs to no thread and no runtime. Dropping it never blocks: the release is queued, and if
/// the process dies, the ttl frees the names. A lease is no proof of being alone; before a write
/// that must not happen twice, take [`LeaseRef::token`] and let the target compare.
///
/// ```
/// # use soldonce_lease::Leases;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = Leases::memory().connect().await?;
/// let lease = leases.lease("report:2026").acquire().await?;
/// let token = lease.token()?;
/// assert!(lease.state().is_live());
/// lease.release().await?;
/// # let _ = token;
/// # Ok(())
/// # }
/// ```
#[must_use = "a lease is released when it is dropped"]
pub struct Lease {
    reader: LeaseRef,
    pub(crate) client: Arc<Client>,
}

impl Deref for Lease {
    type Target = LeaseRef;

    fn deref(&self) -> &LeaseRef {
        &self.reader
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reader.fmt(f)
    }
}

impl Lease {
    pub(crate) fn of(grant: Arc<Grant>, client: Arc<Client>) -> Self {
        let reader = LeaseRef { grant };
        Self { reader, client }
    }

    /// Returns a handle that reads the lease, for other tasks and for code that works under it.
    pub fn handle(&self) -> LeaseRef {
        self.reader.clone()
    }

    /// Returns how many replicas had the grant when it was answered, if
    /// [`crate::Request::replicas`] was asked for.
    pub fn replica_count(&self) -> Option<u32> {
        self.grant.terms.replicas
    }

    /// Renews now, for the ttl asked for last. Returns the time until the new deadline.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("step").manual_renewal().acquire().await?; // 10 s
    /// assert!(lease.renew_for(Duration::from_secs(60)).await? > Duration::from_secs(50));
    /// assert!(lease.renew().await? > Duration::from_secs(50), "60 s from now on");
    /// assert!(lease.verify().await? > Duration::from_secs(50), "a look that changes nothing");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RenewError::Lost`] after the end. `Unknown` and `Unavailable` leave the deadline where it
    /// was.
    ///
    /// # Cancel safety
    /// Dropped after sending, the renewal may have happened.
    pub async fn renew(&self) -> Result<Duration, RenewError> {
        self.ask(self.grant.ttl()).await
    }

    /// Renews now, for `span`, which later renewals ask for too. The span is clamped to the
    /// backend's shortest and longest ttl, and a cap may shorten it. A longer life that the lease
    /// already has stays: only a release ends it earlier. Returns the time until the new deadline.
    ///
    /// # Errors
    /// As [`Lease::renew`].
    ///
    /// # Cancel safety
    /// As [`Lease::renew`].
    pub async fn renew_for(&self, span: Duration) -> Result<Duration, RenewError> {
        let (least, most) = (self.client.ttl_min(), self.client.ctx.facts.ttl_max);
        self.ask(span.max(least).min(most)).await
    }

    /// Asks the backend whether it still holds the grant, and changes nothing. Returns the time
    /// until the deadline.
    ///
    /// # Errors
    /// As [`Lease::renew`].
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn verify(&self) -> Result<Duration, RenewError> {
        self.ask(Duration::ZERO).await
    }

    async fn ask(&self, ttl: Duration) -> Result<Duration, RenewError> {
        match self.grant.state() {
            LeaseState::Lost(reason) => return Err(RenewError::Lost(reason)),
            LeaseState::Released => return Err(RenewError::Lost(LostReason::Gone)),
            LeaseState::Held { .. } | LeaseState::Suspect { .. } => {}
        }
        let (to, answer) = oneshot::channel();
        self.client
            .send(Command::Renew(self.grant.clone(), ttl, to));
        // Without an answer the thread has ended, and all that was held was released.
        let ended = RenewError::Lost(LostReason::Gone);
        answer.await.unwrap_or(Err(ended))
    }

    /// Releases the lease and waits for the backend's answer. Harmless after a loss: that the lease
    /// had ended is an outcome, not an error.
    ///
    /// # Errors
    /// [`Unsettled`] when the backend did not answer twice; the release is retried until the ttl
    /// ends.
    ///
    /// # Cancel safety
    /// The release continues.
    pub async fn release(self) -> Result<ReleaseOutcome, Unsettled> {
        self.client.release(&self.grant).await
    }

    /// Ends the lease as lost because the target of a write has seen the higher token `by`. The
    /// next grant of these names through these leases is above `by`. `lease.md` 4.5.
    ///
    /// ```
    /// # use soldonce_lease::{FencingToken, LeaseState, Leases};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("job").acquire().await?;
    /// // The target refused the write: it has seen this token.
    /// let seen = FencingToken::from_parts(0, 41).expect("a token");
    /// lease.report_overtaken(seen);
    /// assert!(matches!(lease.state(), LeaseState::Lost(_)));
    /// drop(lease);
    /// assert!(leases.lease("job").acquire().await?.token()? > seen);
    /// # Ok(())
    /// # }
    /// ```
    pub fn report_overtaken(&self, by: FencingToken) {
        let ended = self.grant.lose(LostReason::Overtaken { by });
        self.client.ctx.floors.raise(&self.grant.terms.names, by);
        if let Some(reason) = ended {
            self.client
                .send(Command::Overtaken(self.grant.clone(), reason));
        }
    }

    /// Ends the guard without a release: this process stops renewing. The ticket is a secret;
    /// [`crate::Leases::resume`] resumes the lease with it, in any process, before the ttl ends.
    pub fn detach(self) -> LeaseTicket {
        let ticket = LeaseTicket::of(&self.grant);
        if self.grant.give_back() {
            self.client.ctx.unwatch(&self.grant);
        }
        ticket
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // After a loss the thread queues the release; after `release` and `detach` there is none left.
        if self.grant.give_back() {
            self.client.ctx.give_back(self.grant.clone());
        }
    }
}
