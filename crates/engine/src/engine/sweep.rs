//! The sweeper: writes down, a few times a second, which holds the clock has ended. Nothing is
//! decided by it; a unit is sellable the millisecond its hold ends, sweeper dead or alive.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Answer, Command, Origin, Rejection};
use tokio_util::sync::CancellationToken;

use super::Engine;
use crate::ledger::{Done, Transaction};
use crate::limits::{SWEEP_EVERY_MS, SWEEP_HOLDS_MAX};

/// Sweeps until `shutdown`, or until the ledger takes no commands any more.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done.
pub async fn run_sweeper(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    loop {
        let next = clock.boot().plus(Duration::from_millis(SWEEP_EVERY_MS));
        if shutdown
            .run_until_cancelled(clock.sleep_until(next))
            .await
            .is_none()
        {
            return;
        }
        loop {
            match engine.sweep().await {
                Ok(swept) if swept == SWEEP_HOLDS_MAX => {}
                Ok(_) | Err(Rejection::Overloaded) => break,
                Err(_) => return,
            }
        }
    }
}

impl Engine {
    /// Writes down holds that are over, as many as one command may; tells how many.
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
