//! `Retry-After`: whole seconds to wait.

use std::time::Duration;

/// Seconds to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryAfter(pub(super) u32);

/// What a busy server asks for.
pub(super) const SOON: RetryAfter = RetryAfter(1);

impl RetryAfter {
    /// Never none: whoever waits that long is late enough.
    pub(super) fn after(span: Duration) -> Self {
        Self(u32::try_from(whole_seconds(span)).unwrap_or(u32::MAX))
    }
}

/// Seconds, rounded up; at least one.
pub(in crate::http) fn whole_seconds(span: Duration) -> u64 {
    let begun = u64::from(span.subsec_nanos() > 0);
    span.as_secs().saturating_add(begun).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up_and_never_none() {
        for (millis, seconds) in [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (59_999, 60)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds);
        }
    }
}
