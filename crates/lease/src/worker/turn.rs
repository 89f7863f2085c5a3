//! One turn of the loop: time first, then everything that callers put in, then what has ended.

use std::sync::Arc;

use tracing::Instrument;

use super::job::{ReleaseJob, Why};
use super::release::Next;
use super::{Called, Later, Worker};
use crate::backend::{Release, ReleaseReply};
use crate::grant::{Deletes, Grant};
use crate::inbox::Command;
use crate::limits::BATCH_MAX;
use crate::{BootTime, Tag, timing};

impl Worker {
    pub(super) fn turn(&mut self, batch: &mut Vec<Command>) {
        self.look_at_the_clock();
        self.ctx.clone().inbox.take(batch);
        if self.tick.is_none() && !batch.is_empty() {
            self.tick = Some(self.ctx.now().plus(timing::TICK));
        }
        for command in batch.drain(..) {
            self.command(command);
        }
        while let Some(done) = self.acquires.try_join_next() {
            self.acquired_or_panicked(done);
        }
        while let Some(done) = self.calls.try_join_next() {
            self.called_or_panicked(done);
        }
        self.releases.append(&mut self.ctx.take_left_behind());
        // Before the acquires: what was given back is free when they ask for it.
        self.send_releases();
        self.start_acquires();
        self.ctx.counters.live.set(self.live.len());
    }

    /// When the loop must run again without a command.
    pub(super) fn next_instant(&self) -> Option<BootTime> {
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        let look = (!self.live.is_empty()).then(|| self.drift_look.plus(timing::DRIFT_LOOK));
        let end = self.ending.as_ref().and_then(super::end::Ending::until);
        [self.live.next(), later, look, end, self.tick]
            .into_iter()
            .flatten()
            .min()
    }

    fn look_at_the_clock(&mut self) {
        let now = self.ctx.now();
        self.tick = self.tick.filter(|at| now < *at);
        let due = self.live.due(now);
        self.act_on(due);
        if now >= self.drift_look.plus(timing::DRIFT_LOOK) {
            self.drift_look = now;
            let due = self.live.drifted();
            self.act_on(due);
        }
        while let Some(entry) = self.later.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove() {
                Later::Release(job) => self.releases.push(job),
                Later::Alarm(to) => drop(to.send(())),
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Acquire(params) => self.acquire(*params),
            Command::Renew(grant, ttl, to) => self.renew_by_hand(grant, ttl, to),
            Command::Release(grant, settle) => {
                self.live.remove(grant.terms.owner);
                let (token, born) = (grant.terms.token, grant.terms.born);
                let job = self.job(&grant, Why::Guard { token, born });
                self.releases.push(job.settling(settle));
            }
            Command::Forget(grant) => drop(self.live.remove(grant.terms.owner)),
            Command::Overtaken(grant, by, ended) => {
                self.floors.raise(&grant.terms.names, by);
                if let Some(reason) = ended {
                    self.settle_loss(&grant, reason);
                }
            }
            Command::WakeAt(at, to) => self.later(at, Later::Alarm(to)),
            Command::Resume(terms, to) => self.resume(terms, to),
            Command::Inspect(place, to) => self.inspect(place, to),
            Command::ForceRelease(place, expect, to) => self.force_release(place, expect, to),
            Command::Doctor(to) => self.doctor(to),
            Command::Shutdown(within, to) => self.shut_down(within, to),
            Command::Close => self.close(),
        }
    }

    /// Puts a grant among the live ones.
    pub(super) fn watch(&mut self, grant: Arc<Grant>) {
        if self.live.is_empty() {
            self.drift_look = self.ctx.now();
        }
        self.live.insert(grant);
    }

    /// The release of a grant of this process.
    pub(super) fn job(&self, grant: &Grant, why: Why) -> ReleaseJob {
        let release = Release {
            names: grant.terms.names.clone(),
            owner: grant.terms.owner,
            token: Some(grant.terms.token.with_tag(Tag::default())),
            waiter: None,
        };
        let ttl = grant.ttl();
        let again = (grant.terms.deletes == Deletes::Twice).then_some(ttl / 2);
        let give_up = grant.sent().plus(ttl).max(self.ctx.now().plus(ttl / 2));
        ReleaseJob::of(release, why, give_up, again)
    }

    pub(super) fn later(&mut self, at: BootTime, later: Later) {
        self.later_seq = self.later_seq.wrapping_add(1);
        self.later.insert((at, self.later_seq), later);
    }

    fn send_releases(&mut self) {
        while !self.releases.is_empty() {
            let size = self.releases.len().min(BATCH_MAX);
            let jobs: Vec<ReleaseJob> = self.releases.drain(..size).collect();
            self.releasing += size;
            let ctx = self.ctx.clone();
            let span = tracing::debug_span!("lease.release", count = size);
            let call = async move { Called::Released(super::release::send(&ctx, jobs).await) };
            self.calls.spawn(call.instrument(span));
        }
    }

    pub(super) fn called_or_panicked(&mut self, done: Result<Called, tokio::task::JoinError>) {
        match done {
            Ok(Called::Renewed(answers)) => self.renewed(answers),
            Ok(Called::Released(answers)) => {
                self.releasing = self.releasing.saturating_sub(answers.len());
                for (job, reply) in answers {
                    self.released(job, reply);
                }
            }
            Ok(Called::Resumed(resumed)) => self.resumed(*resumed),
            Ok(Called::Answered) | Err(_) => {}
        }
    }

    fn released(&mut self, job: ReleaseJob, reply: ReleaseReply) {
        if let Some(ending) = &mut self.ending
            && !matches!(reply, ReleaseReply::Failed(_))
        {
            ending.count();
        }
        match job.answered(&self.ctx, reply) {
            Next::Done => {}
            Next::At(at, job) => self.later(at, Later::Release(job)),
            Next::LeftToTtl => self.ctx.counters.left_to_ttl.add(1),
        }
    }
}
