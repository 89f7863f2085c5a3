//! The tasks of one HTTP/2 connection's streams. They belong to the connection and end with it:
//! hyper-util's own executor would leave them to nobody.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// Where hyper puts the streams of one connection. HTTP/1 never uses it. How many there are at once
/// is bounded by the stream limits of the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamTasks {
    tasks: Arc<Mutex<JoinSet<()>>>,
}

impl StreamTasks {
    /// Cuts the streams that are left and waits for their ends.
    ///
    /// # Cancel safety
    /// Dropped before it is done, the streams are cut, but not waited for.
    pub(crate) async fn end(self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        tasks.shutdown().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> hyper::rt::Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.lock();
        while let Some(ended) = tasks.try_join_next() {
            if let Err(error) = ended {
                tracing::debug!(%error, "the task of an HTTP/2 stream was lost");
            }
        }
        tasks.spawn(stream);
    }
}
