//! The first tries of acquires that came at the same moment: one call for all of them, one instant at
//! which it was sent, one limit. Each is answered when its own answer is there; whatever is not
//! settled by that goes on alone.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use tracing::Span;

use super::asked::Asked;
use super::leaving::Leaving;
use super::silence;
use crate::backend::{Acquire, AcquireReply, Answers};
use crate::worker::Inbox;
use crate::worker::ctx::Ctx;
use crate::{BackendError, BootTime};

/// What a first try came to.
pub(in crate::worker) struct Answered {
    pub(super) asked: Asked,
    pub(super) sent: BootTime,
    /// `None` if it was not decided.
    pub(super) reply: Option<AcquireReply>,
}

/// What the loop has not looked at. The loop's own: whatever comes when it has ended is dropped.
#[derive(Default)]
pub(in crate::worker) struct Tray(Arc<Mutex<Vec<Answered>>>);

impl Tray {
    fn all(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out everything.
    pub(in crate::worker) fn take(&self) -> Vec<Answered> {
        std::mem::take(&mut *self.all())
    }
}

/// Tries under way in one call. The backend may keep them for as long as itself, so they keep neither
/// it nor whoever waits for what comes too late.
pub(super) struct Tries {
    inbox: Arc<Inbox>,
    tray: Weak<Mutex<Vec<Answered>>>,
    sent: BootTime,
    leaving: Arc<Leaving>,
    open: Mutex<Open>,
}

struct Open {
    /// By their place in the call.
    places: Vec<Option<Place>>,
    left: usize,
}

struct Place {
    asked: Asked,
    /// Whoever works on the answer, if he wants to know when nobody waits for it any more.
    working: Option<Waker>,
}

impl Place {
    fn of(asked: Asked) -> Self {
        Self {
            asked,
            working: None,
        }
    }
}

impl Tries {
    /// Tries that are sent now, and what they ask for. From here on each knows what it may leave at
    /// the backend.
    pub(super) fn begin(
        ctx: &Ctx,
        tray: &Tray,
        mut asked: Vec<Asked>,
    ) -> (Arc<Self>, Vec<Acquire>) {
        let begun = asked.iter_mut().map(|asked| {
            asked.attempt.begin();
            asked.attempt.command.clone()
        });
        let batch = begun.collect();
        // On the thread that sends, before anything can be sent (LT2).
        let sent = ctx.now();
        let open = Open {
            left: asked.len(),
            places: asked.into_iter().map(Place::of).map(Some).collect(),
        };
        let tries = Self {
            inbox: Arc::clone(&ctx.inbox),
            tray: Arc::downgrade(&tray.0),
            sent,
            leaving: Leaving::new(),
            open: Mutex::new(open),
        };
        (Arc::new(tries), batch)
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until each is answered or given up by its caller, for at most the limit of a call.
    pub(super) async fn run(self: Arc<Self>, ctx: Arc<Ctx>, batch: Vec<Acquire>) {
        // However this ends, nobody is forgotten.
        let unanswered = Unanswered(&self);
        let to = Arc::clone(&self) as Arc<dyn Answers>;
        let mut call = Some(ctx.backend.acquire_each(batch, to));
        let mut limit = ctx.clock.sleep_until(self.sent.plus(ctx.call_timeout));
        let in_time = poll_fn(|cx| {
            // First, so that the call does not go on for those who have gone. Only when there are
            // any: the call may wake this as often as it has places.
            if self.leaving.look(cx) {
                self.look_for_the_gone();
            }
            if let Some(running) = &mut call
                && running.as_mut().poll(cx).is_ready()
            {
                call = None;
            }
            if self.open().left == 0 {
                return Poll::Ready(true);
            }
            limit.as_mut().poll(cx).map(|()| false)
        });
        if !in_time.await {
            unanswered.end(&silence(ctx.call_timeout));
        }
    }

    /// Drops those whose callers have gone away, which leaves their releases behind.
    fn look_for_the_gone(&self) {
        let waker = Waker::from(Arc::clone(&self.leaving));
        let mut cx = Context::from_waker(&waker);
        let mut gone = Vec::new();
        let mut open = self.open();
        for place in &mut open.places {
            if let Some(Place { asked, .. }) = place
                && asked.to.reply.poll_closed(&mut cx).is_ready()
            {
                gone.extend(place.take());
            }
        }
        open.left = open.left.saturating_sub(gone.len());
        drop(open);
        for Place { asked, working } in gone {
            drop(asked);
            working.inspect(Waker::wake_by_ref);
        }
    }

    fn settle(&self, index: usize, reply: Option<AcquireReply>) {
        let mut open = self.open();
        let Some(place) = open.places.get_mut(index).and_then(Option::take) else {
            return;
        };
        open.left = open.left.saturating_sub(1);
        let is_last = open.left == 0;
        drop(open);
        if is_last {
            self.leaving.wake_task();
        }
        // Without the loop it is dropped: its caller sees `Closed`.
        let Some(tray) = self.tray.upgrade().map(Tray) else {
            return;
        };
        let mut answered = tray.all();
        answered.push(Answered {
            asked: place.asked,
            sent: self.sent,
            reply,
        });
        if answered.len() == 1 {
            self.inbox.nudge();
        }
    }
}

impl Answers for Tries {
    fn is_awaited(&self, index: usize) -> bool {
        let open = self.open();
        matches!(open.places.get(index), Some(Some(_)))
    }

    fn poll_gone(&self, index: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut open = self.open();
        let Some(Some(place)) = open.places.get_mut(index) else {
            return Poll::Ready(());
        };
        match &mut place.working {
            Some(working) => working.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn scope(&self, index: usize, work: &mut dyn FnMut()) {
        let open = self.open();
        let place = open.places.get(index).and_then(Option::as_ref);
        let span = place.map_or_else(Span::none, |place| place.asked.span.clone());
        // The work may come back here.
        drop(open);
        span.in_scope(work);
    }

    fn answer(&self, index: usize, reply: AcquireReply) {
        self.settle(index, Some(reply));
    }

    fn give_back(&self, index: usize) {
        self.settle(index, None);
    }
}

/// Hands on what has no answer when the call ends, also when it is cut off or panics.
struct Unanswered<'a>(&'a Tries);

impl Unanswered<'_> {
    fn end(&self, why: &BackendError) {
        let count = self.0.open().places.len();
        for index in 0..count {
            self.0.answer(index, AcquireReply::Failed(why.clone()));
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.0.open().left > 0 {
            self.end(&BackendError::Unknown("the call was broken off".to_owned()));
        }
    }
}
