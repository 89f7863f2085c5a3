//! Holds, and the holders whose budgets they count against.

use soldonce_core::{HoldId, Holder};

use super::Id;
use crate::ledger::postgres::database::Select;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::reader::Reader;

macro_rules! select {
    ($name:literal, $which:literal) => {
        (
            concat!(
                $name,
                "\nSELECT",
                hold_columns!(),
                " FROM holds WHERE ",
                $which
            ),
            "holds",
        )
    };
}

pub(in super::super) const LIVE_HOLDS: Select = select!(
    "-- live_holds",
    "id IN (SELECT owner FROM units WHERE event_no = $1 AND state = 1)"
);

pub(in super::super) const HOLDS: Select = select!(
    "-- holds",
    "id = ANY ($1)
  AND NOT EXISTS (SELECT FROM dropped_events d WHERE d.event_no = holds.event_no)"
);

pub(in super::super) const HOLDS_OF_EVENT: Select =
    select!("-- holds_of_event", "event_no = $1 ORDER BY id");

pub(in super::super) const HOLDS_AFTER: Select = select!(
    "-- holds_after",
    "event_no = $1 AND id > $2 ORDER BY id LIMIT $3"
);

/// Selects the live holds of a holder. Reads only events in which the holder ever held anything.
pub(in super::super) const HOLDS_OF_HOLDER: &str = "-- holds_of_holder
SELECT h.id FROM holders o
CROSS JOIN LATERAL (
    SELECT DISTINCT owner FROM units WHERE event_no = o.event_no AND state = 1
) AS u
JOIN holds h ON h.id = u.owner
WHERE o.event_no = ANY ($1) AND o.key = $2 AND h.caller = $3 AND h.holder = $4";

pub(in super::super) const EVENT_OF_HOLD: &str = "-- event_of_hold
SELECT event_no FROM holds WHERE id = $1
  AND NOT EXISTS (SELECT FROM dropped_events d WHERE d.event_no = holds.event_no)";

/// Selects holders who have bought. Of the others, only those of live holds count.
pub(in super::super) const BUYERS_OF_EVENT: &str = "-- buyers_of_event
SELECT caller, holder, bought, version FROM holders WHERE event_no = $1 AND bought > 0";

pub(in super::super) const HOLDERS_BY_KEY: &str = "-- holders_by_key
SELECT caller, holder, bought, version FROM holders WHERE event_no = $1 AND key = ANY ($2)";

/// The row of a holder: the units that count against the holder's budget, and its version.
pub(in super::super) struct HolderRow {
    pub(in super::super) holder: Holder,
    pub(in super::super) bought: u32,
    pub(in super::super) version: i64,
}

pub(in super::super) fn get_holder(row: &mut Reader<'_>) -> Result<HolderRow, Damaged> {
    Ok(HolderRow {
        holder: row.get()?,
        bought: row.get()?,
        version: row.get()?,
    })
}

/// Converts ids of holds to parameters of a statement.
pub(in super::super) fn ids(holds: impl IntoIterator<Item = HoldId>) -> Vec<Id> {
    holds.into_iter().map(|id| Id(*id.bytes())).collect()
}
