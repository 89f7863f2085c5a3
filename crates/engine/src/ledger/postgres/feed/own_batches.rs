//! A cache of batches that this server wrote and has not published yet: to number and to publish
//! them it need not read their rows back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use soldonce_core::{Commit, EventNo, Timestamp};

use crate::ledger::postgres::bind::bind;
use crate::ledger::postgres::database::Connection;
use crate::ledger::postgres::failure::Failure;
use crate::ledger::postgres::limits::OWN_STEPS_MAX;
use crate::ledger::postgres::tables::{Id, audit};
use crate::locks::lock;

/// Batches of this server, the oldest first. One that is missing is read from the database.
#[derive(Default)]
pub(in super::super) struct OwnBatches(Mutex<Batches>);

#[derive(Default)]
struct Batches {
    /// Their ids rise with time.
    commits: BTreeMap<Id, Arc<Vec<Commit>>>,
    /// Transitions in `commits`.
    steps: usize,
}

impl OwnBatches {
    /// Keeps a batch that was stored at this time, and evicts the oldest ones if there are too
    /// many.
    pub(in super::super) fn add(
        &self,
        id: Id,
        at: Timestamp,
        commits: impl Iterator<Item = Commit>,
    ) {
        let commits: Vec<Commit> = commits.map(|commit| Commit { at, ..commit }).collect();
        // The rows of the audit would show no such commit, and without any nothing is shown.
        let is_shown = |commit: &Commit| !commit.transitions.is_empty();
        if commits.is_empty() || !commits.iter().all(is_shown) {
            return;
        }
        let mut batches = lock(&self.0);
        batches.steps += steps(&commits);
        batches.commits.insert(id, Arc::new(commits));
        // Also those that were shown before their answer came here: none of them is dropped.
        while batches.steps > OWN_STEPS_MAX
            && let Some((_, oldest)) = batches.commits.pop_first()
        {
            batches.steps = batches.steps.saturating_sub(steps(&oldest));
        }
    }

    /// Finds the commits of a batch, without their numbers. None if it is not in memory.
    fn find(&self, id: Id) -> Option<Arc<Vec<Commit>>> {
        lock(&self.0).commits.get(&id).map(Arc::clone)
    }

    /// Removes batches that are about to be published.
    pub(super) fn forget(&self, ids: impl IntoIterator<Item = Id>) {
        let mut batches = lock(&self.0);
        for id in ids {
            if let Some(commits) = batches.commits.remove(&id) {
                batches.steps = batches.steps.saturating_sub(steps(&commits));
            }
        }
    }

    /// Returns the commits of these batches, without numbers: this server's own from memory, the
    /// others from the database. `events` has the event of each batch.
    ///
    /// # Errors
    /// [`Failure`], when the database cannot be read.
    pub(super) async fn commits_of(
        &self,
        connection: &mut Connection,
        events: &BTreeMap<Id, EventNo>,
    ) -> Result<BTreeMap<Id, Arc<Vec<Commit>>>, Failure> {
        let own = |id: &Id| Some((*id, self.find(*id)?));
        let mut commits: BTreeMap<Id, Arc<Vec<Commit>>> = events.keys().filter_map(own).collect();
        let is_missing = |id: &Id| !commits.contains_key(id);
        let missing: Vec<Id> = events.keys().copied().filter(is_missing).collect();
        if !missing.is_empty() {
            let ids = [bind(&missing)];
            let rows = connection.rows(audit::AUDIT_OF_BATCHES, &ids).await?;
            let read = audit::read_batches(events, &rows)?.into_iter();
            commits.extend(read.map(|(id, batch)| (id, Arc::new(batch))));
        }
        Ok(commits)
    }
}

fn steps(commits: &[Commit]) -> usize {
    commits.iter().map(|commit| commit.transitions.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::batch::tests::commit;

    fn id(n: u128) -> Id {
        Id(n.to_be_bytes())
    }

    #[test]
    fn what_was_stored_is_found_as_it_was_stored_until_it_is_forgotten() {
        let recent = OwnBatches::default();
        let at = Timestamp::from_ms(9);
        recent.add(id(1), at, [commit(2), commit(1)].into_iter());
        let found = recent.find(id(1)).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|commit| commit.at == at));
        assert_eq!(recent.find(id(2)), None);
        recent.forget([id(1)]);
        assert_eq!(recent.find(id(1)), None);
        let batches = lock(&recent.0);
        assert_eq!((batches.steps, batches.commits.len()), (0, 0));
    }

    #[test]
    fn a_commit_without_rows_is_not_kept() {
        let recent = OwnBatches::default();
        recent.add(id(1), Timestamp::from_ms(9), [commit(0)].into_iter());
        assert_eq!(recent.find(id(1)), None);
    }

    #[test]
    fn nothing_stays_of_a_batch_that_is_never_shown() {
        let recent = OwnBatches::default();
        recent.add(id(1), Timestamp::from_ms(9), std::iter::empty());
        assert!(lock(&recent.0).commits.is_empty());
    }

    #[test]
    fn the_oldest_goes_when_there_is_too_much() {
        let recent = OwnBatches::default();
        let half = [commit(OWN_STEPS_MAX / 2)];
        for n in 1..=3 {
            recent.add(id(n), Timestamp::from_ms(9), half.clone().into_iter());
        }
        assert_eq!(recent.find(id(1)), None);
        assert!(recent.find(id(2)).is_some());
        assert!(recent.find(id(3)).is_some());
        assert!(lock(&recent.0).steps <= OWN_STEPS_MAX);
    }
}
