//! Records what clients see while they see it. A call that is dropped without a result counts as the
//! outcome that claims least: an acquire as uncertain, a hold as lapsed, a write as unknown.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::record::{End, Grant, History, LossWindow, Refused, Uncertain, Verdict, Write};
use soldonce_lease::{BootTime, Clock, FencingToken};

/// Records a history. Clones write into the same one.
#[derive(Clone)]
pub(crate) struct Recorder {
    clock: Arc<dyn Clock>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    history: History,
    last: Duration,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

impl Recorder {
    /// An empty history with the times of `clock`.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            notes: Arc::default(),
        }
    }

    /// What was recorded so far. Holds that have not ended are open.
    pub(crate) fn history(&self) -> History {
        self.notes().history.clone()
    }

    /// Notes that `client` is about to ask for `name`.
    pub(crate) fn acquire(&self, client: u32, name: &str) -> AcquireCall {
        let asked = Refused {
            client,
            name: name.to_owned(),
            invoked: self.now(),
            returned: Duration::ZERO,
        };
        AcquireCall {
            recorder: self.clone(),
            asked: Some(asked),
        }
    }

    /// Notes that `client` is about to write to `resource` with `token`.
    pub(crate) fn write(&self, client: u32, resource: &str, token: FencingToken) -> WriteCall {
        let write = Write {
            client,
            resource: resource.to_owned(),
            token,
            invoked: self.now(),
            verdict: Verdict::Unknown,
        };
        WriteCall {
            recorder: self.clone(),
            write: Some(write),
        }
    }

    /// Notes that the backend may lose grants while `fault` runs.
    pub(crate) fn losing<T>(&self, fault: impl FnOnce() -> T) -> T {
        let from = self.now();
        let done = fault();
        let to = self.now();
        self.notes().history.losses.push(LossWindow { from, to });
        done
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time, made unique: of two notes of one recorder, one is the earlier.
    fn now(&self) -> Duration {
        let now = self.clock.boot().since(BootTime::default());
        let mut notes = self.notes();
        notes.last = now.max(notes.last.saturating_add(Duration::from_nanos(1)));
        notes.last
    }
}

/// An acquire that was asked for. Dropped, its outcome is unknown.
#[derive(Debug)]
#[must_use = "tell what came of it"]
pub(crate) struct AcquireCall {
    recorder: Recorder,
    asked: Option<Refused>,
}

impl AcquireCall {
    /// It was granted, with this token.
    pub(crate) fn granted(self, token: Option<FencingToken>) -> Held {
        let at = self.recorder.now();
        self.granted_by(at, token)
    }

    /// It was granted, with this token, and was live at this time, which the client read before it
    /// looked. For clients that may be stopped between the grant and this call: what they had by now
    /// need not be theirs any more.
    pub(crate) fn granted_at(self, token: Option<FencingToken>, at: BootTime) -> Held {
        self.granted_by(at.since(BootTime::default()), token)
    }

    fn granted_by(mut self, returned: Duration, token: Option<FencingToken>) -> Held {
        let mut notes = self.recorder.notes();
        if let Some(asked) = self.asked.take() {
            notes.history.grants.push(Grant {
                client: asked.client,
                name: asked.name,
                invoked: asked.invoked,
                returned,
                token,
                end: End::Open,
            });
        }
        let place = notes.history.grants.len().saturating_sub(1);
        drop(notes);
        Held {
            recorder: self.recorder.clone(),
            place,
            ended: false,
        }
    }

    /// It was refused.
    pub(crate) fn refused(mut self) {
        let returned = self.recorder.now();
        if let Some(asked) = self.asked.take() {
            let refused = Refused { returned, ..asked };
            self.recorder.notes().history.refusals.push(refused);
        }
    }

    /// The outcome is unknown.
    #[expect(clippy::unused_self, reason = "it ends what is recorded")]
    pub(crate) fn unknown(self) {}
}

impl Drop for AcquireCall {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.recorder.notes().history.uncertain.push(Uncertain {
                client: asked.client,
                name: asked.name,
                invoked: asked.invoked,
            });
        }
    }
}

/// A hold. Dropped, it has lapsed at that time.
#[derive(Debug)]
#[must_use = "a hold that is dropped counts as lapsed"]
pub(crate) struct Held {
    recorder: Recorder,
    place: usize,
    ended: bool,
}

impl Held {
    /// The client knows since now that it holds no longer.
    #[expect(clippy::unused_self, reason = "it ends what is recorded")]
    pub(crate) fn lost(self) {}

    /// The client, which may be paused or dead, does not count on it from this time on.
    pub(crate) fn lost_at(mut self, at: BootTime) {
        let at = at.since(BootTime::default());
        self.end(End::Lapsed { at });
    }

    /// Notes that the client is about to release it.
    pub(crate) fn releasing(mut self) -> ReleaseCall {
        let invoked = self.recorder.now();
        self.end(End::Lapsed { at: invoked });
        ReleaseCall {
            recorder: self.recorder.clone(),
            place: self.place,
            invoked,
        }
    }

    fn end(&mut self, end: End) {
        self.ended = true;
        self.recorder.end(self.place, end);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.ended {
            let at = self.recorder.now();
            self.end(End::Lapsed { at });
        }
    }
}

/// A release that was asked for. Dropped, it may have happened, at any time from its call on.
#[derive(Debug)]
pub(crate) struct ReleaseCall {
    recorder: Recorder,
    place: usize,
    invoked: Duration,
}

impl ReleaseCall {
    /// The backend confirmed that it was held until then.
    pub(crate) fn released(self) {
        let returned = self.recorder.now();
        let invoked = self.invoked;
        self.recorder
            .end(self.place, End::Released { invoked, returned });
    }
}

impl ReleaseCall {
    /// The backend did not confirm it. The client had last counted on it at this time.
    pub(crate) fn lapsed_at(self, at: BootTime) {
        let at = at.since(BootTime::default());
        self.recorder.end(self.place, End::Lapsed { at });
    }
}

impl Recorder {
    fn end(&self, place: usize, end: End) {
        if let Some(grant) = self.notes().history.grants.get_mut(place) {
            grant.end = end;
        }
    }
}

/// A write that was asked for. Dropped, its outcome is unknown.
#[derive(Debug)]
#[must_use = "tell what came of it"]
pub(crate) struct WriteCall {
    recorder: Recorder,
    write: Option<Write>,
}

impl WriteCall {
    /// The gate let it in.
    pub(crate) fn admitted(self) {
        let returned = self.recorder.now();
        self.ends(Verdict::Admitted { returned });
    }

    /// The gate refused it, because of a higher token.
    pub(crate) fn stale(self) {
        let returned = self.recorder.now();
        self.ends(Verdict::Stale { returned });
    }

    /// The outcome is unknown.
    #[expect(clippy::unused_self, reason = "it ends what is recorded")]
    pub(crate) fn unknown(self) {}

    fn ends(mut self, verdict: Verdict) {
        if let Some(write) = &mut self.write {
            write.verdict = verdict;
        }
    }
}

impl Drop for WriteCall {
    fn drop(&mut self) {
        self.recorder
            .notes()
            .history
            .writes
            .extend(self.write.take());
    }
}
