//! `Retry-After`: whole seconds to wait.

use std::time::Duration;

use soldonce_engine::payment::ProviderError;

use crate::limits::PROVIDER_PAUSE_MS_MAX;

/// Returns how long the payment provider asks to be left alone, if it does; at most a minute.
pub(super) fn asked_pause(error: &ProviderError) -> Option<Duration> {
    let ProviderError::Busy { retry_after } = error else {
        return None;
    };
    let pause = retry_after.as_ref()?.ms().min(PROVIDER_PAUSE_MS_MAX);
    Some(Duration::from_millis(pause))
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
            asked_pause(&ProviderError::Busy { retry_after }).map(whole_seconds)
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
