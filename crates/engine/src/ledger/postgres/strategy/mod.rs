//! How commands reach the database (model.md 7). `queue` gathers them; all others send them one at a
//! time and differ in what keeps two of them apart. Whatever a strategy does or fails to do, the
//! statement and the database's own keys refuse a second sale.
//!
//! Reading order: `queue`; then `errand` and `memory`, what the others have in common, and each of them.

mod alone;
mod constraint;
mod errand;
mod lease;
mod memory;
mod optimistic;
mod pessimistic;
mod queue;
mod reach;

use std::sync::Arc;

use soldonce_core::Rejection;
use soldonce_lease::Locks;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::errand::Errand;
use self::lease::Leases;
use self::pessimistic::Patience;
use super::booth::{Booth, Job};
use super::desk::Desk;
use super::limits::ERRANDS_MAX;
use super::survive::survive;
use super::tables::units;
use super::write::WRITE_HOLDS;

/// How commands reach the database (model.md 7).
#[derive(Clone, Default)]
pub enum Strategy {
    /// The commands of an event gather and are stored together: one commit acknowledges many.
    #[default]
    Queue,
    /// One statement, sent without asking first: the database's keys decide.
    Constraint,
    /// Read versions, write where they are still the same, and try again a bounded number of times.
    Optimistic,
    /// `SELECT .. FOR UPDATE` in unit order, waiting for whoever has a row; decide; write.
    Pessimistic,
    /// As [`Strategy::Pessimistic`], with `NOWAIT`: whoever finds a row locked looks again, and
    /// waits when he has looked often enough.
    NoWait,
    /// A lease over the units in Redis or a Redis Cluster, then a write under its fencing token.
    Lease(Locks),
    /// The same over a majority of independent Redis servers.
    Redlock(Locks),
}

impl Strategy {
    /// Its name (model.md 7).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Constraint => "constraint",
            Self::Optimistic => "optimistic",
            Self::Pessimistic => "pessimistic",
            Self::NoWait => "nowait",
            Self::Lease(_) => "lease",
            Self::Redlock(_) => "redlock",
        }
    }

    /// Where its leases come from, if it takes any.
    pub fn locks(&self) -> Option<&Locks> {
        match self {
            Self::Lease(locks) | Self::Redlock(locks) => Some(locks),
            Self::Queue
            | Self::Constraint
            | Self::Optimistic
            | Self::Pessimistic
            | Self::NoWait => None,
        }
    }

    /// The statements by which a hold reaches the database, in the sequence in which they are sent, for
    /// people who read along. What it reads of other servers' writes is left out.
    pub fn statements(&self) -> &'static [&'static str] {
        match self {
            Self::Queue
            | Self::Constraint
            | Self::Optimistic
            | Self::Lease(_)
            | Self::Redlock(_) => &[WRITE_HOLDS],
            Self::Pessimistic => &["BEGIN", units::LOCK, WRITE_HOLDS, "COMMIT"],
            Self::NoWait => &["BEGIN", units::LOCK_NOWAIT, WRITE_HOLDS, "COMMIT"],
        }
    }
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Serves one event until its queue is closed.
pub(super) async fn run(desk: Arc<Desk>, booth: Arc<Booth>, jobs: mpsc::Receiver<Job>) {
    match desk.strategy.clone() {
        Strategy::Queue => queue::run(desk, booth, jobs).await,
        Strategy::Constraint => one_by_one(desk, booth, jobs, Way::Constraint).await,
        Strategy::Optimistic => one_by_one(desk, booth, jobs, Way::Optimistic).await,
        Strategy::Pessimistic => {
            one_by_one(desk, booth, jobs, Way::Pessimistic(Patience::Wait)).await;
        }
        Strategy::NoWait => {
            one_by_one(desk, booth, jobs, Way::Pessimistic(Patience::NoWait)).await;
        }
        Strategy::Lease(locks) | Strategy::Redlock(locks) => {
            let leases = Leases::new(locks, &desk);
            one_by_one(desk, booth, jobs, Way::Lease(Arc::new(leases))).await;
        }
    }
}

/// A strategy that sends one command at a time.
#[derive(Clone)]
enum Way {
    Constraint,
    Optimistic,
    Pessimistic(Patience),
    Lease(Arc<Leases>),
}

/// Carries out each command by itself, many at once.
async fn one_by_one(desk: Arc<Desk>, booth: Arc<Booth>, mut jobs: mpsc::Receiver<Job>, way: Way) {
    let mut errands = JoinSet::new();
    loop {
        tokio::select! {
            job = jobs.recv(), if errands.len() < ERRANDS_MAX => {
                let Some(job) = job else { break };
                let (desk, booth) = (Arc::clone(&desk), Arc::clone(&booth));
                errands.spawn(carry_out(desk, booth, job, way.clone()));
            }
            Some(_) = errands.join_next() => {}
        }
    }
    errands.join_all().await;
}

async fn carry_out(desk: Arc<Desk>, booth: Arc<Booth>, job: Job, way: Way) {
    let errand = Errand::new(&desk, &booth, &job.transaction);
    let done = survive(async {
        if alone::is_needed(&job.transaction.command) {
            return errand.repeat(|| alone::attempt(&errand)).await;
        }
        match &way {
            Way::Constraint => errand.repeat(|| constraint::attempt(&errand)).await,
            Way::Optimistic => errand.repeat(|| optimistic::attempt(&errand)).await,
            Way::Pessimistic(patience) => {
                errand
                    .repeat(|| pessimistic::attempt(&errand, *patience))
                    .await
            }
            Way::Lease(leases) => errand.repeat(|| lease::attempt(&errand, leases)).await,
        }
    })
    .await;
    if done.is_none() {
        // What is stored is whole; what is remembered may not be.
        booth.replica.lock().await.forget();
    }
    job.answer(done.unwrap_or(Err(Rejection::OutcomeUnknown)));
}
