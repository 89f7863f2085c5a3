//! A circuit breaker for a server that did not answer several times in a row: for a while no
//! request is sent, then one is, and the others follow when it got its answer.

use std::sync::Mutex;

use soldonce_clock::BootTime;

use crate::limits::{REDIS_FAILURES_MAX, REDIS_PAUSE_MS};
use crate::locks::lock;

#[derive(Debug, Default)]
pub(super) struct Pause {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// No request is sent before.
    until: BootTime,
}

impl Pause {
    /// Tells whether the server may be asked now. Each time a pause is over, one caller may.
    pub(super) fn may_ask(&self, now: BootTime) -> bool {
        let mut state = lock(&self.state);
        if state.failures < REDIS_FAILURES_MAX {
            return true;
        }
        if now < state.until {
            return false;
        }
        state.until = now.plus_ms(REDIS_PAUSE_MS);
        true
    }

    /// Notes an answer; tells whether it ends a pause.
    pub(super) fn answered(&self) -> bool {
        let mut state = lock(&self.state);
        let was_away = state.failures >= REDIS_FAILURES_MAX;
        state.failures = 0;
        was_away
    }

    /// Begins a pause at once, as after failures in a row.
    pub(super) fn rests(&self, now: BootTime) {
        let mut state = lock(&self.state);
        state.failures = REDIS_FAILURES_MAX;
        state.until = now.plus_ms(REDIS_PAUSE_MS);
    }

    /// Notes a failure; tells whether it begins a pause.
    pub(super) fn failed(&self, now: BootTime) -> bool {
        let mut state = lock(&self.state);
        state.failures = state.failures.saturating_add(1);
        if state.failures >= REDIS_FAILURES_MAX {
            state.until = now.plus_ms(REDIS_PAUSE_MS);
        }
        state.failures == REDIS_FAILURES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> BootTime {
        BootTime::default().plus_ms(ms)
    }

    #[test]
    fn three_failures_in_a_row_pause_a_second_and_then_one_asks() {
        let pause = Pause::default();
        assert!(!pause.failed(at(0)) && !pause.failed(at(0)));
        assert!(!pause.answered(), "an answer between");
        assert!(!pause.failed(at(0)) && !pause.failed(at(0)));
        assert!(pause.may_ask(at(0)));
        assert!(pause.failed(at(10)));
        assert!(!pause.may_ask(at(1_009)));
        assert!(pause.may_ask(at(1_010)), "one");
        assert!(!pause.may_ask(at(1_010)), "and no other");
        assert!(!pause.failed(at(1_060)), "told once");
        assert!(!pause.may_ask(at(2_059)) && pause.may_ask(at(2_060)));
        assert!(pause.answered());
        assert!(pause.may_ask(at(2_060)) && pause.may_ask(at(2_060)));
    }
}
