//! Holds. A hold that is over never changes again.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};
use soldonce_core::{CallerId, EventNo, Fence, Hold, HoldId, Holder, HolderName, Text, Timestamp};

use super::codes::require_sum;
use crate::ledger::rows::codes::{reason_of, small, state_number, state_of, unsigned};
use crate::ledger::rows::packed::{pack, unpack};
use crate::ledger::sqlite::checksum::Checksum;
use crate::ledger::sqlite::fault::{Fault, one_row, stored};

const TABLE: &str = "holds";

const INSERT_HOLD: &str = "-- insert_hold
INSERT INTO holds (id, event_no, caller, holder, state, booking, reason, fence, units, created_at,
                   expires_at, max_expires_at, together, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";

const UPDATE_HOLD: &str = "-- update_hold
UPDATE holds SET state = ?5, booking = ?6, reason = ?7, fence = ?8, units = ?9, expires_at = ?11,
                 checksum = ?14
WHERE id = ?1 AND event_no = ?2 AND caller = ?3 AND holder = ?4 AND created_at = ?10
  AND max_expires_at = ?12 AND together IS ?13 AND state IN (0, 1) AND fence <= ?8";

const HOLD: &str = "-- hold
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together, checksum
FROM holds WHERE id = ?1";

/// Ids rise with time and no hold lives longer than its cap, so the walk begins at the oldest hold
/// that still has a unit.
const LIVE_HOLDS: &str = "-- live_holds
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together, checksum
FROM holds WHERE id >= ?1 AND state IN (0, 1) ORDER BY id";

const ALL_HOLDS: &str = "-- all_holds
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together, checksum
FROM holds ORDER BY id";

const HOLDS_OF_EVENT: &str = "-- holds_of_event
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together, checksum
FROM holds WHERE event_no = ?1 ORDER BY id";

const HOLDS_AFTER: &str = "-- holds_after
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together, checksum
FROM holds WHERE event_no = ?1 AND id > ?2 ORDER BY id LIMIT ?3";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT_HOLD,
    UPDATE_HOLD,
    HOLD,
    LIVE_HOLDS,
    ALL_HOLDS,
    HOLDS_OF_EVENT,
    HOLDS_AFTER,
];

fn checksum(hold: &Hold, units: &[u8]) -> Result<Checksum, Fault> {
    let booking = hold.state.booking();
    Ok(Checksum::of(TABLE)
        .bytes(hold.id.bytes())
        .int(i64::from(hold.event.0))
        .bytes(hold.holder.caller.bytes())
        .text(hold.holder.name.as_str())
        .int(state_number(&hold.state))
        .opt_bytes(booking.as_ref().map(|id| id.bytes().as_slice()))
        .opt_text(reason_of(&hold.state))
        .int(stored(hold.fence.0)?)
        .bytes(units)
        .int(hold.created_at.ms())
        .int(hold.expires_at.ms())
        .int(hold.max_expires_at.ms())
        .opt_int(hold.together.map(i64::from)))
}

/// Writes holds.
pub(crate) struct HoldWriter<'a> {
    insert: CachedStatement<'a>,
    update: CachedStatement<'a>,
}

impl<'a> HoldWriter<'a> {
    pub(crate) fn new(connection: &'a Connection) -> Result<Self, Fault> {
        let insert = connection.prepare_cached(INSERT_HOLD)?;
        Ok(Self {
            insert,
            update: connection.prepare_cached(UPDATE_HOLD)?,
        })
    }

    /// A hold that is not in the file.
    pub(crate) fn insert(&mut self, hold: &Hold) -> Result<(), Fault> {
        one_row("insert_hold", Self::execute(&mut self.insert, hold)?)
    }

    /// A hold that is in the file and is not over there.
    pub(crate) fn update(&mut self, hold: &Hold) -> Result<(), Fault> {
        one_row("update_hold", Self::execute(&mut self.update, hold)?)
    }

    fn execute(statement: &mut CachedStatement<'_>, hold: &Hold) -> Result<usize, Fault> {
        let units = pack(&hold.units)?;
        let sum = checksum(hold, &units)?.stored();
        let rows = statement.execute(params![
            hold.id.bytes(),
            hold.event.0,
            hold.holder.caller.bytes(),
            hold.holder.name.as_str(),
            state_number(&hold.state),
            hold.state.booking().map(|booking| *booking.bytes()),
            reason_of(&hold.state),
            stored(hold.fence.0)?,
            units,
            hold.created_at.ms(),
            hold.expires_at.ms(),
            hold.max_expires_at.ms(),
            hold.together,
            sum,
        ])?;
        Ok(rows)
    }
}

fn read(row: &Row<'_>) -> Result<Hold, Fault> {
    let id = HoldId::from_bytes(row.get(0)?);
    let illegal = |what: &str| Fault::damaged(TABLE, format!("{what} of {id} is illegal"));
    let name = HolderName::parse(row.get_ref(3)?.as_str().map_err(|_| illegal("holder"))?);
    let reason: Option<String> = row.get(6)?;
    let reason = reason
        .map(|text| Text::parse(&text).map_err(|_| illegal("reason")))
        .transpose()?;
    let packed = row.get_ref(8)?.as_blob().map_err(|_| illegal("units"))?;
    let hold = Hold {
        id,
        event: EventNo(small(row.get(1)?, TABLE)?),
        holder: Holder {
            caller: CallerId::from_bytes(row.get(2)?),
            name: name.map_err(|_| illegal("holder"))?,
        },
        state: state_of(row.get(4)?, row.get(5)?, reason)?,
        fence: Fence(unsigned(row.get(7)?, TABLE)?),
        units: unpack(packed).ok_or_else(|| illegal("units"))?,
        created_at: Timestamp::from_ms(row.get(9)?),
        expires_at: Timestamp::from_ms(row.get(10)?),
        max_expires_at: Timestamp::from_ms(row.get(11)?),
        together: row.get(12)?,
    };
    require_sum(TABLE, checksum(&hold, packed)?, row.get(13)?, || {
        id.to_string()
    })?;
    Ok(hold)
}

/// A hold by its id.
pub(crate) fn find(connection: &Connection, id: HoldId) -> Result<Option<Hold>, Fault> {
    let mut statement = connection.prepare_cached(HOLD)?;
    statement
        .query_row([id.bytes()], |row| Ok(read(row)))
        .optional()?
        .transpose()
}

/// The holds of an event after an id, in the order of their ids.
pub(crate) fn page(
    connection: &Connection,
    event: EventNo,
    after: Option<HoldId>,
    limit: usize,
) -> Result<Vec<Hold>, Fault> {
    let mut statement = connection.prepare_cached(HOLDS_AFTER)?;
    let after = after.map_or([0; 16], |id| *id.bytes());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![event.0, after, limit], |row| Ok(read(row)))?;
    rows.map(|row| row?).collect()
}

/// Every hold that is not over, from this id on.
pub(crate) fn each_live(
    connection: &Connection,
    from: HoldId,
    mut take: impl FnMut(Hold) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut statement = connection.prepare(LIVE_HOLDS)?;
    let mut rows = statement.query([from.bytes()])?;
    while let Some(row) = rows.next()? {
        take(read(row)?)?;
    }
    Ok(())
}

/// Every hold of the ledger. A damaged row is given as the fault it is, and the walk goes on.
pub(crate) fn each(
    connection: &Connection,
    mut take: impl FnMut(Result<Hold, Fault>),
) -> Result<(), Fault> {
    let mut statement = connection.prepare(ALL_HOLDS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(read(row));
    }
    Ok(())
}

/// Every hold of an event. A damaged row is given as the fault it is, and the walk goes on.
pub(crate) fn each_of(
    connection: &Connection,
    event: EventNo,
    mut take: impl FnMut(Result<Hold, Fault>),
) -> Result<(), Fault> {
    let mut statement = connection.prepare(HOLDS_OF_EVENT)?;
    let mut rows = statement.query([event.0])?;
    while let Some(row) = rows.next()? {
        take(read(row));
    }
    Ok(())
}
