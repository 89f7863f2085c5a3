//! Units, holds and their transitions, as values of the call.

use soldonce_core::{Actor, Cause, Text, UnitState};

use super::rows::{Row, RowType, Rows};
use super::{Dispatch, Values};
use crate::ledger::postgres::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::read_set::ReadSet;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::units::State;
use crate::ledger::postgres::tables::{Id, int, short};
use crate::ledger::rows::codes::{number, reason_of, state_number};
use crate::ledger::rows::packed::pack;
use crate::ledger::rows::{Damaged, stored};

/// What the decisions rest on, and what becomes of it.
pub(super) fn put_units(
    to: &mut Values,
    replica: &Replica,
    read_set: &ReadSet,
) -> Result<(), Failure> {
    let seating = replica.inventory.seating(replica.no);
    let missing = || Damaged::new("units", "the event is not in memory");
    let units = Rows::of(&read_set.units, |before, row| {
        let was = State::from(before.state);
        row.int(int(before.unit.0)?)?
            .long(stored(before.version)?)?
            .short(was.kind)?
            .id(was.owner)?;
        if before.stays {
            return put_nothing(row);
        }
        let unit = seating.ok_or_else(missing)?.unit(before.unit);
        put_state(row, unit.state)?
            .long(stored(unit.fence.0)?)?
            .long(stored(unit.version.0)?)?;
        Ok(())
    })?;
    to.put_rows("unit_rows", units, RowType::Unit);
    Ok(())
}

/// The columns of what a unit becomes, for one that stays as it is.
fn put_nothing(row: &mut Row<'_>) -> Result<(), Damaged> {
    row.short(None)?
        .id(None)?
        .long(None)?
        .long(None)?
        .long(None)?;
    Ok(())
}

/// A state's three columns.
fn put_state<'a, 'b>(row: &'a mut Row<'b>, state: UnitState) -> Result<&'a mut Row<'b>, Damaged> {
    let columns = State::from(state);
    row.short(columns.kind)?
        .id(columns.owner)?
        .long(columns.until)
}

/// The holds that change.
pub(super) fn put_holds(
    to: &mut Values,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
) -> Result<(), Failure> {
    let missing = || Damaged::new("holds", "a hold is not in memory");
    let new = dispatch.batch.new_holds();
    let rows = Rows::of(&dispatch.holds, |id, row| {
        let hold = replica.inventory.hold(*id).ok_or_else(missing)?;
        row.id(Id(*id.bytes()))?
            .flag(new.binary_search(id).is_ok())?
            .id(Id(*hold.holder.caller.bytes()))?
            .text(hold.holder.name.as_str())?
            .short(short(state_number(&hold.state)))?
            .id(hold.state.booking().map(|id| Id(*id.bytes())))?
            .text(reason_of(&hold.state))?
            .long(stored(hold.fence.0)?)?
            .bytes(&pack(&hold.units)?)?
            .long(hold.created_at.ms())?
            .long(hold.expires_at.ms())?
            .long(hold.max_expires_at.ms())?
            .flag(hold.together)?;
        Ok(())
    })?;
    to.put_rows("hold_rows", rows, RowType::Hold);
    Ok(())
}

/// Every transition.
pub(super) fn put_audit(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let commits = batch.applied.iter().flat_map(|applied| &applied.commits);
    let steps = (0_i32..).zip(commits).flat_map(|(command, commit)| {
        let steps = (0_i32..).zip(&commit.transitions);
        steps.map(move |(n, step)| (command, commit, n, step))
    });
    // A list, so that it is known how many there are.
    let steps: Vec<_> = steps.collect();
    let rows = Rows::of(steps, |(command, commit, n, step), row| {
        row.int(int(step.unit.0)?)?
            .long(stored(step.version.0)?)?
            .int(command)?
            .int(n)?;
        put_state(put_state(row, step.from)?, step.to)?
            .long(stored(step.fence.0)?)?
            .short(short(number(&Cause::ALL, &step.cause)))?
            .id(step.hold.map(|id| Id(*id.bytes())))?
            .id(match commit.origin.actor {
                Actor::Caller(caller) => Some(Id(*caller.bytes())),
                Actor::System => None,
            })?
            .text(&*commit.origin.request)?
            .text(commit.reason.as_ref().map(Text::as_str))?;
        Ok(())
    })?;
    to.put_rows("audit_rows", rows, RowType::Audit);
    Ok(())
}
