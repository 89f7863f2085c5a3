//! Keeps a line that strangers can cause from filling the log: one line a period, which tells how many
//! were left out.

use std::sync::Mutex;
use std::time::Duration;

use soldonce_clock::BootTime;

use crate::limits::LOG_PERIOD_MS;

/// Limits one kind of log line to one a period ([`LOG_PERIOD_MS`]).
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the next line may come; None before the first.
    next_at: Option<BootTime>,
    left_out: u64,
}

impl Throttle {
    /// Counts one event. Returns how many were left out since the last line if it is logged now.
    pub(crate) fn pass(&self, now: BootTime) -> Option<u64> {
        let mut state = crate::lock(&self.state);
        if state.next_at.is_some_and(|next_at| now < next_at) {
            state.left_out = state.left_out.saturating_add(1);
            return None;
        }
        state.next_at = Some(now.plus(Duration::from_millis(LOG_PERIOD_MS)));
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_period_tells_of_the_others() {
        let throttle = Throttle::default();
        let at = |ms| BootTime::from_duration(Duration::from_millis(ms));
        assert_eq!(throttle.pass(at(5)), Some(0));
        for ms in 5..100 {
            assert_eq!(throttle.pass(at(ms)), None);
        }
        assert_eq!(throttle.pass(at(5 + LOG_PERIOD_MS)), Some(95));
    }
}
