//! A batch of acquires on a backend that asks for each with a call of its own.

use std::future::poll_fn;
use std::pin::Pin;
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
    let calls = batch.iter().enumerate().map(|(index, command)| Call {
        index,
        reply: backend.acquire(command),
        to: &*to,
    });
    all(calls).await;
}

struct Call<'a> {
    index: usize,
    reply: Fut<'a, AcquireReply>,
    to: &'a dyn Answers,
}

impl Future for Call<'_> {
    type Output = ();

    /// Goes on with the call. One that nobody waits for has ended.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (index, to) = (self.index, self.to);
        if to.poll_gone(index, cx).is_ready() {
            return Poll::Ready(());
        }
        let mut reply = Poll::Pending;
        to.scope(index, &mut || reply = self.reply.as_mut().poll(cx));
        reply.map(|reply| to.answer(index, reply))
    }
}

/// Runs all of them in place. A wake-up of one is nothing to the others, however many there are.
pub(crate) async fn all<F: Future<Output = ()> + Unpin>(futures: impl Iterator<Item = F>) {
    let woken = Arc::new(Mutex::new(Woken::default()));
    let mut places: Vec<Option<Place<F>>> = futures
        .enumerate()
        .map(|(index, future)| Some(Place::new(future, index, &woken)))
        .collect();
    let mut left = places.len();
    poll_fn(|cx| {
        for index in Woken::take(&woken, cx) {
            if let Some(place) = places.get_mut(index)
                && place.as_mut().is_some_and(|place| place.poll().is_ready())
            {
                *place = None;
                left -= 1;
            }
        }
        if left == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

struct Place<F> {
    future: F,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<F: Future<Output = ()> + Unpin> Place<F> {
    /// The place of one that is to be polled first by whoever polls all.
    fn new(future: F, index: usize, woken: &Arc<Mutex<Woken>>) -> Self {
        let bell = Arc::new(Bell {
            index,
            is_rung: AtomicBool::new(false),
            woken: Arc::clone(woken),
        });
        bell.wake_by_ref();
        Self {
            future,
            waker: Waker::from(Arc::clone(&bell)),
            bell,
        }
    }

    fn poll(&mut self) -> Poll<()> {
        // Before the poll: a wake-up that comes meanwhile asks for another.
        self.bell.is_rung.store(false, Ordering::Release);
        let future = Pin::new(&mut self.future);
        future.poll(&mut Context::from_waker(&self.waker))
    }
}

/// Which are to be polled, and who polls them.
#[derive(Default)]
struct Woken {
    places: Vec<usize>,
    task: Option<Waker>,
}

impl Woken {
    /// Those that are to be polled now. Whatever is woken from here on wakes whoever polls.
    fn take(woken: &Mutex<Self>, cx: &Context<'_>) -> Vec<usize> {
        let mut woken = woken.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut woken.task {
            Some(task) => task.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        std::mem::take(&mut woken.places)
    }
}

/// Wakes one of them.
struct Bell {
    index: usize,
    /// It is in the list already.
    is_rung: AtomicBool,
    woken: Arc<Mutex<Woken>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_rung.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.places.push(self.index);
        if let Some(task) = &woken.task {
            task.wake_by_ref();
        }
    }
}
