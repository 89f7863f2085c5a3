//! Strategy `optimistic`: read the versions of the rows, decide without a lock, and write where they
//! are still the same. Whoever finds one that has moved begins again, a bounded number of times.

use super::errand::{Errand, Plan, Reading, Step};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::write::Guard;

/// # Errors
/// [`Failure`], when the database cannot be asked.
pub(super) async fn attempt(errand: &Errand<'_>) -> Result<Step, Failure> {
    let lane = errand.desk.database.command_lane().await?;
    match errand.plan(Reading::Fresh, Guard::Versions, 0).await? {
        Plan::Answer(done) => Ok(Step::Done(done)),
        Plan::Store(decided) => errand.store(lane, decided).await,
    }
}
