//! Events and their charts.

use std::sync::Arc;

use soldonce_core::{Chart, Event, EventId, EventNo, EventState, Policy};
use tokio_postgres::Row;

use super::Columns;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::charts::read_again;
use crate::ledger::rows::events::{CHART_NO, IS_DROPPED, get};
use crate::ledger::rows::policy::policy_from_json;
use crate::ledger::rows::reader::Reader;

const TABLE: &str = "events";
const CHARTS: &str = "charts";

/// Selects what [`read`] reads.
macro_rules! select {
    ($name:literal, $which:literal) => {
        concat!(
            $name,
            "\nSELECT",
            event_columns!(),
            ", version FROM events WHERE ",
            $which
        )
    };
}

/// Selects what [`read`] reads, and whether the event was dropped.
pub(in super::super) const EVENTS_FROM: &str = concat!(
    "-- events_from\nSELECT",
    event_columns!(),
    ", version, EXISTS (SELECT FROM dropped_events d WHERE d.event_no = events.event_no)
FROM events WHERE event_no >= $1 ORDER BY event_no"
);

pub(in super::super) const EVENT: &str = select!("-- event", "event_no = $1");

/// Selects an event by its id, for `unit_history`.
pub(in super::super) const EVENT_BY_ID: &str = select!("-- event_by_id", "id = $1");

pub(in super::super) const CHART: &str = "-- chart
SELECT document, units, digest FROM charts WHERE chart_no = $1";

pub(in super::super) const CHART_BY_HASH: &str = "-- chart_by_hash
SELECT chart_no FROM charts WHERE sha256 = $1";

pub(in super::super) const ADD_CHART: &str = "-- add_chart
INSERT INTO charts (chart_no, document, sha256, units, digest)
SELECT coalesce(max(chart_no), 0) + 1, $1, $2, $3, $4 FROM charts RETURNING chart_no";

pub(in super::super) const ADD_EVENT: &str = "-- add_event
INSERT INTO events (event_no, id, name, starts_at, currency, chart_no, prices, policy, cancelled,
                    created_at, fingerprint, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1)";

/// Writes what `store_batch_12` leaves as it is, in the transaction in which that has changed the row.
pub(in super::super) const DESCRIBE_EVENT: &str = "-- describe_event
UPDATE events SET name = $2, starts_at = $3 WHERE event_no = $1";

pub(in super::super) struct EventRow {
    pub(in super::super) event: Event,
    pub(in super::super) version: i64,
}

impl EventRow {
    /// Returns the policy if it never changed: the only change of the row is then a cancellation.
    pub(in super::super) fn steady_terms(&self) -> Option<Policy> {
        let unchanged = match self.event.state {
            EventState::Open => 1,
            EventState::Cancelled(_) => 2,
        };
        (self.version == unchanged).then(|| self.event.policy.clone())
    }
}

/// Reads number and id from a row of [`EVENTS_FROM`]. None if the event was not dropped.
pub(in super::super) fn dropped(row: &Row) -> Result<Option<(EventNo, EventId)>, Damaged> {
    let is_dropped: bool = Columns::new(row, TABLE).get(IS_DROPPED)?;
    if !is_dropped {
        return Ok(None);
    }
    let (no, id) = named(row)?;
    let illegal = || Damaged::new(TABLE, "the id of a row is illegal");
    Ok(Some((no, id.ok_or_else(illegal)?)))
}

/// Reads number and id from the row of an event that may be illegal otherwise. No id if that is illegal, too.
pub(in super::super) fn named(row: &Row) -> Result<(EventNo, Option<EventId>), Damaged> {
    let mut row = Reader::postgres(row, TABLE);
    Ok((row.get()?, EventId::parse(row.get()?).ok()))
}

pub(in super::super) fn chart_no(row: &Row) -> Result<i64, Damaged> {
    Columns::new(row, TABLE).get(CHART_NO)
}

pub(in super::super) fn read(row: &Row, chart: Arc<Chart>) -> Result<EventRow, Damaged> {
    let mut row = Reader::postgres(row, TABLE);
    let event = get(&mut row, chart, known_fields)?;
    let version = row.get()?;
    Ok(EventRow { event, version })
}

/// Parses the fields of a policy that this build knows, and logs the others.
fn known_fields(event: &EventId, json: &str) -> Result<Policy, Damaged> {
    let read = policy_from_json(json)?;
    if !read.unknown.is_empty() {
        let (event, fields) = (event.as_str(), read.unknown.join(", "));
        tracing::warn!(
            event,
            fields,
            "a newer server set policy fields that this one ignores"
        );
    }
    Ok(read.policy)
}

/// Parses a chart's stored document. Fails unless it numbers its units as when it was stored.
pub(in super::super) fn read_chart(number: i64, row: &Row) -> Result<Chart, Damaged> {
    let mut row = Reader::postgres(row, CHARTS);
    read_again(number, row.get()?, row.get()?, row.get()?)
}
