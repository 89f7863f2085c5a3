//! Checks of a request against the limits of its backend. `lease.md` 3, LT4.

use std::time::Duration;

use super::Request;
use crate::InvalidRequest;
use crate::backend::{Durability, Facts};
use crate::limits::{CAP_MAX, NAMES_MAX, REPLICAS_WAIT_MAX};

const MS: Duration = Duration::from_millis(1);

/// Fails if no backend of these facts can grant what is asked for.
pub(super) fn check(request: &Request, facts: &Facts) -> Result<(), InvalidRequest> {
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
