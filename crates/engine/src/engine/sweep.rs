//! The sweeper: writes down, a few times a second, which holds the clock has ended. Nothing is
//! decided by it; a unit is sellable the millisecond its hold ends, sweeper dead or alive. It tells
//! operators, too, when the ledger's clock and the machine's are apart.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Answer, Command, Origin, Rejection};
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::ledger::{Done, Transaction};
use crate::limits::{CLOCK_AHEAD_MS, CLOCK_LEAST_MS, SWEEP_EVERY_MS, SWEEP_HOLDS_MAX};
use crate::trouble::Trouble;

/// Sweeps until `shutdown`. A ledger that does not take it now, a database that is away above all, may
/// take it later: it is asked again.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done.
pub async fn run_sweeper(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut refused = Trouble::default();
    let mut watch = ClockWatch::default();
    loop {
        let next = clock.boot().plus(Duration::from_millis(SWEEP_EVERY_MS));
        if shutdown
            .run_until_cancelled(clock.sleep_until(next))
            .await
            .is_none()
        {
            return;
        }
        match engine.sweep_all().await {
            Ok(()) if refused.ends() => {
                tracing::info!("holds that are over are written down again");
            }
            Ok(()) => {}
            Err(error) => {
                if refused.lasts(clock.boot()) {
                    tracing::warn!(%error, "holds that are over cannot be written down");
                }
            }
        }
        watch.look(&engine);
    }
}

/// Whether the ledger's clock is ahead of the machine's, as operators were told last.
#[derive(Default)]
struct ClockWatch {
    is_ahead: bool,
}

impl ClockWatch {
    /// Measures how far the ledger's clock is ahead of the machine's, and tells when that begins and ends.
    fn look(&mut self, engine: &Engine) {
        let ahead_ms = engine.clock_ahead_ms();
        let seconds = Duration::from_millis(ahead_ms.unsigned_abs()).as_secs_f64();
        let metrics = engine.metrics();
        metrics
            .clock_ahead
            .set(seconds.copysign(if ahead_ms < 0 { -1.0 } else { 1.0 }));
        let is_ahead = ahead_ms >= CLOCK_AHEAD_MS;
        match (self.is_ahead, is_ahead) {
            (false, true) if engine.wall_now().ms() < CLOCK_LEAST_MS => {
                tracing::error!(
                    seconds,
                    "this machine's clock is wrong, far behind the ledger's: set it"
                );
            }
            (false, true) => {
                tracing::warn!(
                    seconds,
                    "the ledger's clock is ahead, because the machine's has stepped back: it runs at \
                     half speed until they meet, and holds last up to twice as long"
                );
            }
            (true, false) => tracing::info!("the ledger's clock and the machine's are one again"),
            (true, true) | (false, false) => {}
        }
        self.is_ahead = is_ahead;
    }
}

impl Engine {
    /// Writes down all holds that are over.
    async fn sweep_all(&self) -> Result<(), Rejection> {
        while self.sweep().await? == SWEEP_HOLDS_MAX {}
        Ok(())
    }

    /// Writes down holds that are over; tells how many, and no more than one command may: then there may
    /// be more.
    ///
    /// # Errors
    /// `Overloaded`, `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, they may have been written down.
    pub async fn sweep(&self) -> Result<usize, Rejection> {
        let command = Command::Sweep {
            limit: SWEEP_HOLDS_MAX,
        };
        let (origin, key, chart) = (Origin::system("sweeper"), None, None);
        let transaction = Transaction {
            origin,
            command,
            key,
            chart,
        };
        match self.parts.ledger.transact(transaction).await? {
            Done::Fresh {
                answer: Answer::Swept(holds),
                ..
            } => Ok(holds),
            Done::Fresh { .. } | Done::Replayed(_) => Ok(0),
        }
    }
}
