//! What the decisions rest on, and what became of units and holds, as values of the statement.

use soldonce_core::{Actor, Cause, Text, UnitState};
use tokio_postgres::types::Type;

use super::rows::{Row, RowType, Rows};
use super::{Dispatch, Values};
use crate::ledger::postgres::batch::Batch;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::CLOCK_OFF_MS;
use crate::ledger::postgres::replica::Replica;
use crate::ledger::postgres::tables::units::State;
use crate::ledger::postgres::tables::{Id, int, short};
use crate::ledger::rows::codes::{number, reason_of, state_number};
use crate::ledger::rows::packed::pack;
use crate::ledger::rows::{Damaged, stored};

/// $1 to $9.
pub(super) fn put_guards(
    to: &mut Values,
    replica: &Replica,
    dispatch: &Dispatch<'_>,
) -> Result<(), Failure> {
    let batch = dispatch.batch;
    to.put(int(replica.no.0)?, Type::INT4);
    to.put(batch.renews_event(), Type::BOOL);
    put_units(to, replica, dispatch)?;
    let accounts = dispatch.accounts.iter();
    let known = accounts.filter(|account| account.version > 0);
    put_seen(to, known.map(|account| (account.key, account.version)))?;
    let known = batch.bookings().into_iter();
    put_seen(
        to,
        known.filter_map(|id| Some((Id(*id.bytes()), *replica.bookings.get(&id)?))),
    )?;
    to.put(dispatch.given, Type::INT8);
    to.put(dispatch.now.ms(), Type::INT8);
    to.put(CLOCK_OFF_MS, Type::INT8);
    to.put(batch.good_until(), Type::INT8);
    Ok(())
}

fn put_seen(to: &mut Values, seen: impl Iterator<Item = (Id, i64)>) -> Result<(), Failure> {
    let seen = Rows::of(seen, |(key, version), row| {
        row.id(key)?.long(version)?;
        Ok(())
    })?;
    to.put_rows(seen, RowType::Seen);
    Ok(())
}

/// $3: what the decisions rest on, and what becomes of it.
fn put_units(to: &mut Values, replica: &Replica, dispatch: &Dispatch<'_>) -> Result<(), Failure> {
    let seating = replica.inventory.seating(replica.no);
    let missing = || Damaged::new("units", "the event is not in memory");
    let units = Rows::of(dispatch.batch.seen_units(replica), |before, row| {
        row.int(int(before.unit.0)?)?;
        if before.stays {
            row.long(stored(before.version)?)?;
            return put_nothing(row);
        }
        let unit = seating.ok_or_else(missing)?.unit(before.unit);
        put_state(row.long(stored(before.version)?)?, unit.state)?
            .long(stored(unit.fence.0)?)?
            .long(stored(unit.version.0)?)?;
        Ok(())
    })?;
    to.put_rows(units, RowType::Unit);
    Ok(())
}

/// $30 and $31, beside $3: what each unit was decided to be before. A memory that is wrong at the right
/// version changes nothing.
pub(super) fn put_before(to: &mut Values, batch: &Batch, replica: &Replica) {
    let seen = batch.seen_units(replica);
    let before = seen.iter().map(|seen| State::from(seen.state));
    let (kinds, owners): (Vec<i16>, Vec<Option<Id>>) =
        before.map(|state| (state.kind, state.owner)).unzip();
    to.put(kinds, Type::INT2_ARRAY);
    to.put(owners, Type::BYTEA_ARRAY);
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

/// $11.
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
    to.put_rows(rows, RowType::Hold);
    Ok(())
}

/// $12 and $13.
pub(super) fn put_audit(to: &mut Values, batch: &Batch) -> Result<(), Failure> {
    let commits = || batch.applied.iter().flat_map(|applied| &applied.commits);
    let steps = (0_i32..).zip(commits()).flat_map(|(command, commit)| {
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
    to.put_rows(rows, RowType::Audit);
    let count = commits().count();
    to.put(i32::try_from(count).unwrap_or(i32::MAX), Type::INT4);
    Ok(())
}
