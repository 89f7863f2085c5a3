//! Dropped events: the row that remains of each, and the deletion of its other rows in small steps.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};
use soldonce_core::{
    CallerId, EventId, EventNo, EventUse, Holder, HolderName, Span, Timestamp,
    limits::DROP_AFTER_MS_MIN,
};

use super::bookings::holder_key;
use super::{all_rows, execute, first_row, summed};
use crate::ledger::Tombstone;
use crate::ledger::rows::codes::{small, unsigned};
use crate::ledger::rows::reader::Reader;
use crate::ledger::rows::{dropped as rows, most};
use crate::ledger::sqlite::fault::{Fault, one_row};

const TABLE: &str = "dropped_events";

statements! {
    /// Counts what is open of an event, and finds the time of its last commit. A change of its
    /// policy or state and the effects of the last days are commits, too, and leave no row in the
    /// audit.
    EVENT_USE = concat!(
        "-- event_use
SELECT (SELECT count(*) FROM bookings
        WHERE (",
        unsettled!(),
        "
               OR events.cancelled IS NOT NULL AND state IN (1, 2) AND payment IN (4, 5)
                  AND (payment_detail ->> 'captured') + coalesce(payment_detail ->> 'bounced', 0)
                    > (payment_detail ->> 'refunded') + coalesce(payment_detail ->> 'elsewhere', 0))
          AND event_no = ?1)
     + (SELECT count(*) FROM outbox o JOIN bookings b ON b.id = o.booking
        WHERE o.done_at IS NULL AND b.event_no = ?1)
     + (SELECT count(*) FROM deliveries d
        WHERE d.state = 0 AND d.endpoint IN (SELECT id FROM webhook_endpoints)
          AND (EXISTS (SELECT 1 FROM holds WHERE id = d.subject AND event_no = ?1)
               OR EXISTS (SELECT 1 FROM bookings WHERE id = d.subject AND event_no = ?1))),
       max(coalesce((SELECT at FROM audit WHERE event_no = ?1 ORDER BY seq DESC LIMIT 1), created_at),
           coalesce(changed_at, 0)),
       coalesce((SELECT max(o.at) FROM outbox o JOIN bookings b ON b.id = o.booking
                 WHERE b.event_no = ?1
                   AND o.n > coalesce((SELECT n FROM outbox WHERE at < ?2 ORDER BY n DESC LIMIT 1), 0)), 0)
FROM events WHERE event_no = ?1"
    );

    INSERT_DROPPED = "-- insert_dropped
INSERT INTO dropped_events (event_no, at, actor, request, seq, hash, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

    DROPPED = concat!(
        "-- dropped\nSELECT",
        dropped_columns!(),
        ", d.checksum,",
        dropped_counts!(),
        ", e.id
FROM dropped_events d JOIN events e USING (event_no) ORDER BY d.event_no"
    );

    NOT_CLEARED = "-- not_cleared
SELECT event_no FROM dropped_events WHERE is_cleared = 0 LIMIT 1";

    CLEAR_UNITS = "-- clear_units
DELETE FROM units WHERE event_no = ?1
  AND unit_no IN (SELECT unit_no FROM units WHERE event_no = ?1 ORDER BY unit_no LIMIT ?2)";

    /// The audit names every hold of the event, and the booking of every sale. A booking that was never paid is one of
    /// the holder of its hold.
    SOME_AUDIT = "-- some_audit
SELECT a.seq, a.n, a.hold, CASE WHEN a.to_state = 2 THEN a.to_owner END, h.caller, h.holder
FROM audit a LEFT JOIN holds h ON h.id = a.hold
WHERE a.event_no = ?1 ORDER BY a.seq, a.n LIMIT ?2";

    BOOKINGS_TO_CLEAR = "-- bookings_to_clear
SELECT id FROM bookings WHERE holder_key = ?2 AND event_no = ?1 LIMIT ?3";

    CLEAR_LINES = "-- clear_lines
DELETE FROM lines WHERE booking = ?2 AND event_no = ?1";
    CLEAR_KEPT = "-- clear_kept
DELETE FROM kept_replies WHERE subject = ?1";
    CLEAR_OUTBOX = "-- clear_outbox
DELETE FROM outbox WHERE booking = ?1 AND done_at IS NOT NULL";
    CLEAR_BOOKING = "-- clear_booking
DELETE FROM bookings WHERE id = ?2 AND event_no = ?1";
    CLEAR_HOLD = "-- clear_hold
DELETE FROM holds WHERE id = ?2 AND event_no = ?1";
    CLEAR_AUDIT = "-- clear_audit
DELETE FROM audit WHERE event_no = ?1 AND seq = ?2 AND n = ?3";
    CLEAR_CHAIN = "-- clear_chain
DELETE FROM chains WHERE event_no = ?1";
    CLEAR_TERMS = "-- clear_terms
DELETE FROM steady_terms WHERE event_no = ?1";

    COUNT_CLEARED = "-- count_cleared
UPDATE dropped_events SET units = units + ?2, bookings = bookings + ?3, transitions = transitions + ?4,
                          is_cleared = ?5
WHERE event_no = ?1";
}

/// Counts what is open of an event except its live holds, which memory counts, and finds the time
/// of its last commit.
pub(crate) fn event_use(
    connection: &Connection,
    event: EventNo,
    now: Timestamp,
) -> Result<EventUse, Fault> {
    let recent = now.minus(Span::from_ms(DROP_AFTER_MS_MIN)).ms();
    let mut statement = connection.prepare_cached(EVENT_USE)?;
    let found = statement.query_row(params![event.0, recent], |row| {
        let (commit, effect): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, commit.max(effect)))
    })?;
    Ok(EventUse {
        open: unsigned(found.0, TABLE)?,
        last_commit: Timestamp::from_ms(found.1),
    })
}

/// Marks an event as dropped.
pub(crate) fn insert(
    connection: &Connection,
    event: EventNo,
    tombstone: &Tombstone,
) -> Result<(), Fault> {
    let row = rows::put(event, tombstone);
    summed::write(connection, INSERT_DROPPED, TABLE, &row)
}

/// Reads every dropped event, by number.
pub(crate) fn all(
    connection: &Connection,
) -> Result<BTreeMap<EventNo, (EventId, Tombstone)>, Fault> {
    all_rows(connection, DROPPED, [], read)
}

fn read(row: &Row<'_>) -> Result<(EventNo, (EventId, Tombstone)), Fault> {
    let mut row = Reader::sqlite(row, TABLE);
    let (no, written) = rows::get(&mut row)?;
    row.require_sum(|| format!("dropped event {}", no.0))?;
    let tombstone = rows::get_counts(&mut row, written)?;
    let id = EventId::parse(row.get()?).map_err(|_| row.illegal("id"))?;
    Ok((no, (id, tombstone)))
}

/// Finds a dropped event that still has rows.
pub(crate) fn next(connection: &Connection) -> Result<Option<EventNo>, Fault> {
    first_row(connection, NOT_CLEARED, [], |row| {
        Ok(EventNo(small(row.get(0)?, TABLE)?))
    })
}

/// How many rows one transaction deleted.
#[derive(Default)]
struct ClearCounts {
    units: usize,
    bookings: usize,
    transitions: usize,
    /// All of them.
    rows: usize,
    is_all: bool,
}

/// Deletes about `limit` rows of a dropped event, one booking's lines more or less, in an open
/// transaction: units first, because the lines of units that are sold cannot be deleted.
pub(crate) fn clear(connection: &Connection, event: EventNo, limit: usize) -> Result<(), Fault> {
    let units = execute(connection, CLEAR_UNITS, params![event.0, most(limit)])?;
    let mut cleared = ClearCounts {
        units,
        rows: units,
        ..ClearCounts::default()
    };
    if cleared.rows < limit {
        clear_history(connection, event, limit, &mut cleared)?;
    }
    let count = |rows: usize| i64::try_from(rows).unwrap_or(i64::MAX);
    let (units, bookings) = (count(cleared.units), count(cleared.bookings));
    let (transitions, is_all) = (count(cleared.transitions), cleared.is_all);
    let values = params![event.0, units, bookings, transitions, is_all];
    one_row("count_cleared", execute(connection, COUNT_CLEARED, values)?)
}

/// Scans the audit; for each row deletes the bookings of its hold's holder, its own booking, its
/// hold, then the row.
fn clear_history(
    connection: &Connection,
    event: EventNo,
    limit: usize,
    cleared: &mut ClearCounts,
) -> Result<(), Fault> {
    let values = params![event.0, most(limit)];
    let steps: Vec<Step> = all_rows(connection, SOME_AUDIT, values, Step::read)?;
    for step in &steps {
        clear_step(connection, event, step, (limit, cleared))?;
        if cleared.rows >= limit {
            return Ok(());
        }
    }
    for rest in [CLEAR_CHAIN, CLEAR_TERMS] {
        execute(connection, rest, [event.0])?;
    }
    cleared.is_all = true;
    Ok(())
}

/// Deletes what a row of the audit refers to, then the row, unless the limit is reached before.
fn clear_step(
    connection: &Connection,
    event: EventNo,
    step: &Step,
    (limit, cleared): (usize, &mut ClearCounts),
) -> Result<(), Fault> {
    if let Some(holder) = &step.holder {
        let values = params![event.0, holder_key(holder), most(limit)];
        let found: Vec<[u8; 16]> =
            all_rows(connection, BOOKINGS_TO_CLEAR, values, |row| Ok(row.get(0)?))?;
        for booking in found {
            if cleared.rows >= limit {
                return Ok(());
            }
            clear_booking(connection, event, booking, cleared)?;
        }
    }
    if let Some(booking) = step.booking {
        clear_booking(connection, event, booking, cleared)?;
    }
    cleared.rows += execute(connection, CLEAR_HOLD, params![event.0, step.hold])?;
    let values = params![event.0, step.seq, step.n];
    one_row("clear_audit", execute(connection, CLEAR_AUDIT, values)?)?;
    cleared.transitions += 1;
    cleared.rows += 1;
    Ok(())
}

/// A row of the audit, with the hold, booking and holder that it refers to.
struct Step {
    seq: i64,
    n: i64,
    hold: Option<[u8; 16]>,
    booking: Option<[u8; 16]>,
    holder: Option<Holder>,
}

impl Step {
    fn read(row: &Row<'_>) -> Result<Self, Fault> {
        let (caller, name): (Option<[u8; 16]>, Option<String>) = (row.get(4)?, row.get(5)?);
        let name = name.map(|name| HolderName::parse(&name)).transpose();
        let name = name.map_err(|_| Fault::damaged("holds", "a holder is illegal"))?;
        let holder = caller.zip(name).map(|(caller, name)| Holder {
            caller: CallerId::from_bytes(caller),
            name,
        });
        Ok(Self {
            seq: row.get(0)?,
            n: row.get(1)?,
            hold: row.get(2)?,
            booking: row.get(3)?,
            holder,
        })
    }
}

fn clear_booking(
    connection: &Connection,
    event: EventNo,
    booking: [u8; 16],
    cleared: &mut ClearCounts,
) -> Result<(), Fault> {
    for of_booking in [CLEAR_KEPT, CLEAR_OUTBOX] {
        cleared.rows += execute(connection, of_booking, [booking])?;
    }
    let values = params![event.0, booking];
    cleared.rows += execute(connection, CLEAR_LINES, values)?;
    let gone = execute(connection, CLEAR_BOOKING, values)?;
    cleared.bookings += gone;
    cleared.rows += gone;
    Ok(())
}
