//! The sweeper: writes down, a few times a second, which holds are over, by the clock or with an event that was
//! called off. Nothing is decided by it; a unit can be sold the millisecond its hold ends, whether the sweeper runs or
//! not. It tells operators, too, when the ledger's clock and the machine's differ.

use std::sync::Arc;

use soldonce_core::limits::ENDED_UNITS_MAX;
use soldonce_core::{Answer, Command, Origin, Rejection};
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::clock::ClockWatch;
use crate::ledger::{Done, Transaction};
use crate::limits::SWEEP_EVERY_MS;
use crate::pause::pause;
use crate::trouble::Trouble;

/// Sweeps until `shutdown`. A ledger that does not take it now, above all because its database is
/// away, may take it later: it is asked again.
///
/// # Cancel safety
/// Dropped between two steps it leaves nothing half done.
pub async fn run_sweeper(engine: Engine, shutdown: CancellationToken) {
    let clock = Arc::clone(&engine.world().clock);
    let mut refused = Trouble::default();
    let mut watch = ClockWatch::default();
    while pause(&*clock, &shutdown, SWEEP_EVERY_MS).await {
        match engine.sweep_all().await {
            Ok(()) if refused.ends() => {
                tracing::info!("holds that are over are written down again");
            }
            Err(error) if refused.lasts(clock.boot()) => {
                tracing::warn!(%error, "holds that are over cannot be written down");
            }
            Ok(()) | Err(_) => {}
        }
        watch.look(&engine);
    }
}

impl Engine {
    /// Writes down all holds that are over.
    ///
    /// # Errors
    /// `Overloaded`, `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, some may have been written down.
    pub async fn sweep_all(&self) -> Result<(), Rejection> {
        while self.sweep().await? >= ENDED_UNITS_MAX {}
        Ok(())
    }

    /// Writes down holds that are over, no more than one command may; returns how many units they
    /// had: from the limit on, there may be more.
    ///
    /// # Errors
    /// `Overloaded`, `ReadOnly`.
    ///
    /// # Cancel safety
    /// Dropped, they may have been written down.
    pub async fn sweep(&self) -> Result<usize, Rejection> {
        let limit = ENDED_UNITS_MAX;
        let transaction = Transaction {
            origin: Origin::system("sweeper"),
            command: Command::Sweep { limit },
            key: None,
            chart: None,
        };
        match self.parts.ledger.transact(transaction).await? {
            Done::Fresh {
                answer: Answer::Swept(units),
                ..
            } => Ok(units),
            Done::Fresh { .. } | Done::Replayed(_) => Ok(0),
        }
    }
}
