//! Strategy `constraint`: one statement, sent without asking first. Two commands that change the same
//! unit would both write its next version, and the key of the audit, event + unit + version, takes it
//! once. Whoever is second reads what happened, and decides again.

use super::errand::{Errand, Plan, Reading, Step};
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::write::Guard;

/// # Errors
/// [`Failure`], when the database cannot be asked.
pub(super) async fn attempt(errand: &Errand<'_>) -> Result<Step, Failure> {
    let lane = errand.desk.database.command_lane().await?;
    match errand.plan(Reading::Remembered, Guard::Keys, 0).await? {
        Plan::Answer(done) => Ok(Step::Done(done)),
        Plan::Store(decided) => errand.store(lane, decided).await,
    }
}
