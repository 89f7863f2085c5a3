//! `Retry-After`: whole seconds to wait.

use std::time::Duration;

use soldonce_engine::payment::ProviderError;

use crate::limits::PROVIDER_PAUSE_MS_MAX;

/// Seconds to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryAfter(pub(super) u32);

/// The wait that a busy server asks for.
pub(super) const SOON: RetryAfter = RetryAfter(1);

impl RetryAfter {
    /// Rounds up to seconds, at least one and at most `u32::MAX`: a client that waits that long is
    /// late enough.
    pub(super) fn after(span: Duration) -> Self {
        Self(u32::try_from(whole_seconds(span)).unwrap_or(u32::MAX))
    }
}

/// Returns how long the payment provider asks to be left alone, if it does; at most a minute.
pub(super) fn asked_pause(error: &ProviderError) -> Option<RetryAfter> {
    match error {
        ProviderError::Busy { retry_after } => {
            let pause = retry_after.as_ref()?.ms().min(PROVIDER_PAUSE_MS_MAX);
            Some(RetryAfter::after(Duration::from_millis(pause)))
        }
        ProviderError::Declined { .. }
        | ProviderError::Refused { .. }
        | ProviderError::Unknown(_)
        | ProviderError::Misconfigured(_) => None,
    }
}

/// Rounds up to seconds; at least one.
pub(in crate::http) fn whole_seconds(span: Duration) -> u64 {
    let begun = u64::from(span.subsec_nanos() > 0);
    span.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_the_provider_is_passed_on_up_to_a_minute() {
        let req = |ms: Option<u64>| {
            let retry_after = ms.map(soldonce_core::Span::from_ms);
            asked_pause(&ProviderError::Busy { retry_after }).map(|after| after.0)
        };
        for (ms, seconds) in [
            (None, None),
            (Some(5_000), Some(5)),
            (Some(90_000), Some(60)),
        ] {
            assert_eq!(req(ms), seconds);
        }
        let unknown = ProviderError::Unknown(String::new());
        assert!(asked_pause(&unknown).is_none());
    }

    #[test]
    fn seconds_are_rounded_up_and_never_none() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
