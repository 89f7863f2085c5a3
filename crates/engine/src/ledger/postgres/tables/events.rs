//! Events and their charts.

use std::sync::Arc;

use soldonce_core::{
    Chart, Currency, Event, EventId, EventNo, EventState, Policy, Text, Timestamp,
};
use tokio_postgres::Row;

use super::Columns;
use crate::ledger::rows::Damaged;
use crate::ledger::rows::policy::{policy_from_json, prices_from_json};

const TABLE: &str = "events";
const CHARTS: &str = "charts";

pub(in super::super) const EVENTS_FROM: &str = "-- events_from
SELECT event_no, id, name, starts_at, currency, chart_no, prices, policy, cancelled, created_at,
       fingerprint, version
FROM events WHERE event_no >= $1 ORDER BY event_no";

pub(in super::super) const EVENT: &str = "-- event
SELECT event_no, id, name, starts_at, currency, chart_no, prices, policy, cancelled, created_at,
       fingerprint, version
FROM events WHERE event_no = $1";

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
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, $9, $10, 1)";

/// An event, how often it has changed, and the number of its chart.
pub(in super::super) struct EventRow {
    pub(in super::super) event: Event,
    pub(in super::super) version: i64,
}

impl EventRow {
    /// The event's terms, if they never changed: the only change of its row is then its cancellation.
    pub(in super::super) fn steady_terms(&self) -> Option<Policy> {
        let unchanged = match self.event.state {
            EventState::Open => 1,
            EventState::Cancelled(_) => 2,
        };
        (self.version == unchanged).then(|| self.event.policy.clone())
    }
}

/// The number of the row's chart.
pub(in super::super) fn chart_no(row: &Row) -> Result<i64, Damaged> {
    Columns::new(row, TABLE).get(5)
}

pub(in super::super) fn read(row: &Row, chart: Arc<Chart>) -> Result<EventRow, Damaged> {
    let columns = Columns::new(row, TABLE);
    let text = |at: usize| -> Result<Text, Damaged> {
        columns.text(at)?.ok_or_else(|| columns.illegal("text"))
    };
    let starts_at: Option<i64> = columns.get(3)?;
    let fingerprint: &[u8] = columns.get(10)?;
    let illegal = |what: &'static str| columns.illegal(what);
    let policy = policy_from_json(columns.get(7)?)?;
    if !policy.unknown.is_empty() {
        let (event, fields) = (columns.get::<&str>(1)?, policy.unknown.join(", "));
        tracing::warn!(
            event,
            fields,
            "a newer server set policy fields that this one ignores"
        );
    }
    let event = Event {
        no: EventNo(columns.small(0)?),
        id: EventId::parse(columns.get(1)?).map_err(|_| illegal("id"))?,
        name: text(2)?,
        starts_at: starts_at.map(Timestamp::from_ms),
        currency: Currency::parse(columns.get(4)?).ok_or_else(|| illegal("currency"))?,
        chart,
        prices: prices_from_json(columns.get(6)?)?,
        policy: policy.policy,
        state: match columns.text(8)? {
            None => EventState::Open,
            Some(reason) => EventState::Cancelled(reason),
        },
        created_at: Timestamp::from_ms(columns.get(9)?),
        fingerprint: fingerprint.try_into().map_err(|_| illegal("fingerprint"))?,
    };
    if event.prices.len() != event.chart.categories().len() {
        return Err(illegal("number of prices"));
    }
    Ok(EventRow {
        event,
        version: columns.get(11)?,
    })
}

/// Reads a chart's document again.
pub(in super::super) fn read_chart(number: i64, row: &Row) -> Result<Chart, Damaged> {
    let columns = Columns::new(row, CHARTS);
    let digest: &[u8] = columns.get(2)?;
    let digest = digest.try_into().map_err(|_| columns.illegal("digest"))?;
    crate::ledger::rows::charts::read_again(number, columns.get(0)?, columns.small(1)?, digest)
}

/// Staff's reason, for an event that was called off.
pub(in super::super) fn cancelled(event: &Event) -> Option<&str> {
    match &event.state {
        EventState::Open => None,
        EventState::Cancelled(reason) => Some(reason.as_str()),
    }
}
