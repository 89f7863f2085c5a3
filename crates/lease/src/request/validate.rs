//! What may be asked for. `lease.md` 3, LT4.

use std::time::Duration;

use crate::InvalidRequest;
use crate::backend::{Facts, Names};
use crate::limits::{CAP_MAX, TTL_MAX};
use crate::options::Cap;

/// The cap of a request that names none.
const CAP_DEFAULT: Duration = Duration::from_mins(15);

pub(super) fn names(names: &Names, facts: &Facts) -> Result<(), InvalidRequest> {
    let (got, most) = (names.as_slice().len(), facts.names_max);
    if got == 0 || got > most {
        return Err(InvalidRequest::Names { got, most });
    }
    Ok(())
}

pub(super) fn ttl(ttl: Duration, least: Duration) -> Result<(), InvalidRequest> {
    let most = TTL_MAX;
    if ttl < least || ttl > most {
        return Err(InvalidRequest::Ttl { ttl, least, most });
    }
    Ok(())
}

pub(super) fn cap(cap: Option<Cap>, ttl: Duration) -> Result<Option<Duration>, InvalidRequest> {
    match cap {
        None => Ok(Some(CAP_DEFAULT.max(ttl))),
        Some(Cap::None) => Ok(None),
        Some(Cap::After(cap)) if cap < ttl || cap > CAP_MAX => Err(InvalidRequest::Cap(cap)),
        Some(Cap::After(cap)) => Ok(Some(cap)),
    }
}

pub(super) fn unsupported(facts: &Facts, what: &'static str) -> InvalidRequest {
    InvalidRequest::Unsupported {
        backend: facts.kind.as_str(),
        what,
    }
}
