//! Waits that a shutdown ends.

use soldonce_clock::Clock;
use tokio_util::sync::CancellationToken;

/// Waits `ms` milliseconds; returns false if `shutdown` ends the wait.
pub(crate) async fn pause(clock: &dyn Clock, shutdown: &CancellationToken, ms: u64) -> bool {
    let wait = clock.sleep_until(clock.boot().plus_ms(ms));
    shutdown.run_until_cancelled(wait).await.is_some()
}
