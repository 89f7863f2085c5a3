//! Checks of a request against the limits of its backend. `lease.md` 3, LT4.

use std::time::Duration;

use crate::InvalidRequest;
use crate::backend::{Durability, Facts, Names};
use crate::limits::{CAP_MAX, REPLICAS_WAIT_MAX};

const MS: Duration = Duration::from_millis(1);

pub(super) fn names(names: &Names, facts: &Facts) -> Result<(), InvalidRequest> {
    let (got, most) = (names.as_slice().len(), facts.names_max);
    if got == 0 || got > most {
        return Err(InvalidRequest::Names { got, most });
    }
    Ok(())
}

pub(super) fn ttl(
    ttl: Duration,
    (least, most): (Duration, Duration),
) -> Result<(), InvalidRequest> {
    if ttl < least || ttl > most {
        return Err(InvalidRequest::Ttl { ttl, least, most });
    }
    Ok(())
}

pub(super) fn max_lifetime(most: Option<Duration>, ttl: Duration) -> Result<(), InvalidRequest> {
    match most {
        Some(most) if most < ttl || most > CAP_MAX => Err(InvalidRequest::MaxLifetime(most)),
        Some(_) | None => Ok(()),
    }
}

/// Fails if `safety` takes half of the ttl or more: renewals need the other half.
pub(super) fn safety(safety: Duration, ttl: Duration) -> Result<(), InvalidRequest> {
    if safety >= ttl / 2 {
        return Err(InvalidRequest::Safety(safety));
    }
    Ok(())
}

/// Fails if the wait for replicas is shorter than 1 ms, because Redis takes 0 ms for no limit, or
/// longer than [`REPLICAS_WAIT_MAX`].
pub(super) fn durability(durability: Durability) -> Result<(), InvalidRequest> {
    match durability {
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
