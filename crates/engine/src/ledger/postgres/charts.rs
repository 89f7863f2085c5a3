//! A cache of charts, shared by the events that use them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use soldonce_core::Chart;
use tokio_postgres::Row;

use super::bind::bind;
use super::database::Connection;
use super::failure::Failure;
use super::tables::events::{self, EventRow};
use crate::ledger::rows::Damaged;
use crate::locks::lock;

#[derive(Default)]
pub(super) struct Charts(Mutex<BTreeMap<i64, Arc<Chart>>>);

impl Charts {
    /// Reads an event from its row, with its chart: from the cache, or else from the database.
    pub(super) async fn event(
        &self,
        connection: &mut Connection,
        row: &Row,
    ) -> Result<EventRow, Failure> {
        let number = events::chart_no(row)?;
        let known = lock(&self.0).get(&number).map(Arc::clone);
        let chart = match known {
            Some(chart) => chart,
            None => self.fetch(connection, number).await?,
        };
        Ok(events::read(row, chart)?)
    }

    /// Reads the event with this number, and its chart. None if there is no such event.
    pub(super) async fn event_of(
        &self,
        connection: &mut Connection,
        no: i32,
    ) -> Result<Option<EventRow>, Failure> {
        let rows = connection.rows(events::EVENT, &[bind(&no)]).await?;
        match rows.first() {
            Some(row) => self.event(connection, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Evicts the charts that no event in memory uses.
    pub(super) fn evict(&self) {
        lock(&self.0).retain(|_, chart| Arc::strong_count(chart) > 1);
    }

    async fn fetch(&self, connection: &mut Connection, number: i64) -> Result<Arc<Chart>, Failure> {
        let rows = connection.rows(events::CHART, &[bind(&number)]).await?;
        let missing = || Damaged::new("charts", format!("there is no chart {number}"));
        let row = rows.first().ok_or_else(missing)?;
        let chart = Arc::new(events::read_chart(number, row)?);
        let mut known = lock(&self.0);
        Ok(Arc::clone(known.entry(number).or_insert(chart)))
    }
}
