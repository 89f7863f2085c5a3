//! The table of the lease thread: the live grants, and the releases that are sent outside the loop.
//! Any thread adds and removes; the loop is woken only for what is due before its next look.

use std::collections::VecDeque;
use std::sync::Arc;

use super::job::{ReleaseJob, Sent};
use super::live::Live;
use crate::BootTime;
use crate::grant::Grant;

#[derive(Default)]
pub(super) struct Table {
    pub(super) live: Live,
    /// In the order of their instants, because all have the same time-out.
    sent: VecDeque<(BootTime, Arc<Sent>)>,
    /// When the loop looks next; `None` if only a wake-up makes it look.
    look: Option<BootTime>,
    /// Whether anything was added since the last [`Table::was_touched`].
    touched: bool,
    end: Option<Closed>,
}

/// The table takes no more grants.
struct Closed;

impl Table {
    /// Adds a live grant. Returns whether the loop must be woken for it; `None` after the end.
    pub(super) fn watch(&mut self, grant: Arc<Grant>) -> Option<bool> {
        if self.end.is_some() {
            return None;
        }
        let next = self.live.insert(grant);
        Some(self.is_early(next))
    }

    /// Adds a release that is sent outside the loop. Returns whether the loop must be woken for it.
    pub(super) fn send(&mut self, overdue: BootTime, sent: &Arc<Sent>) -> bool {
        self.forget_settled();
        self.sent.push_back((overdue, Arc::clone(sent)));
        self.is_early(overdue)
    }

    fn is_early(&mut self, at: BootTime) -> bool {
        self.touched = true;
        self.look.is_none_or(|look| at < look)
    }

    /// Drops the oldest releases that have ended: their senders no longer hold them.
    fn forget_settled(&mut self) {
        while let Some((_, sent)) = self.sent.front()
            && Arc::strong_count(sent) == 1
        {
            self.sent.pop_front();
        }
    }

    /// Takes over the releases that have had no answer in time.
    pub(super) fn overdue(&mut self, now: BootTime) -> Vec<ReleaseJob> {
        let mut jobs = Vec::new();
        while let Some((at, sent)) = self.sent.front()
            && (*at <= now || Arc::strong_count(sent) == 1)
        {
            jobs.extend(sent.take_over());
            self.sent.pop_front();
        }
        jobs
    }

    /// Takes the releases that are under way outside the loop.
    pub(super) fn take_sent(&mut self) -> Vec<ReleaseJob> {
        let sent = self.sent.drain(..);
        sent.filter_map(|(_, sent)| sent.take()).collect()
    }

    /// Tells whether no release is under way outside the loop.
    pub(super) fn is_settled(&mut self) -> bool {
        self.forget_settled();
        self.sent.is_empty()
    }

    /// Returns the next instant at which the loop must look.
    pub(super) fn next(&mut self) -> Option<BootTime> {
        self.forget_settled();
        let overdue = self.sent.front().map(|(at, _)| *at);
        [self.live.next(), overdue].into_iter().flatten().min()
    }

    /// Notes when the loop looks next.
    pub(super) fn looks_at(&mut self, at: Option<BootTime>) {
        self.look = at;
    }

    /// Tells whether anything was added since the last call of this function.
    pub(super) fn was_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// Refuses grants from now on.
    pub(super) fn close(&mut self) {
        self.end = Some(Closed);
    }
}
