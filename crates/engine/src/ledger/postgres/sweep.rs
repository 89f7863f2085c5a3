//! Stores the end of holds that are over, for each event by itself: one that fails delays no other.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use soldonce_core::{Answer, Command, Rejection};

use super::Parts;
use super::event_slot::EventSlot;
use super::event_tasks::{EventTasks, TaskError};
use super::limits::{SWEEP_WAIT_MS, SWEEPS_MAX};
use super::route::submit;
use crate::ledger::{Done, Transaction};

/// The sweeps of all events.
pub(super) type Sweeps = tokio::sync::Mutex<EventTasks<usize>>;

impl Parts {
    /// Stores the end of the overdue holds of every event, as many in each as one command may.
    /// Answers with the number of their units, at most the command's limit: if it is the limit, there
    /// may be more. An event that takes long is not waited for, and is counted the next time.
    pub(super) async fn sweep(&self, transaction: Transaction) -> Result<Done, Rejection> {
        let Command::Sweep { limit } = transaction.command else {
            return Err(Rejection::ReadOnly);
        };
        let context = &self.context;
        let mut each = self.sweeps.lock().await;
        let mut swept = 0_usize;
        while let Some((_, units)) = each.ended(context) {
            swept = swept.saturating_add(units.unwrap_or(0));
        }
        let (now, begun) = (context.time.now(), context.clock.boot());
        let is_due = |slot: &Arc<EventSlot>| slot.is_overdue(now) && each.may_begin(slot.no, begun);
        let mut due: VecDeque<_> = context.catalogue.all().into_iter().filter(is_due).collect();
        let mut wait = context.clock.sleep_until(begun.plus_ms(SWEEP_WAIT_MS));
        let mut awaited = BTreeSet::new();
        loop {
            while each.running() < SWEEPS_MAX
                && let Some(slot) = due.pop_front()
            {
                awaited.insert(slot.no);
                each.begin(slot.no, sweep_event(slot, transaction.clone()));
            }
            if awaited.is_empty() && due.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                ended = each.next(context) => {
                    let Some((event, units)) = ended else { break };
                    awaited.remove(&event);
                    swept = swept.saturating_add(units.unwrap_or(0));
                }
                () = &mut wait => break,
            }
        }
        Ok(Done::unnumbered(Answer::Swept(swept.min(limit))))
    }
}

async fn sweep_event(slot: Arc<EventSlot>, transaction: Transaction) -> Result<usize, TaskError> {
    match submit(&slot, transaction).await {
        Ok(Done::Fresh {
            answer: Answer::Swept(units),
            ..
        }) => Ok(units),
        Ok(_) => Ok(0),
        Err(Rejection::Overloaded) => Err(TaskError::Busy),
        Err(rejection) => Err(TaskError::Failed(rejection.to_string())),
    }
}
