//! Events: what is sold, at which prices, by which policy.

use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use soldonce_core::{Chart, Event, EventNo, Policy, Timestamp};

use super::{execute, first_row, summed};
use crate::ledger::rows::Damaged;
use crate::ledger::rows::column::Column;
use crate::ledger::rows::events::{CHART_NO, IS_DROPPED, get, put};
use crate::ledger::rows::policy::{policy_from_json, policy_to_json, prices_to_json};
use crate::ledger::rows::reader::Reader;
use crate::ledger::sqlite::fault::Fault;

const TABLE: &str = "events";
const STEADY: &str = "steady_terms";

statements! {
    INSERT_EVENT = "-- insert_event
INSERT INTO events (event_no, id, name, starts_at, currency, chart_no, prices, policy, cancelled,
                    created_at, fingerprint, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

    UPDATE_EVENT = "-- update_event
UPDATE events SET name = ?3, starts_at = ?4, policy = ?8, cancelled = ?9, checksum = ?12
WHERE event_no = ?1 AND id = ?2 AND currency = ?5 AND chart_no = ?6 AND prices = ?7
  AND created_at = ?10 AND fingerprint = ?11";

    NOTE_CHANGE = "-- note_change
UPDATE events SET changed_at = ?2 WHERE event_no = ?1";

    EVENTS = concat!(
        "-- events\nSELECT",
        event_columns!(),
        ", checksum, EXISTS (SELECT 1 FROM dropped_events d WHERE d.event_no = events.event_no)
FROM events ORDER BY event_no"
    );

    STORED_EVENT = "-- stored_event
SELECT chart_no, policy FROM events WHERE event_no = ?1";

    ADD_STEADY_TERMS = "-- add_steady_terms
INSERT INTO steady_terms (event_no, checksum) VALUES (?1, ?2)";

    END_STEADY_TERMS = "-- end_steady_terms
DELETE FROM steady_terms WHERE event_no = ?1";

    STEADY_TERMS = "-- steady_terms
SELECT event_no, checksum FROM steady_terms WHERE event_no = ?1";
}

/// Writes an event that is not in the file.
pub(crate) fn insert(connection: &Connection, event: &Event, chart_no: i64) -> Result<(), Fault> {
    write(connection, INSERT_EVENT, event, chart_no)?;
    let row = [Column::Small(event.no.0)];
    summed::write(connection, ADD_STEADY_TERMS, STEADY, &row)
}

/// Returns the policy of an event if it never changed; none if it did, or was made before that was
/// recorded.
pub(crate) fn steady_terms(
    connection: &Connection,
    event: &Event,
) -> Result<Option<Policy>, Fault> {
    let name = |_: &_| format!("event `{}`", event.id.as_str());
    let read = |row: &Row<'_>| summed::read(row, STEADY, Reader::get::<EventNo>, name);
    let found = first_row(connection, STEADY_TERMS, [event.no.0], read)?;
    Ok(found.map(|_| event.policy.clone()))
}

/// Writes what may change of an event that is in the file.
pub(crate) fn update(connection: &Connection, event: &Event, now: Timestamp) -> Result<(), Fault> {
    let mut statement = connection.prepare_cached(STORED_EVENT)?;
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let (chart_no, policy): (i64, String) = statement.query_row([event.no.0], read)?;
    if policy != policy_to_json(&event.policy)? {
        execute(connection, END_STEADY_TERMS, [event.no.0])?;
    }
    write(connection, UPDATE_EVENT, event, chart_no)?;
    execute(connection, NOTE_CHANGE, params![event.no.0, now.ms()]).map(drop)
}

fn write(
    connection: &Connection,
    sql: &'static str,
    event: &Event,
    chart_no: i64,
) -> Result<(), Fault> {
    let prices = prices_to_json(&event.prices)?;
    let policy = policy_to_json(&event.policy)?;
    let row = put(event, chart_no, &prices, &policy);
    summed::write(connection, sql, TABLE, &row)
}

/// Reads every event that was not dropped, by number. `chart` returns the chart of a number.
pub(crate) fn all(
    connection: &Connection,
    mut chart: impl FnMut(i64) -> Result<Arc<Chart>, Fault>,
) -> Result<Vec<Event>, Fault> {
    let mut statement = connection.prepare_cached(EVENTS)?;
    let mut rows = statement.query([])?;
    let (mut events, mut next) = (Vec::new(), 0_i64);
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? != next {
            return Err(Fault::damaged(TABLE, format!("event {next} is missing")));
        }
        next += 1;
        if !row.get::<_, bool>(IS_DROPPED)? {
            events.push(read(row, chart(row.get(CHART_NO)?)?)?);
        }
    }
    Ok(events)
}

fn read(row: &Row<'_>, chart: Arc<Chart>) -> Result<Event, Fault> {
    let name = |event: &Event| format!("event `{}`", event.id.as_str());
    let policy = |_: &_, json: &str| known_policy(json);
    summed::read(row, TABLE, |row| get(row, chart, policy), name)
}

/// Parses a policy; fails if it has unknown fields: the one process that writes the file would lose
/// them.
fn known_policy(json: &str) -> Result<Policy, Damaged> {
    let read = policy_from_json(json)?;
    match read.unknown.first() {
        None => Ok(read.policy),
        Some(name) => Err(Damaged::new(
            TABLE,
            format!("a newer version of Soldonce wrote the policy field `{name}`: start that one"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};
    use soldonce_core::{Amount, Currency, EventId, NewEvent, POLICY_FIELDS, Text, Timestamp};

    use super::*;
    use crate::ledger::sqlite::connection::make_tables;

    fn new_event() -> Event {
        let grid = json!({"format": "grid", "rows": 1, "seats_per_row": 2, "category": "S"});
        let chart = crate::chart::read(grid.to_string().as_bytes())
            .unwrap()
            .chart;
        let new = NewEvent {
            id: EventId::parse("hamlet").unwrap(),
            name: Text::parse("Hamlet").unwrap(),
            starts_at: None,
            currency: Currency::parse("EUR").unwrap(),
            chart: Arc::new(chart),
            prices: [("S".to_owned(), Amount::from_minor(4_500))].into(),
            policy: Policy::default(),
            fingerprint: [1; 32],
        };
        Event::create(EventNo(0), &new, Timestamp::from_ms(1)).unwrap()
    }

    /// Creates a file with one event, whose policy was stored by another build.
    fn with_policy(event: &Event, policy: &Map<String, Value>) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        make_tables(&connection).unwrap();
        insert(&connection, event, 1).unwrap();
        let policy = serde_json::to_string(policy).unwrap();
        let prices = prices_to_json(&event.prices).unwrap();
        let row = put(event, 1, &prices, &policy);
        summed::write(&connection, UPDATE_EVENT, TABLE, &row).unwrap();
        connection
    }

    fn stored() -> Map<String, Value> {
        let json = policy_to_json(&Policy::default()).unwrap();
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn an_event_of_an_older_build_is_read_and_changed() {
        let mut event = new_event();
        for absent in POLICY_FIELDS {
            let mut older = stored();
            older.remove(absent.name).unwrap();
            let connection = with_policy(&event, &older);
            let found = all(&connection, |_| Ok(Arc::clone(&event.chart))).unwrap();
            assert_eq!(found[0].policy, Policy::default(), "{}", absent.name);
            let policy = event.policy.clone();
            event.policy.units_per_hold_max = 7;
            update(&connection, &event, event.created_at).unwrap();
            let found = all(&connection, |_| Ok(Arc::clone(&event.chart))).unwrap();
            assert_eq!(found[0].policy, event.policy, "{}", absent.name);
            event.policy = policy;
        }
    }

    /// Guards against a downgrade: the one process that owns the file would lose the newer field.
    #[test]
    fn an_event_of_a_newer_build_is_refused_by_the_name_of_its_field() {
        let event = new_event();
        let mut newer = stored();
        newer.insert("quiet_rows".to_owned(), json!(3));
        let connection = with_policy(&event, &newer);
        let refused = all(&connection, |_| Ok(Arc::clone(&event.chart)));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("`quiet_rows`: start that one"),
            "{refused}"
        );
    }
}
