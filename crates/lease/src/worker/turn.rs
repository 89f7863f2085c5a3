//! One turn of the loop: time first, then everything that callers put in, then what has ended.

use tracing::Instrument;

use super::job::ReleaseJob;
use super::{Called, Later, Worker};
use crate::inbox::Command;
use crate::limits::BATCH_MAX;
use crate::{BootTime, timing};

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
        let left_behind = self.ctx.left_behind().as_mut().map(std::mem::take);
        for (at, job) in left_behind.unwrap_or_default() {
            match at {
                Some(at) => self.later(at, Later::Release(job)),
                None => self.releases.push(job),
            }
        }
        // Before the acquires: what was given back is free when they ask for it.
        self.send_releases();
        self.start_acquires();
    }

    /// Computes when the loop must run again if no wake-up comes.
    pub(super) fn next_instant(&mut self) -> Option<BootTime> {
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        let end = self.ending.as_ref().and_then(|ending| ending.until);
        let mut table = self.ctx.table();
        if self.tick.is_none() && table.was_touched() {
            self.tick = Some(self.ctx.now().plus(timing::TICK));
        }
        let look = (!table.live.is_empty()).then(|| self.drift_look.plus(timing::DRIFT_LOOK));
        let next = [table.next(), later, look, end, self.tick];
        let next = next.into_iter().flatten().min();
        table.looks_at(next);
        next
    }

    fn look_at_the_clock(&mut self) {
        let now = self.ctx.now();
        self.tick = self.tick.filter(|at| now < *at);
        let mut table = self.ctx.table();
        let (due, overdue) = (table.live.due(now), table.overdue(now));
        drop(table);
        self.act_on(due);
        self.releases.extend(overdue);
        if now >= self.drift_look.plus(timing::DRIFT_LOOK) {
            self.drift_look = now;
            let due = self.ctx.table().live.drifted();
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
            Command::Acquire(params, to) => self.acquire(*params, to),
            Command::Renew(grant, ttl, to) => self.renew_by_hand(grant, ttl, to),
            Command::Release(grant, settle) => {
                let job = self.ctx.end_of(&grant);
                self.releases.push(job.settling(settle));
            }
            Command::Overtaken(grant, reason) => self.settle_loss(&grant, reason),
            Command::WakeAt(at, to) => self.later(at, Later::Alarm(to)),
            Command::Resume(terms, to) => self.resume(terms, to),
            Command::Call(call) => {
                self.calls.spawn(async move {
                    call.await;
                    Called::Answered
                });
            }
            Command::Shutdown(within, to) => self.shut_down(within, to),
            Command::Close => self.close(),
        }
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
                    self.ctx.released(job, reply);
                }
            }
            Ok(Called::Resumed(answer, to)) => self.resumed(answer, to),
            Ok(Called::Answered) | Err(_) => {}
        }
    }
}
