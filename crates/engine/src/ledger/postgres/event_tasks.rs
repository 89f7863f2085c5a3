//! Work that every event needs now and then: one piece at a time for each event, and one that fails or
//! takes long keeps no other event waiting.

use std::collections::BTreeMap;

use soldonce_clock::BootTime;
use soldonce_core::EventNo;
use tokio::task::{JoinError, JoinSet};

use super::context::Context;
use super::failure::Failure;
use super::limits::AGAIN_MS;
use crate::catch_panic::catch_panic;
use crate::trouble::Trouble;

/// Why the work for an event came to nothing.
pub(super) enum TaskError {
    /// Others were in the way: the same may pass at once.
    Busy,
    Failed(String),
}

impl From<Failure> for TaskError {
    fn from(failure: Failure) -> Self {
        if failure.is_contention() || failure.is_full() {
            Self::Busy
        } else {
            Self::Failed(failure.to_string())
        }
    }
}

type Ended<T> = (EventNo, Result<T, TaskError>);

/// The work for all events.
pub(super) struct EventTasks<T> {
    /// What it is, for the log.
    what: &'static str,
    tasks: JoinSet<Ended<T>>,
    /// Events that are worked for, or for which it came to nothing the last time.
    events: BTreeMap<EventNo, State>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// Not before.
    again: BootTime,
    trouble: Trouble,
}

impl<T: Send + 'static> EventTasks<T> {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            tasks: JoinSet::new(),
            events: BTreeMap::new(),
        }
    }

    /// For how many events it is under way.
    pub(super) fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Whether none is under way for this event, and it did not fail a moment ago.
    pub(super) fn may_begin(&self, event: EventNo, now: BootTime) -> bool {
        let state = self.events.get(&event);
        state.is_none_or(|state| !state.is_running && now >= state.again)
    }

    /// Begins it for an event for which it may begin.
    pub(super) fn begin(
        &mut self,
        event: EventNo,
        work: impl Future<Output = Result<T, TaskError>> + Send + 'static,
    ) {
        self.events.entry(event).or_default().is_running = true;
        self.tasks.spawn(async move {
            let panicked = || Err(TaskError::Failed("it panicked".to_owned()));
            (event, catch_panic(work).await.unwrap_or_else(panicked))
        });
    }

    /// What came of one that ended, nothing if it failed; none if none ended.
    pub(super) fn ended(&mut self, context: &Context) -> Option<(EventNo, Option<T>)> {
        let ended = self.tasks.try_join_next();
        self.note(context, ended)
    }

    /// As [`EventTasks::ended`], once one ends; none if none is under way.
    ///
    /// # Cancel safety
    /// Dropped, nothing was taken.
    pub(super) async fn next(&mut self, context: &Context) -> Option<(EventNo, Option<T>)> {
        let ended = self.tasks.join_next().await;
        self.note(context, ended)
    }

    fn note(
        &mut self,
        context: &Context,
        ended: Option<Result<Ended<T>, JoinError>>,
    ) -> Option<(EventNo, Option<T>)> {
        // A panic is survived, and none of them is aborted.
        let (event, done) = ended?.ok()?;
        let state = self.events.entry(event).or_default();
        state.is_running = false;
        match done {
            Ok(done) => {
                if state.trouble.ends() {
                    tracing::info!(event = event.0, "{} again", self.what);
                }
                self.events.remove(&event);
                return Some((event, Some(done)));
            }
            Err(TaskError::Failed(why)) if context.is_reachable() => {
                let now = context.clock.boot();
                state.again = now.plus_ms(AGAIN_MS);
                if state.trouble.lasts(now) {
                    tracing::warn!(event = event.0, why, "not {}, tried again", self.what);
                }
            }
            // A database that is away is told of once, not for every event.
            Err(TaskError::Failed(why)) => {
                tracing::debug!(event = event.0, why, "not {}", self.what);
            }
            Err(TaskError::Busy) => tracing::debug!(event = event.0, "not {}", self.what),
        }
        Some((event, None))
    }
}
