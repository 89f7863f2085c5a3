//! A batch of acquires on a backend that asks for each with a call of its own.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::{Acquire, AcquireReply, Answers, Backend, Fut};

/// Runs all calls in place: nothing is spawned, and dropping this drops them.
pub(super) async fn acquire_each<B: Backend + ?Sized>(
    backend: &B,
    batch: Vec<Acquire>,
    to: Arc<dyn Answers>,
) {
    let task = Arc::new(Mutex::new(Waker::noop().clone()));
    let calls = batch.iter().enumerate().map(|(index, command)| Call {
        index,
        reply: backend.acquire(command),
        woken: Woken::new(&task),
    });
    let mut calls: Vec<Call<'_>> = calls.collect();
    poll_fn(|cx| {
        let mut task = task.lock().unwrap_or_else(PoisonError::into_inner);
        task.clone_from(cx.waker());
        drop(task);
        calls.retain_mut(|call| call.poll(&*to).is_pending());
        if calls.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

struct Call<'a> {
    index: usize,
    reply: Fut<'a, AcquireReply>,
    woken: Arc<Woken>,
}

impl Call<'_> {
    /// Goes on with the call if it may have come further. One that nobody waits for has ended.
    fn poll(&mut self, to: &dyn Answers) -> Poll<()> {
        if !to.is_awaited(self.index) {
            return Poll::Ready(());
        }
        if !self.woken.is.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        let reply = self.reply.as_mut().poll(&mut Context::from_waker(&waker));
        reply.map(|reply| to.answer(self.index, reply))
    }
}

/// Whether one call is to be polled: the others of the batch are left alone.
struct Woken {
    is: AtomicBool,
    /// Who polls all of them.
    task: Arc<Mutex<Waker>>,
}

impl Woken {
    fn new(task: &Arc<Mutex<Waker>>) -> Arc<Self> {
        Arc::new(Self {
            is: AtomicBool::new(true),
            task: Arc::clone(task),
        })
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.is.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        task.wake_by_ref();
    }
}
