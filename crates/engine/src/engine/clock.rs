//! How far the ledger's clock is ahead of the machine's, and who is told (`docs/decisions/0090`, `0120`).

use soldonce_core::words;
use std::time::Duration;

use super::Engine;
use crate::limits::{CLOCK_AHEAD_MS, CLOCK_FAR_AHEAD_MS, CLOCK_LEAST_MS};

words! {
    /// How far the ledger's clock is ahead of the machine's, as operators read it.
    #[derive(Default)]
    pub ClockState:
    /// Less than a second.
    #[default]
    Together = "together",
    /// The machine's has stepped back: the ledger's runs at half speed until they meet.
    Ahead = "ahead",
    /// The same, by an hour or more: an operator should correct it.
    FarAhead = "far_ahead",
}

impl ClockState {
    /// Returns the state of a ledger whose clock is `ahead_ms` milliseconds ahead.
    pub const fn of(ahead_ms: i64) -> Self {
        if ahead_ms >= CLOCK_FAR_AHEAD_MS {
            Self::FarAhead
        } else if ahead_ms >= CLOCK_AHEAD_MS {
            Self::Ahead
        } else {
            Self::Together
        }
    }
}

/// The state that was last logged for operators.
#[derive(Default)]
pub(super) struct ClockWatch {
    told: ClockState,
}

impl ClockWatch {
    /// Measures how far the ledger's clock is ahead of the machine's; logs a change of state.
    pub(super) fn look(&mut self, engine: &Engine) {
        let ahead_ms = engine.clock_ahead_ms();
        let seconds = Duration::from_millis(ahead_ms.unsigned_abs()).as_secs_f64();
        let metrics = engine.metrics();
        let sign = if ahead_ms < 0 { -1.0 } else { 1.0 };
        metrics.clock_ahead.set(seconds.copysign(sign));
        let state = ClockState::of(ahead_ms);
        if state == self.told {
            return;
        }
        let is_unset = engine.wall_now().ms() < CLOCK_LEAST_MS;
        match state {
            ClockState::Together => {
                tracing::info!("the ledger's clock and the machine's are one again");
            }
            ClockState::Ahead | ClockState::FarAhead if is_unset => {
                tracing::error!(
                    seconds,
                    "this machine's clock is wrong, far behind the ledger's: set it"
                );
            }
            ClockState::Ahead => {
                tracing::warn!(
                    seconds,
                    "the ledger's clock is ahead, because the machine's has stepped back: it runs at \
                     half speed until they meet, and holds last up to twice as long"
                );
            }
            ClockState::FarAhead => {
                tracing::error!(
                    seconds,
                    "the ledger's clock is far ahead: set the machine's if it is wrong; else stop every \
                     server and run `soldonce clock correct`, or holds last up to twice as long until \
                     both meet"
                );
            }
        }
        self.told = state;
    }
}
