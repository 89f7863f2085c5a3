//! What the decisions rest on, and what became of units and holds, as values of the statement.

use std::collections::BTreeSet;

use soldonce_core::{Actor, Cause, Hold};
use tokio_postgres::types::Type;

use super::{Dispatch, Guard, Values};
use crate::ledger::postgres::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::CLOCK_OFF_MS;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::units::State;
use crate::ledger::postgres::tables::{Id, holds, int, short};
use crate::ledger::rows::codes::{number, reason_of, state_number};
use crate::ledger::rows::packed::pack;
use crate::ledger::rows::{Damaged, stored};

/// Stands for a version that is not compared. The row is locked all the same: everybody locks in one
/// order.
const ANY_VERSION: i64 = -1;

/// $1 to $12.
pub(super) fn put_guards(
    to: &mut Values,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
) -> Result<(), Failure> {
    let batch = dispatch.batch;
    to.put(int(replica.no.0)?, Type::INT4);
    to.put(replica.event_version, Type::INT8);
    let mut seen = batch.seen_units(replica)?;
    if dispatch.guard == Guard::Keys {
        // Others that the decisions rest on have no key that would tell.
        let changed: BTreeSet<i32> = batch.changed_units()?;
        for seen in seen.iter_mut().filter(|seen| changed.contains(&seen.unit)) {
            seen.version = ANY_VERSION;
        }
    }
    to.put(
        seen.iter().map(|seen| seen.unit).collect::<Vec<_>>(),
        Type::INT4_ARRAY,
    );
    to.put(
        seen.iter().map(|seen| seen.version).collect::<Vec<_>>(),
        Type::INT8_ARRAY,
    );
    let known = batch.accounts(replica);
    let known = known.iter().filter(|account| account.version > 0);
    let (keys, versions): (Vec<Id>, Vec<i64>) =
        known.map(|account| (account.key, account.version)).unzip();
    to.put(keys, Type::BYTEA_ARRAY);
    to.put(versions, Type::INT8_ARRAY);
    let known = batch.bookings().into_iter();
    let known = known.filter_map(|id| Some((Id(*id.bytes()), *replica.bookings.get(&id)?)));
    let (ids, versions): (Vec<Id>, Vec<i64>) = known.unzip();
    to.put(ids, Type::BYTEA_ARRAY);
    to.put(versions, Type::INT8_ARRAY);
    to.put(dispatch.given, Type::INT8);
    to.put(dispatch.now.ms(), Type::INT8);
    to.put(CLOCK_OFF_MS, Type::INT8);
    to.put(batch.good_until(), Type::INT8);
    Ok(())
}

/// $13 to $19.
pub(super) fn put_units(
    to: &mut Values,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
) -> Result<(), Failure> {
    let seating = replica.inventory.seating(replica.no);
    let mut changed: Vec<_> = dispatch.batch.steps().map(|step| step.unit).collect();
    changed.sort_unstable();
    changed.dedup();
    let missing = || Damaged::new("units", "the event is not in memory");
    let (mut nos, mut states) = (Vec::new(), Vec::new());
    let (mut owners, mut untils) = (Vec::new(), Vec::new());
    let (mut fences, mut versions) = (Vec::new(), Vec::new());
    for no in changed {
        let unit = seating.ok_or_else(missing)?.unit(no);
        let columns = State::from(unit.state);
        nos.push(int(no.0)?);
        states.push(columns.kind);
        owners.push(columns.owner);
        untils.push(columns.until);
        fences.push(stored(unit.fence.0)?);
        versions.push(stored(unit.version.0)?);
    }
    to.put(nos, Type::INT4_ARRAY);
    to.put(states, Type::INT2_ARRAY);
    to.put(owners, Type::BYTEA_ARRAY);
    to.put(untils, Type::INT8_ARRAY);
    to.put(fences, Type::INT8_ARRAY);
    to.put(versions, Type::INT8_ARRAY);
    to.put(dispatch.token, Type::INT8);
    Ok(())
}

/// $20 to $31.
pub(super) fn put_holds(to: &mut Values, replica: &Replica, batch: &Batch) -> Result<(), Failure> {
    let ids = batch.holds();
    let missing = || Damaged::new("holds", "a hold is not in memory");
    let found = ids
        .iter()
        .map(|id| replica.inventory.hold(*id).ok_or_else(missing));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    to.put(holds::ids(ids), Type::BYTEA_ARRAY);
    let callers = found.iter().map(|hold| Id(*hold.holder.caller.bytes()));
    to.put(callers.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let names = found
        .iter()
        .map(|hold| hold.holder.name.as_str().to_owned());
    to.put(names.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    let states = found.iter().map(|hold| short(state_number(&hold.state)));
    to.put(states.collect::<Vec<_>>(), Type::INT2_ARRAY);
    let bookings = found
        .iter()
        .map(|hold| hold.state.booking().map(|id| Id(*id.bytes())));
    to.put(bookings.collect::<Vec<_>>(), Type::BYTEA_ARRAY);
    let reasons = found
        .iter()
        .map(|hold| reason_of(&hold.state).map(str::to_owned));
    to.put(reasons.collect::<Vec<_>>(), Type::TEXT_ARRAY);
    let fences = found.iter().map(|hold| stored(hold.fence.0));
    to.put(fences.collect::<Result<Vec<_>, _>>()?, Type::INT8_ARRAY);
    let units = found.iter().map(|hold| pack(&hold.units));
    to.put(units.collect::<Result<Vec<_>, _>>()?, Type::BYTEA_ARRAY);
    for time in [
        |hold: &Hold| hold.created_at,
        |hold: &Hold| hold.expires_at,
        |hold: &Hold| hold.max_expires_at,
    ] {
        let times: Vec<i64> = found.iter().map(|hold| time(hold).ms()).collect();
        to.put(times, Type::INT8_ARRAY);
    }
    let together: Vec<Option<bool>> = found.iter().map(|hold| hold.together).collect();
    to.put(together, Type::BOOL_ARRAY);
    Ok(())
}

/// $32 to $48.
pub(super) fn put_audit(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let commits = || batch.applied.iter().flat_map(|applied| &applied.commits);
    let (mut units, mut versions, mut commands, mut places) = (vec![], vec![], vec![], vec![]);
    let (mut from, mut after) = (Vec::new(), Vec::new());
    let (mut fences, mut causes, mut holds) = (vec![], vec![], vec![]);
    let (mut actors, mut requests, mut reasons) = (vec![], vec![], vec![]);
    for (command, commit) in (0_i32..).zip(commits()) {
        for (n, step) in (0_i32..).zip(&commit.transitions) {
            units.push(int(step.unit.0)?);
            versions.push(stored(step.version.0)?);
            commands.push(command);
            places.push(n);
            from.push(State::from(step.from));
            after.push(State::from(step.to));
            fences.push(stored(step.fence.0)?);
            causes.push(short(number(&Cause::ALL, &step.cause)));
            holds.push(step.hold.map(|id| Id(*id.bytes())));
            actors.push(match commit.origin.actor {
                Actor::Caller(caller) => Some(Id(*caller.bytes())),
                Actor::System => None,
            });
            requests.push(commit.origin.request.to_string());
            reasons.push(
                commit
                    .reason
                    .as_ref()
                    .map(|reason| reason.as_str().to_owned()),
            );
        }
    }
    to.put(units, Type::INT4_ARRAY);
    to.put(versions, Type::INT8_ARRAY);
    to.put(commands, Type::INT4_ARRAY);
    to.put(places, Type::INT4_ARRAY);
    for states in [from, after] {
        to.put(
            states.iter().map(|state| state.kind).collect::<Vec<_>>(),
            Type::INT2_ARRAY,
        );
        to.put(
            states.iter().map(|state| state.owner).collect::<Vec<_>>(),
            Type::BYTEA_ARRAY,
        );
        to.put(
            states.iter().map(|state| state.until).collect::<Vec<_>>(),
            Type::INT8_ARRAY,
        );
    }
    to.put(fences, Type::INT8_ARRAY);
    to.put(causes, Type::INT2_ARRAY);
    to.put(holds, Type::BYTEA_ARRAY);
    to.put(actors, Type::BYTEA_ARRAY);
    to.put(requests, Type::TEXT_ARRAY);
    to.put(reasons, Type::TEXT_ARRAY);
    let count = commits().count();
    to.put(i32::try_from(count).unwrap_or(i32::MAX), Type::INT4);
    Ok(())
}
