//! Views of a lease that outlive or accompany its guard and cannot release it.

use std::sync::Arc;
use std::time::Duration;

use crate::grant::{Grant, LeaseState};
use crate::{FencingToken, LostReason, TokenError, blocking};

pub(super) fn live_token(grant: &Grant) -> Result<FencingToken, TokenError> {
    match grant.state() {
        LeaseState::Lost(reason) => Err(TokenError::Lost(reason)),
        LeaseState::Released => Err(TokenError::Released),
        LeaseState::Held { .. } | LeaseState::Suspect { .. } => {
            token(grant).ok_or(TokenError::NoFencing)
        }
    }
}

pub(super) fn token(grant: &Grant) -> Option<FencingToken> {
    grant.terms.fenced.then_some(grant.terms.token)
}

/// Reads a lease; pass it to code that works under the lease.
///
/// ```
/// # use soldonce_lease::{LeaseRef, Locks, TokenError};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// fn write(lease: &LeaseRef) -> Result<u64, TokenError> {
///     Ok(lease.live_token()?.number()) // fails once the lease is lost or released
/// }
///
/// let locks = Locks::memory().connect_blocking()?;
/// let lease = locks.lease("job").try_acquire_blocking()?;
/// let reader = lease.handle();
/// write(&reader)?;
/// lease.release_blocking()?;
/// assert_eq!(write(&reader), Err(TokenError::Released));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaseRef {
    grant: Arc<Grant>,
}

impl LeaseRef {
    pub(super) fn new(grant: Arc<Grant>) -> Self {
        Self { grant }
    }

    /// As [`super::Lease::live_token`].
    ///
    /// # Errors
    /// As [`super::Lease::live_token`].
    pub fn live_token(&self) -> Result<FencingToken, TokenError> {
        live_token(&self.grant)
    }

    /// As [`super::Lease::token`].
    pub fn token(&self) -> Option<FencingToken> {
        token(&self.grant)
    }

    /// As [`super::Lease::state`].
    pub fn state(&self) -> LeaseState {
        self.grant.state()
    }

    /// As [`super::Lease::remaining`].
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// As [`super::Lease::lost`].
    pub fn lost(&self) -> LostSignal {
        LostSignal::new(self.grant.clone())
    }

    /// As [`super::Lease::watch`].
    pub fn watch(&self) -> StateWatch {
        StateWatch::new(self.grant.clone())
    }
}

impl std::fmt::Debug for LeaseRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("names", &self.grant.terms.names)
            .field("token", &self.token())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Tells that a lease is lost: at its deadline at the latest, even if the backend hangs, and at once if
/// the lease thread ends by a panic.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use soldonce_lease::{Locks, LostReason, ManualClock, Renew};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let clock = ManualClock::at(0);
/// let locks = Locks::memory().clock(Arc::new(clock.clone())).connect().await?;
/// let ttl = Duration::from_secs(10);
/// let lease = locks.lease("leader").ttl(ttl).renew(Renew::Manual).try_acquire().await?;
/// let lost = lease.lost(); // may be moved into a task of its own
/// assert!(!lost.is_lost());
/// clock.advance(ttl); // no renewal runs
/// assert_eq!(lost.wait().await, LostReason::Deadline);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LostSignal {
    grant: Arc<Grant>,
}

impl std::fmt::Debug for LostSignal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LostSignal").field(&self.reason()).finish()
    }
}

impl LostSignal {
    pub(super) fn new(grant: Arc<Grant>) -> Self {
        Self { grant }
    }

    /// Waits for the loss and answers its reason. Never ends if the lease is released.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn wait(&self) -> LostReason {
        let lost = |state| match state {
            LeaseState::Lost(reason) => Some(reason),
            LeaseState::Held { .. } | LeaseState::Suspect { .. } | LeaseState::Released => None,
        };
        self.grant.wait_for(lost).await
    }

    /// [`LostSignal::wait`] for code without an executor.
    pub fn wait_blocking(&self) -> LostReason {
        blocking::wait(self.wait())
    }

    /// Whether it is lost now.
    pub fn is_lost(&self) -> bool {
        self.reason().is_some()
    }

    /// Why it is lost, if it is.
    pub fn reason(&self) -> Option<LostReason> {
        self.grant.lost()
    }

    /// A token that is cancelled by the loss.
    #[cfg(feature = "tokio-util")]
    pub fn cancellation_token(&self) -> tokio_util::sync::CancellationToken {
        self.grant.cancellation()
    }
}

/// Follows the state of a lease.
///
/// ```
/// # use soldonce_lease::{LeaseState, Locks};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::memory().connect().await?;
/// let lease = locks.lease("job").try_acquire().await?;
/// let mut watch = lease.watch();
/// lease.release().await?;
/// assert_eq!(watch.changed().await, Some(LeaseState::Released));
/// assert_eq!(watch.changed().await, None); // an end is final
/// # Ok(())
/// # }
/// ```
pub struct StateWatch {
    grant: Arc<Grant>,
    seen: LeaseState,
}

impl std::fmt::Debug for StateWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateWatch").field(&self.seen).finish()
    }
}

impl StateWatch {
    pub(super) fn new(grant: Arc<Grant>) -> Self {
        let seen = grant.state();
        Self { grant, seen }
    }

    /// The state now.
    pub fn state(&self) -> LeaseState {
        self.grant.state()
    }

    /// [`StateWatch::changed`] for code without an executor.
    pub fn changed_blocking(&mut self) -> Option<LeaseState> {
        blocking::wait(self.changed())
    }

    /// Waits until the state is another than the last one answered, time left aside, and answers it;
    /// `None` after the end has been answered.
    ///
    /// # Cancel safety
    /// A dropped call loses no change, but changes back and forth count as none.
    pub async fn changed(&mut self) -> Option<LeaseState> {
        if !self.seen.is_live() {
            return None;
        }
        let seen = self.seen;
        let other = |state: LeaseState| (!state.same_kind(seen)).then_some(state);
        self.seen = self.grant.wait_for(other).await;
        Some(self.seen)
    }
}
