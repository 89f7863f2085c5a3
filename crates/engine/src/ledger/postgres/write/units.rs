//! Units, holds and their transitions, as values of the call.

use super::rows::{RowType, Rows};
use super::{Dispatch, Values};
use crate::ledger::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::read_set::ReadSet;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::rows::chain::AuditRow;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::packed::pack;
use crate::ledger::rows::{Damaged, holds, units};

/// Adds the units that the decisions rest on, and their new states.
pub(super) fn put_units(
    to: &mut Values,
    replica: &Replica,
    read_set: &ReadSet,
) -> Result<(), Failure> {
    let seating = replica.inventory.seating(replica.no);
    let missing = || Damaged::new("units", "the event is not in memory");
    let units = Rows::of(&read_set.units, |before, row| {
        let [state, owner, _] = units::put_state(before.state);
        let (no, version) = (Column::Small(before.unit.0), Column::Count(before.version));
        row.put(&[no, version, state, owner])?;
        if before.stays {
            return row.put(&STAYS);
        }
        let unit = seating.ok_or_else(missing)?.unit(before.unit);
        row.put(&units::put(unit))
    })?;
    to.put_rows("unit_rows", units, RowType::Unit);
    Ok(())
}

/// The columns of a new state, for a unit that stays as it is: nulls.
const STAYS: [Column<'_>; 5] = [
    Column::OptCode(None),
    Column::OptId(None),
    Column::OptLong(None),
    Column::OptLong(None),
    Column::OptLong(None),
];

/// Adds the holds that change.
pub(super) fn put_holds(
    to: &mut Values,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
) -> Result<(), Failure> {
    let missing = || Damaged::new("holds", "a hold is not in memory");
    let new = dispatch.batch.new_holds();
    let rows = Rows::of(&dispatch.holds, |id, row| {
        let hold = replica.inventory.hold(*id).ok_or_else(missing)?;
        let is_new = new.binary_search(id).is_ok();
        let units = pack(&hold.units)?;
        let [id, _event, rest @ ..] = holds::put(hold, &units);
        row.put(&[id, Column::Flag(is_new)])?;
        row.put(&rest)
    })?;
    to.put_rows("hold_rows", rows, RowType::Hold);
    Ok(())
}

pub(super) fn put_audit(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let steps = (0_u32..)
        .zip(batch.commits())
        .flat_map(|(command, commit)| AuditRow::of(commit).map(move |step| (command, step)));
    // A list, so that it is known how many there are.
    let steps: Vec<_> = steps.collect();
    let rows = Rows::of(steps, |(command, step), row| {
        let [_, _, n, _, unit, rest @ ..] = step.put();
        let [
            from,
            from_owner,
            from_until,
            to,
            to_owner,
            to_until,
            fence,
            version,
            why @ ..,
        ] = rest;
        row.put(&[unit, version, Column::Small(command), n])?;
        row.put(&[from, from_owner, from_until, to, to_owner, to_until, fence])?;
        row.put(&why)
    })?;
    to.put_rows("audit_rows", rows, RowType::Audit);
    Ok(())
}
