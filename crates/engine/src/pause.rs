//! Waits that a shutdown ends.

use std::time::Duration;

use soldonce_clock::Clock;
use tokio_util::sync::CancellationToken;

/// Waits so long; whether nothing is shut down by then.
pub(crate) async fn pause(clock: &dyn Clock, shutdown: &CancellationToken, ms: u64) -> bool {
    let next = clock.boot().plus(Duration::from_millis(ms));
    let wait = clock.sleep_until(next);
    shutdown.run_until_cancelled(wait).await.is_some()
}
