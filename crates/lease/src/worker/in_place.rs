//! The runtime that connected, with backend connections of its own. `docs/decisions/0271`.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::backend::Backend;
use crate::blocking;
use crate::locks::lock;

pub(crate) struct InPlace {
    runtime: Handle,
    /// `None` after the end.
    backend: Mutex<Option<Arc<dyn Backend>>>,
    /// Releases of dropped guards.
    tasks: Mutex<JoinSet<()>>,
    /// Acquires under way here.
    pub(super) acquires: AtomicUsize,
    pub(super) closed: AtomicBool,
    close: Notify,
}

impl InPlace {
    pub(crate) fn new(runtime: Handle, backend: Arc<dyn Backend>) -> Self {
        Self {
            runtime,
            backend: Mutex::new(Some(backend)),
            tasks: Mutex::default(),
            acquires: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            close: Notify::new(),
        }
    }

    pub(super) fn is_here(&self) -> bool {
        let here = || Handle::try_current().is_ok_and(|here| here.id() == self.runtime.id());
        !blocking::is_waiting() && here()
    }

    pub(super) fn backend(&self) -> Option<Arc<dyn Backend>> {
        lock(&self.backend).clone()
    }

    /// Closes the connections, and ends the acquires that are under way here.
    pub(super) fn end(&self) {
        self.close();
        // Dropped without the lock.
        let ended = lock(&self.backend).take();
        drop(ended);
    }

    /// Ends the acquires that are under way here.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.close.notify_waiters();
    }

    /// Waits until [`InPlace::close`] is called; ready at once if it was.
    pub(super) async fn closed(&self) {
        // Hears of the end from here on, also before its first poll.
        let closed = self.close.notified();
        if self.poll_closed().is_pending() {
            closed.await;
        }
    }

    /// Tells whether [`InPlace::close`] was called, without a wake-up if it will be.
    pub(super) fn poll_closed(&self) -> Poll<()> {
        if self.closed.load(Ordering::SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.acquires.load(Ordering::SeqCst) == 0
    }

    pub(super) fn spawn(&self, call: Pin<Box<impl Future<Output = ()> + Send + 'static>>) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(call, &self.runtime);
    }
}
