//! The ways to acquire: once, without a time limit, and within a time limit.

use std::sync::Arc;
use std::time::Duration;

use super::Request;
use crate::backend::{Acquire, Durability, Facts, Waiter};
use crate::client::Client;
use crate::error::NotGranted;
use crate::grant::Whereabouts;
use crate::inbox::{AcquireParams, Wait};
use crate::lease::Lease;
use crate::limits::{CAP_MAX, NAMES_MAX, REPLICAS_WAIT_MAX};
use crate::{AcquireError, InvalidRequest, Owner, Refusal, SystemEntropy};

const MS: Duration = Duration::from_millis(1);

impl Request {
    /// Asks once, and a second time if the first got no answer. `None` if another owner holds it.
    ///
    /// # Errors
    /// [`AcquireError`]; never `QueueFull`.
    ///
    /// # Cancel safety
    /// A dropped future leaves nothing behind: what it may have taken is released in the background, and its
    /// place in every queue is given up.
    pub async fn try_acquire(self) -> Result<Option<Lease>, AcquireError> {
        Ok(self.ask(Wait::No).await?.ok())
    }

    /// Asks until it is granted, without a time limit.
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Cancel safety
    /// As [`Request::try_acquire`].
    pub async fn acquire(self) -> Result<Lease, AcquireError> {
        loop {
            if let Ok(lease) = self.clone().ask(Wait::Forever).await? {
                return Ok(lease);
            }
        }
    }

    /// Asks until it is granted, at most for `span`; zero asks as [`Request::try_acquire`] does. `None` if another
    /// owner held it all that time.
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Cancel safety
    /// As [`Request::try_acquire`].
    pub async fn acquire_within(self, span: Duration) -> Result<Option<Lease>, AcquireError> {
        Ok(self.ask(Wait::up_to(span)).await?.ok())
    }

    /// Acquires as [`Request::acquire_within`] does, but returns the refusal, which lists every
    /// conflict, in place of `None`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use soldonce_lease::Leases;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let family = leases.group("hall", ["A-1", "A-2", "A-3"]).acquire().await?;
    /// let others = leases.group("hall", ["A-3", "A-4"]);
    /// match others.acquire_or_refusal(Duration::ZERO).await? {
    ///     Ok(_) => unreachable!("A-3 is held"),
    ///     Err(refusal) => assert_eq!(refusal.conflicts[0].name.as_str(), "A-3"),
    /// }
    /// # drop(family);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AcquireError`].
    ///
    /// # Cancel safety
    /// As [`Request::try_acquire`].
    pub async fn acquire_or_refusal(
        self,
        span: Duration,
    ) -> Result<Result<Lease, Refusal>, AcquireError> {
        self.ask(Wait::up_to(span)).await
    }

    async fn ask(self, wait: Wait) -> Result<Result<Lease, Refusal>, AcquireError> {
        let (client, params) = self.into_params(wait, None)?;
        match client.acquire(params).await {
            Ok(grant) => Ok(Ok(Lease::of(grant, client))),
            Err(NotGranted::Refused(refusal)) => Ok(Err(refusal)),
            Err(NotGranted::Failed(error)) => Err(error),
        }
    }

    /// Builds the message for a holder in this process, or for the owner whose holder is elsewhere. Returns it
    /// with the client that sends it.
    pub(super) fn into_params(
        self,
        wait: Wait,
        elsewhere: Option<Owner>,
    ) -> Result<(Arc<Client>, AcquireParams), InvalidRequest> {
        let facts = self.client.ctx.facts;
        check(&self, &facts)?;
        let names = self.names?;
        if self.fair && (!facts.fair || names.group().is_some()) {
            return Err(unsupported(&facts, "queue waiters in order"));
        }
        let waiter = || Waiter(self.client.ctx.draw());
        let command = Acquire {
            names,
            owner: elsewhere.unwrap_or_else(|| Owner::draw(&SystemEntropy)),
            ttl: self.ttl,
            cap: self.max_lifetime,
            floor: self.floor,
            // Only a fair queue keeps places.
            waiter: (self.fair && wait != Wait::No).then(waiter),
            fair: self.fair,
            meta: self.meta?,
            durability: self.durability,
        };
        let params = AcquireParams {
            command,
            holder: elsewhere.map_or(Whereabouts::Here, |_| Whereabouts::Elsewhere),
            wait,
            safety: self.safety,
            manual: self.manual,
        };
        Ok((self.client, params))
    }
}

/// Fails if no backend of these facts can grant what is asked for. `lease.md` 3, LT4.
fn check(request: &Request, facts: &Facts) -> Result<(), InvalidRequest> {
    let names = request.names.as_ref().map_err(InvalidRequest::clone)?;
    let got = names.as_slice().len();
    if got == 0 || got > NAMES_MAX {
        let most = NAMES_MAX;
        return Err(InvalidRequest::Names { got, most });
    }
    let (ttl, safety) = (request.ttl, request.safety);
    let (least, most) = (request.client.ttl_min(), facts.ttl_max);
    if ttl < least || ttl > most {
        return Err(InvalidRequest::Ttl { ttl, least, most });
    }
    let cap = request.max_lifetime;
    if let Some(cap) = cap.filter(|cap| *cap < ttl || *cap > CAP_MAX) {
        return Err(InvalidRequest::MaxLifetime(cap));
    }
    // Renewals need the other half.
    if safety >= ttl / 2 {
        return Err(InvalidRequest::Safety(safety));
    }
    match request.durability {
        // Redis takes 0 ms for no limit.
        Durability::Replicas { within, .. } if within < MS || within > REPLICAS_WAIT_MAX => {
            Err(InvalidRequest::Replicas(within))
        }
        Durability::Primary | Durability::Replicas { .. } => Ok(()),
    }
}

pub(super) fn unsupported(facts: &Facts, what: &'static str) -> InvalidRequest {
    InvalidRequest::Unsupported {
        backend: facts.kind.as_str(),
        what,
    }
}
