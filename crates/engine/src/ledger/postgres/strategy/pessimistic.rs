//! Strategy `pessimistic`: lock the rows of the units, decide, write, commit. Everybody locks in unit
//! order, so nobody waits in a circle; the turn with the event comes before them. With `NOWAIT` a
//! locked row is no wait but an answer: somebody is deciding about it now, and what he decided is seen
//! when the command looks again. Whoever has looked often enough waits after all: the other is slow,
//! and a loser is told that he lost.

use soldonce_core::UnitNo;

use super::errand::{Errand, Plan, Reading, Step};
use crate::ledger::postgres::batch::Seen;
use crate::ledger::postgres::database::Lane;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::NOWAIT_LOOKS_MAX;
use crate::ledger::postgres::tables::{int, units};
use crate::ledger::postgres::write::Guard;

/// What a command does about a row that another has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    NoWait,
}

/// # Errors
/// [`Failure`], when the database cannot be asked.
pub(super) async fn attempt(errand: &Errand<'_>, patience: Patience) -> Result<Step, Failure> {
    let patience = match patience {
        Patience::NoWait if errand.times_behind() >= NOWAIT_LOOKS_MAX => Patience::Wait,
        Patience::NoWait | Patience::Wait => patience,
    };
    let units = errand.units().await;
    let mut lane = errand.desk.database.command_lane().await?;
    if units.is_empty() {
        // The engine chooses: what it chose is locked by the statement that writes it.
        return match errand.plan(Reading::Remembered, Guard::Versions, 0).await? {
            Plan::Answer(done) => Ok(Step::Done(done)),
            Plan::Store(decided) => errand.store(lane, decided).await,
        };
    }
    lane.begin_write().await?;
    let seen = match lock(&mut lane, errand, &units, patience).await {
        Ok(seen) => seen,
        Err(failure) if failure.is_contention() => {
            lane.roll_back().await;
            return errand.look().await;
        }
        Err(failure) => return Err(failure),
    };
    match errand
        .plan(Reading::With(&seen), Guard::Versions, 0)
        .await?
    {
        Plan::Answer(done) => {
            lane.roll_back().await;
            Ok(Step::Done(done))
        }
        Plan::Store(decided) if errand.is_within(&decided, &units) => {
            errand.store(lane, decided).await
        }
        Plan::Store(_) => {
            lane.roll_back().await;
            Ok(Step::Again)
        }
    }
}

async fn lock(
    lane: &mut Lane,
    errand: &Errand<'_>,
    wanted: &[UnitNo],
    patience: Patience,
) -> Result<Vec<Seen>, Failure> {
    let sql = match patience {
        Patience::Wait => units::LOCK,
        Patience::NoWait => units::LOCK_NOWAIT,
    };
    let wanted = wanted.iter().map(|unit| int(unit.0));
    let wanted = wanted.collect::<Result<Vec<i32>, _>>()?;
    // What renews the event names no units.
    let turn = units::Turn {
        event: int(errand.booth.no.0)?,
        renews: false,
    };
    units::lock(lane, sql, turn, &wanted).await
}
