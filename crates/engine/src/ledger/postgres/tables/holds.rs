//! Holds, and the holders whose budgets they count against.

use soldonce_core::{BookingId, EventNo, Fence, Hold, HoldId, Holder, Timestamp};
use tokio_postgres::Row;

use super::{Columns, Id};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::codes::state_of;
use crate::ledger::rows::packed::unpack;

const TABLE: &str = "holds";
const HOLDERS: &str = "holders";

pub(in super::super) const LIVE_HOLDS: &str = "-- live_holds
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together
FROM holds
WHERE id IN (SELECT owner FROM units WHERE event_no = $1 AND state = 1)";

pub(in super::super) const HOLDS: &str = "-- holds
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together
FROM holds WHERE id = ANY ($1)";

pub(in super::super) const HOLDS_OF_EVENT: &str = "-- holds_of_event
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together
FROM holds WHERE event_no = $1 ORDER BY id";

pub(in super::super) const HOLDS_AFTER: &str = "-- holds_after
SELECT id, event_no, caller, holder, state, booking, reason, fence, units, created_at, expires_at,
       max_expires_at, together
FROM holds WHERE event_no = $1 AND id > $2 ORDER BY id LIMIT $3";

/// Only events in which he ever held anything are looked through.
pub(in super::super) const HOLDS_OF_HOLDER: &str = "-- holds_of_holder
SELECT h.id FROM holders o
CROSS JOIN LATERAL (
    SELECT DISTINCT owner FROM units WHERE event_no = o.event_no AND state = 1
) AS u
JOIN holds h ON h.id = u.owner
WHERE o.event_no = ANY ($1) AND o.key = $2 AND h.caller = $3 AND h.holder = $4";

pub(in super::super) const EVENT_OF_HOLD: &str = "-- event_of_hold
SELECT event_no FROM holds WHERE id = $1";

/// Of the others, those of live holds count.
pub(in super::super) const BUYERS_OF_EVENT: &str = "-- buyers_of_event
SELECT caller, holder, bought, version FROM holders WHERE event_no = $1 AND bought > 0";

pub(in super::super) const HOLDERS_BY_KEY: &str = "-- holders_by_key
SELECT caller, holder, bought, version FROM holders WHERE event_no = $1 AND key = ANY ($2)";

pub(in super::super) fn read(row: &Row) -> Result<Hold, Damaged> {
    let columns = Columns::new(row, TABLE);
    let (id, state, booking): (Id, i16, Option<Id>) =
        (columns.get(0)?, columns.get(4)?, columns.get(5)?);
    let booking: Option<[u8; 16]> = booking.map(|id| id.0);
    Ok(Hold {
        id: HoldId::from_bytes(id.0),
        event: EventNo(columns.small(1)?),
        holder: columns.holder(2, 3)?,
        state: state_of(state.into(), booking, columns.text(6)?)?,
        fence: Fence(columns.unsigned(7)?),
        units: unpack(columns.get(8)?).ok_or_else(|| columns.illegal("list of units"))?,
        created_at: Timestamp::from_ms(columns.get(9)?),
        expires_at: Timestamp::from_ms(columns.get(10)?),
        max_expires_at: Timestamp::from_ms(columns.get(11)?),
        together: columns.get(12)?,
    })
}

/// What counts against a holder.
pub(in super::super) struct HolderRow {
    pub(in super::super) holder: Holder,
    pub(in super::super) bought: u32,
    pub(in super::super) version: i64,
}

pub(in super::super) fn read_holder(row: &Row) -> Result<HolderRow, Damaged> {
    let columns = Columns::new(row, HOLDERS);
    Ok(HolderRow {
        holder: columns.holder(0, 1)?,
        bought: columns.small(2)?,
        version: columns.get(3)?,
    })
}

/// The ids as they are asked for.
pub(in super::super) fn ids(holds: impl IntoIterator<Item = HoldId>) -> Vec<Id> {
    holds.into_iter().map(|id| Id(*id.bytes())).collect()
}

/// The ids as they are asked for.
pub(in super::super) fn booking_ids(bookings: impl IntoIterator<Item = BookingId>) -> Vec<Id> {
    bookings.into_iter().map(|id| Id(*id.bytes())).collect()
}
