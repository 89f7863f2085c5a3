//! The feed as this server shows it: what was numbered, in order, whoever wrote it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soldonce_core::{Commit, EventNo, Seq};
use tokio_postgres::types::Type;

use super::Parts;
use super::database::{Lane, Value};
use super::failure::Failure;
use super::limits::FEED_BATCHES_MAX;
use super::replica::Named;
use super::tables::{Columns, Id};
use crate::ledger::rows::codes::unsigned;

const LAST: &str = "-- last
SELECT coalesce(max(n), 0) FROM feed";

const NUMBERED: &str = "-- numbered
SELECT f.n, f.event_no, f.first_seq, f.batch, b.server
FROM feed f JOIN batches b ON b.id = f.batch
WHERE f.n > $1 ORDER BY f.n LIMIT $2";

/// Some batches of the feed.
#[derive(Default)]
struct Step {
    last: i64,
    /// Event and first number of each batch, in the order of the feed.
    batches: Vec<(Id, EventNo, Seq)>,
    /// Events that another server wrote to.
    foreign: BTreeSet<EventNo>,
}

/// Where the feed ends now.
pub(super) async fn last(lane: &mut Lane) -> Result<i64, Failure> {
    let rows = lane.rows(LAST, &[]).await?;
    let last = rows.first().map(|row| Columns::new(row, "feed").get(0));
    Ok(last.transpose()?.unwrap_or(0))
}

impl Parts {
    /// Shows what was numbered after `last`; gives the new last one.
    ///
    /// # Errors
    /// [`Failure`]; then it is to be called with the same `last` again.
    pub(super) async fn follow(&self, last: i64) -> Result<i64, Failure> {
        let step = self.numbered(last).await?;
        if step.batches.is_empty() {
            return Ok(last);
        }
        let is_known = |event: &EventNo| self.desk.catalogue.booth(*event).is_some();
        if !step.foreign.iter().all(is_known) {
            self.discover().await?;
        }
        for event in &step.foreign {
            if let Some(booth) = self.desk.catalogue.booth(*event) {
                // The memory first, then a connection: in the order of everybody.
                let mut replica = booth.replica.lock().await;
                let mut lane = self.desk.database.lane().await?;
                let named = Named::default();
                let refresh = self.desk.refresh(&mut lane, &booth, &mut replica, &named);
                refresh.await?;
            }
        }
        let mut lane = self.desk.database.lane().await?;
        for (event, commits) in self.commits(&mut lane, &step).await? {
            if let (Some(booth), Some(last)) = (self.desk.catalogue.booth(event), commits.last()) {
                self.desk.observer.numbered(&commits);
                booth.show(last.seq);
            }
        }
        Ok(step.last)
    }

    async fn numbered(&self, last: i64) -> Result<Step, Failure> {
        let values: [Value<'_>; 2] = [(&last, Type::INT8), (&FEED_BATCHES_MAX, Type::INT8)];
        let rows = self.desk.database.rows(NUMBERED, &values).await?;
        let mut step = Step {
            last,
            ..Step::default()
        };
        for row in &rows {
            let columns = Columns::new(row, "feed");
            let event = EventNo(columns.small(1)?);
            let first = unsigned(columns.get(2)?, "feed")?;
            step.last = columns.get(0)?;
            step.batches.push((columns.get(3)?, event, Seq(first)));
            if columns.get::<Id>(4)? != self.desk.server {
                step.foreign.insert(event);
            }
        }
        Ok(step)
    }

    /// The commits of some batches with their numbers, by event.
    async fn commits(
        &self,
        lane: &mut Lane,
        step: &Step,
    ) -> Result<BTreeMap<EventNo, Vec<Commit>>, Failure> {
        let events = step.batches.iter().map(|(id, event, _)| (*id, *event));
        let mut found = self.desk.commits_of(lane, &events.collect()).await?;
        // What nobody else has need not be copied. If they are shown in vain, they are read back.
        self.desk.recent.forget(found.keys().copied());
        let mut commits: BTreeMap<EventNo, Vec<Commit>> = BTreeMap::new();
        for (id, event, first) in &step.batches {
            let batch = found.remove(id).unwrap_or_default();
            let numbered = (first.0..).map(Seq).zip(Arc::unwrap_or_clone(batch));
            let numbered = numbered.map(|(seq, commit)| Commit { seq, ..commit });
            commits.entry(*event).or_default().extend(numbered);
        }
        Ok(commits)
    }
}
