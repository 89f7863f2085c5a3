//! Events.

use std::sync::Arc;

use soldonce_core::{Chart, Currency, Event, EventId, EventState, Policy, Text, Timestamp};

use super::Damaged;
use super::column::Column;
use super::policy::prices_from_json;
use super::reader::Reader;

/// The columns that [`get`] reads. The number of the chart has the index [`CHART_NO`].
macro_rules! event_columns {
    () => {
        " event_no, id, name, starts_at, currency, chart_no, prices, policy, cancelled, created_at,
          fingerprint"
    };
}

/// The index of the chart's number, which is read before the rest.
pub(crate) const CHART_NO: usize = 5;
/// The index, after a column of the store's own, of the flag whether the event was dropped.
pub(crate) const IS_DROPPED: usize = 12;

/// Returns the columns of an event; `prices` and `policy` are JSON.
pub(crate) fn put<'a>(
    event: &'a Event,
    chart_no: i64,
    prices: &'a str,
    policy: &'a str,
) -> [Column<'a>; 11] {
    [
        Column::Small(event.no.0),
        Column::Text(event.id.as_str()),
        Column::Text(event.name.as_str()),
        Column::OptLong(event.starts_at.map(Timestamp::ms)),
        Column::Text(event.currency.as_str()),
        Column::Long(chart_no),
        Column::Text(prices),
        Column::Text(policy),
        Column::OptText(event.cancelled().map(Text::as_str)),
        Column::Long(event.created_at.ms()),
        Column::Bytes(&event.fingerprint),
    ]
}

/// Reads an event; `policy` parses the policy's JSON for the event with this id.
pub(crate) fn get(
    row: &mut Reader<'_>,
    chart: Arc<Chart>,
    policy: impl FnOnce(&EventId, &str) -> Result<Policy, Damaged>,
) -> Result<Event, Damaged> {
    let no = row.get()?;
    let id = EventId::parse(row.get()?).map_err(|_| row.illegal("id"))?;
    let (name, starts_at) = (row.get()?, row.get()?);
    let currency = Currency::parse(row.get()?).ok_or_else(|| row.illegal("currency"))?;
    let _chart_no: i64 = row.get()?;
    let prices = prices_from_json(row.get()?)?;
    if prices.len() != chart.categories().len() {
        return Err(row.illegal("number of prices"));
    }
    Ok(Event {
        no,
        policy: policy(&id, row.get()?)?,
        id,
        name,
        starts_at,
        currency,
        chart,
        prices,
        state: row
            .get::<Option<_>>()?
            .map_or(EventState::Open, EventState::Cancelled),
        created_at: row.get()?,
        fingerprint: row.get()?,
    })
}
