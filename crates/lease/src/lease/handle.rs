//! The read side of a lease, for its holder and for code that works under it.

use std::sync::Arc;
use std::time::Duration;

use crate::grant::{Grant, LeaseState};
use crate::{FencingToken, LostReason, Name, TokenError};

/// Reads a lease and cannot release it. Pass it to code that works under the lease; it may outlive it.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use soldonce_lease::{LeaseRef, Leases, LostReason, ManualClock, TokenError};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// fn write(lease: &LeaseRef) -> Result<u64, TokenError> {
///     Ok(lease.token()?.number()) // fails once the lease is lost or released
/// }
///
/// # let clock = ManualClock::at(0);
/// let leases = Leases::memory().clock(Arc::new(clock.clone())).connect().await?;
/// let lease = leases.lease("leader").manual_renewal().acquire().await?; // 10 s
/// let reader = lease.handle(); // may be moved into a task of its own
/// write(&reader)?;
/// clock.advance(Duration::from_secs(10)); // no renewal runs
/// assert_eq!(reader.lost().await, LostReason::Deadline);
/// assert_eq!(write(&reader), Err(TokenError::Lost(LostReason::Deadline)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaseRef {
    pub(super) grant: Arc<Grant>,
}

impl LeaseRef {
    /// Returns the token if the lease is live now. Call it right before a write.
    ///
    /// # Errors
    /// [`TokenError::Lost`] or `Released` after the end, `NoFencing` if these leases give no tokens.
    pub fn token(&self) -> Result<FencingToken, TokenError> {
        match self.grant.state() {
            LeaseState::Lost(reason) => Err(TokenError::Lost(reason)),
            LeaseState::Released => Err(TokenError::Released),
            LeaseState::Held { .. } | LeaseState::Suspect { .. } => {
                self.token_for_logs().ok_or(TokenError::NoFencing)
            }
        }
    }

    /// Returns the token, live or not; `None` if these leases give none. Never use it for a write.
    pub fn token_for_logs(&self) -> Option<FencingToken> {
        self.grant.terms.fenced.then_some(self.grant.terms.token)
    }

    /// Returns the names that are leased, in order. Of [`crate::Leases::any_of`] it is the one that was granted.
    pub fn names(&self) -> &[Name] {
        self.grant.terms.names.as_slice()
    }

    /// Computes the state at this instant. Asks nothing of the backend: [`crate::Lease::verify`] does.
    pub fn state(&self) -> LeaseState {
        self.grant.state()
    }

    /// Returns the time until the deadline; zero after the end.
    pub fn remaining(&self) -> Duration {
        self.grant.remaining()
    }

    /// Waits for the loss and returns its reason: at the deadline at the latest, even if the backend hangs,
    /// and at once if the lease thread ends by a panic. Never ends if the lease is released.
    ///
    /// # Cancel safety
    /// Harmless.
    pub async fn lost(&self) -> LostReason {
        let lost = |state| match state {
            LeaseState::Lost(reason) => Some(reason),
            LeaseState::Held { .. } | LeaseState::Suspect { .. } | LeaseState::Released => None,
        };
        self.grant.wait_for(lost).await
    }

    /// Waits until the lease is not live: lost or released.
    pub(crate) async fn over(&self) {
        let over = |state: LeaseState| (!state.is_live()).then_some(());
        self.grant.wait_for(over).await;
    }

    /// Waits until the state is of another kind than `seen`, and returns it. Never ends after the end of the
    /// lease has been seen.
    ///
    /// ```
    /// # use soldonce_lease::{LeaseState, Leases};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let leases = Leases::memory().connect().await?;
    /// let lease = leases.lease("job").acquire().await?;
    /// let (reader, seen) = (lease.handle(), lease.state());
    /// lease.release().await?;
    /// assert_eq!(reader.changed(seen).await, LeaseState::Released);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// A dropped call loses no change. A state that came and went between two looks is not seen.
    pub async fn changed(&self, seen: LeaseState) -> LeaseState {
        let kind = std::mem::discriminant(&seen);
        let other = |now: LeaseState| (std::mem::discriminant(&now) != kind).then_some(now);
        self.grant.wait_for(other).await
    }

    /// Returns a token of your own that is cancelled when the lease is lost.
    #[cfg(feature = "tokio-util")]
    pub fn cancellation_token(&self) -> tokio_util::sync::CancellationToken {
        self.grant.cancellation()
    }
}

impl std::fmt::Debug for LeaseRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease")
            .field("names", &self.grant.terms.names)
            .field("token", &self.token_for_logs())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
