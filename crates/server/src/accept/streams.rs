//! The tasks of one connection: its HTTP/2 streams, and what reads the rest of a body. They belong to
//! the connection and end with it, which hyper-util's own executor does not ensure.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use soldonce_clock::BootTime;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use super::progress::{Mark, Progress, STREAM};

/// Where hyper puts the streams of one connection. HTTP/1 has none. How many there are at once is
/// bounded by the stream limits of the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTasks {
    tasks: Arc<Mutex<Tasks>>,
}

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    all: JoinSet<()>,
    streams: HashMap<Id, Stream>,
}

#[derive(Debug)]
struct Stream {
    abort: AbortHandle,
    progress: Arc<Progress>,
    /// The mark of the last look, and since when it has been the same.
    seen: Option<(Mark, BootTime)>,
}

impl StreamTasks {
    /// Returns a handle that spawns further tasks of the connection.
    pub(crate) fn spawner(&self) -> TaskSpawner {
        TaskSpawner(Arc::downgrade(&self.tasks))
    }

    /// Resets the streams whose peer took nothing of its answer for so long.
    pub(crate) fn look(&self, now: BootTime, stall: Duration) {
        for stream in crate::lock(&self.tasks).streams.values_mut() {
            stream.look(now, stall);
        }
    }

    /// Cuts the tasks that are left and waits for their ends.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the tasks are cut, but not waited for.
    pub(crate) async fn end(self) {
        let mut tasks = std::mem::take(&mut *crate::lock(&self.tasks));
        tasks.all.shutdown().await;
    }
}

/// Spawns tasks that are no streams. Weak, because streams hold it: with a strong one the tasks would
/// keep each other when the connection is dropped.
#[derive(Debug)]
pub(crate) struct TaskSpawner(Weak<Mutex<Tasks>>);

impl TaskSpawner {
    /// Runs a task until it or the connection ends.
    pub(crate) fn run(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = self.0.upgrade() {
            let mut tasks = crate::lock(&tasks);
            tasks.forget_ended();
            tasks.all.spawn(task);
        }
    }
}

impl Tasks {
    fn forget_ended(&mut self) {
        while let Some(ended) = self.all.try_join_next_with_id() {
            let id = ended.map_or_else(|error| lost(&error), |(id, ())| id);
            self.streams.remove(&id);
        }
    }
}

/// Returns the id of the task that failed, and logs a panic. A stream that was reset is not logged.
fn lost(error: &JoinError) -> Id {
    if error.is_panic() {
        tracing::error!(%error, "an HTTP/2 stream was lost to a panic");
    }
    error.id()
}

impl Stream {
    fn look(&mut self, now: BootTime, stall: Duration) {
        let mark = self.progress.mark();
        match self.seen {
            Some((seen, since)) if seen == mark => {
                if mark.is_for_peer() && now.since(since) >= stall {
                    tracing::debug!("the peer took nothing of an answer, resetting its stream");
                    self.abort.abort();
                }
            }
            _ => self.seen = Some((mark, now)),
        }
    }
}

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let progress = Arc::new(Progress::default());
        let stream = STREAM.scope(Arc::clone(&progress), stream);
        let mut tasks = crate::lock(&self.tasks);
        tasks.forget_ended();
        let abort = tasks.all.spawn(stream);
        let stream = Stream {
            abort: abort.clone(),
            progress,
            seen: None,
        };
        tasks.streams.insert(abort.id(), stream);
    }
}
