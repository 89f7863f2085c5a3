//! Background work for events: one task at a time for each event. One that fails or takes long
//! delays no other event.

use std::collections::BTreeMap;

use soldonce_clock::BootTime;
use soldonce_core::EventNo;
use tokio::task::{JoinError, JoinSet};

use super::context::Context;
use super::failure::Failure;
use super::limits::AGAIN_MS;
use crate::catch_panic::catch_panic;
use crate::trouble::Trouble;

/// Why the work for an event failed.
pub(super) enum TaskError {
    /// Contention: a retry may succeed at once.
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

type TaskResult<T> = (EventNo, Result<T, TaskError>);

/// The work for all events.
pub(super) struct EventTasks<T> {
    /// The participle of the work, for the log: "shown", "swept".
    what: &'static str,
    tasks: JoinSet<TaskResult<T>>,
    /// Events whose task runs, or whose last one failed.
    events: BTreeMap<EventNo, State>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// No new task begins before this time.
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

    /// Counts the events whose task runs or has not been taken with [`EventTasks::ended`].
    pub(super) fn running(&self) -> usize {
        self.tasks.len()
    }

    /// Tells whether no task of this event runs, and its back-off ([`AGAIN_MS`]) is over.
    pub(super) fn may_begin(&self, event: EventNo, now: BootTime) -> bool {
        let state = self.events.get(&event);
        state.is_none_or(|state| !state.is_running && now >= state.again)
    }

    /// Starts the task of an event. [`EventTasks::may_begin`] must be true for it.
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

    /// Takes the event and result of an ended task, no result if it failed. None if none has ended.
    pub(super) fn ended(&mut self, context: &Context) -> Option<(EventNo, Option<T>)> {
        let ended = self.tasks.try_join_next();
        self.note(context, ended)
    }

    /// Waits until a task ends, and takes it as [`EventTasks::ended`] does. None if no task runs.
    ///
    /// # Cancel safety
    /// A dropped call has taken no outcome.
    pub(super) async fn next(&mut self, context: &Context) -> Option<(EventNo, Option<T>)> {
        let ended = self.tasks.join_next().await;
        self.note(context, ended)
    }

    fn note(
        &mut self,
        context: &Context,
        ended: Option<Result<TaskResult<T>, JoinError>>,
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
