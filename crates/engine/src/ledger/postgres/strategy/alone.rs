//! A command that ends every hold of an event, by itself: with the event's advisory lock alone, from before
//! the memory is read to the commit. A hold that another server stores meanwhile would outlive it.

use soldonce_core::Command;

use super::errand::{Errand, Plan, Reading, Step};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::write::Guard;

/// Whether the command needs the event alone.
pub(super) fn is_needed(command: &Command) -> bool {
    matches!(command, Command::CancelEvent { .. })
}

/// # Errors
/// [`Failure`], when the database cannot be asked.
pub(super) async fn attempt(errand: &Errand<'_>) -> Result<Step, Failure> {
    let mut lane = errand.desk.database.command_lane().await?;
    match errand.desk.lock_event(&mut lane, errand.booth.no).await {
        Err(failure) if failure.is_contention() => return Ok(Step::Again),
        taken => taken?,
    }
    match errand.plan(Reading::Fresh, Guard::Versions, 0).await? {
        Plan::Answer(done) => {
            lane.roll_back().await;
            Ok(Step::Done(done))
        }
        Plan::Store(decided) => errand.store(lane, decided).await,
    }
}
