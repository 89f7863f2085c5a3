//! The shutdown: everything held is given back, every call is answered, and the thread ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Later, Worker};
use crate::grant::Grant;
use crate::{BootTime, Drained};

pub(super) struct Ending {
    drained: Drained,
    /// The deadline; `None` without one: each release gives up by itself.
    pub(super) until: Option<BootTime>,
    to: Vec<oneshot::Sender<Drained>>,
    /// Releases that had been answered before the shutdown began.
    answered_before: u64,
    /// Releases that had been left to their ttl before the shutdown began.
    left_before: u64,
}

impl Worker {
    /// Gives back everything, for at most `within`, and then answers `to`. A second call of the
    /// same turn waits with the first.
    pub(super) fn shut_down(&mut self, within: Duration, to: oneshot::Sender<Drained>) {
        let until = self.ctx.now().plus(within);
        if let Some(ending) = &mut self.ending {
            ending.until = Some(ending.until.map_or(until, |earlier| earlier.min(until)));
            ending.to.push(to);
            return;
        }
        self.begin_to_end(Some(until), vec![to]);
    }

    /// Begins the shutdown without a deadline: no lease and no caller is left.
    pub(super) fn close(&mut self) {
        if self.ending.is_none() {
            self.begin_to_end(None, Vec::new());
        }
    }

    fn begin_to_end(&mut self, until: Option<BootTime>, to: Vec<oneshot::Sender<Drained>>) {
        let answered_before = self.ctx.answered();
        self.ctx.inbox.close();
        // Each acquire that is cut off leaves its release behind, and its caller sees `Closed`.
        self.starting.clear();
        self.acquires.abort_all();
        if let Some(place) = &self.ctx.in_place {
            place.close();
        }
        self.ctx.table().close();
        while let Some(grant) = self.first_live() {
            // Also one that was just given back: its command may have been refused by the closed
            // inbox.
            grant.give_back();
            self.releases.push(self.ctx.end_of(&grant));
        }
        self.ending = Some(Ending {
            drained: Drained::default(),
            until,
            to,
            answered_before,
            left_before: self.left_to_ttl(),
        });
    }

    fn first_live(&self) -> Option<Arc<Grant>> {
        self.ctx.table().live.first()
    }

    /// Counts the releases that were left to the ttl so far.
    fn left_to_ttl(&self) -> u64 {
        self.ctx.counters.read().left_to_ttl
    }

    /// Tells whether a shutdown has nothing left to do, or its deadline has passed.
    pub(super) fn is_finished(&mut self) -> bool {
        let Some(ending) = &mut self.ending else {
            return false;
        };
        let until = ending.until;
        let now = self.ctx.now();
        if until.is_some_and(|until| now >= until) {
            return true;
        }
        // The second delete is for a command that is still in a buffer. It is waited for only as
        // long as the caller said; a process that just goes away does not stay for it.
        let mut left = 0;
        self.later.retain(|(at, _), later| match later {
            Later::Release(job) => {
                let waits = job.is_retry() || until.is_some_and(|until| *at < until);
                left += u64::from(!waits);
                waits
            }
            Later::Alarm(_) => false,
        });
        ending.drained.left_to_ttl += left;
        let place = self.ctx.in_place.as_ref();
        let quiet = place.is_none_or(super::InPlace::is_quiet) && self.ctx.table().is_settled();
        let quiet = quiet && self.acquires.is_empty() && self.calls.is_empty();
        // Last, because what was at work until now may have left a release.
        let left_behind = || self.ctx.left_behind().as_ref().is_none_or(Vec::is_empty);
        quiet && self.releases.is_empty() && self.later.is_empty() && left_behind()
    }

    /// Totals what is left. The runtime is dropped after this, and with it the calls under way.
    pub(super) fn finish(mut self) -> Option<(Vec<oneshot::Sender<Drained>>, Drained)> {
        // Dropped without the locks: callers that wait for an outcome are woken.
        let under_way = self.ctx.table().take_sent();
        let left_behind = self.ctx.left_behind().take().unwrap_or_default();
        let later = self.later.values();
        let later = later.filter(|later| matches!(later, Later::Release(_)));
        let waiting = self.releases.len() + self.releasing + later.count();
        let waiting = waiting + under_way.len() + left_behind.len();
        let given_up = self.left_to_ttl();
        let mut ending = self.ending.take()?;
        ending.drained.released = self.ctx.answered().saturating_sub(ending.answered_before);
        ending.drained.left_to_ttl += given_up.saturating_sub(ending.left_before);
        ending.drained.left_to_ttl += u64::try_from(waiting).unwrap_or(u64::MAX);
        Some((ending.to, ending.drained))
    }
}

impl Drop for Worker {
    /// Ends all live grants: after a shutdown there are none. After a panic this thread renews
    /// nothing more, so the holders are notified at once, and not only when they look.
    fn drop(&mut self) {
        self.abandon();
    }
}
