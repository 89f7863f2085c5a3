//! Grants to holders in other processes, which renew and release them by asking. `lease.md` 2.5,
//! `docs/decisions/0262`.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::Request;
use super::acquire::unsupported;
use crate::client::Client;
use crate::error::NotGranted;
use crate::grant::{Grant, LeaseTicket, Whereabouts};
use crate::inbox::{Command, Wait};
use crate::{
    AcquireError, FencingToken, InvalidRequest, LostReason, Owner, Refusal, ReleaseOutcome,
    RenewError, Unsettled,
};

/// A grant whose holder is in another process. Nothing renews it but [`RemoteGrant::renew`], and
/// dropping it releases nothing: all that is known of it is what the holder says, so any process
/// may create one.
///
/// ```
/// # use std::time::Duration;
/// # use soldonce_lease::{Leases, Owner, SystemEntropy};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let leases = Leases::memory().connect().await?;
/// let report = leases.lease("report").ttl(Duration::from_secs(30));
/// // A request came in whose sender proves that it is this owner.
/// let owner = Owner::draw(&SystemEntropy);
/// let ask = || report.clone().grant_to(owner, Duration::ZERO);
/// let token = ask().await?.expect("it is free").token();
/// // It came again, for its answer was lost.
/// assert_eq!(ask().await?.expect("it is the same owner").token(), token);
/// // Later requests name the token.
/// let granted = report.clone().granted_to(owner, token)?;
/// assert!(granted.renew().await? > Duration::from_secs(25));
/// granted.release().await?;
/// # Ok(())
/// # }
/// ```
pub struct RemoteGrant {
    client: Arc<Client>,
    grant: Arc<Grant>,
}

impl std::fmt::Debug for RemoteGrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteGrant")
            .field("names", &self.grant.terms.names)
            .field("token", &self.grant.terms.token)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// Grants the names to `owner`, whose holder is in another process, or waits for them at most
    /// for `span`; zero asks once. The same owner is granted the same again, with the same token,
    /// so a holder that got no answer asks again. An owner is for one set of names.
    ///
    /// # Errors
    /// As [`Request::acquire_or_refusal`]. `Invalid` also for [`Request::fair`], whose places belong to this process.
    ///
    /// # Cancel safety
    /// A dropped future may leave a grant, which ends with its ttl or when its holder releases it: a delete in
    /// the background could end what the same owner was granted meanwhile.
    pub async fn grant_to(
        self,
        owner: Owner,
        span: Duration,
    ) -> Result<Result<RemoteGrant, Refusal>, AcquireError> {
        let (client, params) = self.into_params(Wait::up_to(span), Some(owner))?;
        if params.command.fair {
            let what = "queue a holder elsewhere";
            return Err(unsupported(&client.ctx.facts, what).into());
        }
        match client.acquire(params).await {
            Ok(grant) => Ok(Ok(RemoteGrant { client, grant })),
            Err(NotGranted::Refused(refusal)) => Ok(Err(refusal)),
            Err(NotGranted::Failed(error)) => Err(error),
        }
    }

    /// Builds the grant that `owner` claims to have. Sends nothing: [`RemoteGrant::renew`] verifies
    /// the claim.
    ///
    /// # Errors
    /// [`InvalidRequest`] when no such grant can exist.
    pub fn granted_to(
        self,
        owner: Owner,
        token: FencingToken,
    ) -> Result<RemoteGrant, InvalidRequest> {
        let (client, params) = self.into_params(Wait::No, Some(owner))?;
        let command = params.command;
        if command.names.is_any() {
            let what = "tell which of the names was granted: ask for that one";
            return Err(unsupported(&client.ctx.facts, what));
        }
        let claim = LeaseTicket {
            names: command.names,
            owner,
            token,
            ttl: command.ttl,
            safety: params.safety,
            manual: true,
            endless: false,
        };
        let grant = Arc::new(client.ctx.claimed(claim, Whereabouts::Elsewhere));
        Ok(RemoteGrant { client, grant })
    }
}

impl RemoteGrant {
    /// Returns the token of the grant.
    pub fn token(&self) -> FencingToken {
        self.grant.terms.token
    }

    /// Returns how long the holder may rely on it: from [`RemoteGrant::waited`] after it asked, or
    /// from when it asked for the last renewal. Shorter by a margin than what the backend keeps
    /// (LT3).
    pub fn remaining(&self) -> Duration {
        self.grant.deadline().since(self.grant.sent())
    }

    /// Returns how long others held the names before they were granted.
    pub fn waited(&self) -> Duration {
        self.grant.sent().since(self.grant.terms.born)
    }

    /// Tells whether the owner held the names before it asked.
    pub fn is_again(&self) -> bool {
        self.grant.terms.again
    }

    /// Renews it for the ttl of the request, never beyond its cap. Returns how long its holder may
    /// rely on it, counted from when it asked.
    ///
    /// # Errors
    /// [`RenewError::Lost`] when the backend has no such grant any more.
    ///
    /// # Cancel safety
    /// Dropped, it may have been renewed.
    pub async fn renew(&self) -> Result<Duration, RenewError> {
        let (to, answer) = oneshot::channel();
        let renewal = Command::Renew(self.grant.clone(), self.grant.ttl(), to);
        self.client.send(renewal);
        // Without an answer the thread has ended, and whether it renewed is unknown.
        match answer.await.unwrap_or(Err(RenewError::Unknown)) {
            // The answer came after the time that was asked for.
            Err(RenewError::Lost(LostReason::Deadline)) => Err(RenewError::Unknown),
            Err(error) => Err(error),
            Ok(_) => Ok(self.remaining()),
        }
    }

    /// Releases it. Harmless after its end: that it had ended is an outcome, not an error.
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
}
