//! Votes that arrive after their round was decided, and their release. A release may overtake such
//! a vote, which would then stay at its node until its ttl ends, so the release is repeated when
//! the vote has arrived.

use std::collections::HashMap;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::mpsc;

use super::nodes::Node;
use super::{Redlock, VOTE_MAX};
use crate::backend::redis::reply::Vote;
use crate::backend::{Acquire, Names, Release, ReleaseReply};
use crate::locks::lock;
use crate::{BackendError, FencingToken, Owner};

/// Votes that are still to come, by node.
pub(super) type Late = mpsc::Receiver<(usize, Result<Vote, BackendError>)>;

/// The answers of the nodes to a withdrawal, which continues even if no caller waits for them.
pub(super) type Withdrawal = mpsc::Receiver<(usize, Vec<ReleaseReply>)>;

/// Grants with votes that are still to come.
#[derive(Default)]
pub(super) struct LateVotes(Mutex<HashMap<Owner, Vec<Arc<Expected>>>>);

/// Votes for one grant that are still to come.
pub(super) struct Expected {
    release: Release,
    is_released: AtomicBool,
}

impl LateVotes {
    fn expected(&self) -> MutexGuard<'_, HashMap<Owner, Vec<Arc<Expected>>>> {
        lock(&self.0)
    }

    /// Begins to watch for a release. Must be called before the holder learns of its grant, and so
    /// before it can release.
    pub(super) fn expect(&self, release: Release) -> Arc<Expected> {
        let expected = Arc::new(Expected {
            release,
            is_released: AtomicBool::new(false),
        });
        let mut all = self.expected();
        let of_owner = all.entry(expected.release.owner).or_default();
        of_owner.push(Arc::clone(&expected));
        expected
    }

    /// Notes a release that is about to be sent to the nodes.
    pub(super) fn release(&self, release: &Release) {
        let all = self.expected();
        for expected in all.get(&release.owner).into_iter().flatten() {
            if expected.shares_a_name(&release.names) {
                expected.is_released.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Ends the watch. Returns the release to repeat, if there was one meanwhile.
    pub(super) fn came<'a>(&self, expected: &'a Arc<Expected>) -> Option<&'a Release> {
        let mut all = self.expected();
        if let Some(of_owner) = all.get_mut(&expected.release.owner) {
            of_owner.retain(|one| !Arc::ptr_eq(one, expected));
            if of_owner.is_empty() {
                all.remove(&expected.release.owner);
            }
        }
        let is_released = expected.is_released.load(Ordering::Relaxed);
        is_released.then_some(&expected.release)
    }
}

impl Expected {
    fn shares_a_name(&self, names: &Names) -> bool {
        let mut ours = self.release.names.as_slice().iter();
        ours.any(|name| names.as_slice().contains(name))
    }
}

impl Redlock {
    /// Makes a release cover the votes that are still to come, too.
    pub(super) fn watch(&self, command: &Acquire, token: u64, late: Late) {
        let release = release_of(command.owner, &command.names, token);
        let (votes, nodes) = (Arc::clone(&self.late), self.nodes.all().to_vec());
        let expected = votes.expect(release);
        self.nodes.background(watch(nodes, late, votes, expected));
    }

    /// Releases on every node what a lost vote left, also on nodes that refused or were silent. A
    /// vote that is still on its way may be overtaken, so it is released again when it has arrived.
    pub(super) fn withdraw(&self, command: &Acquire, token: u64, late: Late) -> Withdrawal {
        let release = Arc::new(release_of(command.owner, &command.names, token));
        let answers = self.nodes.ask(|node| {
            let release = Arc::clone(&release);
            Box::pin(async move { node.release_all(slice::from_ref(&*release)).await })
        });
        let nodes = self.nodes.all().to_vec();
        self.nodes.background(give_back_each(nodes, late, release));
        answers
    }

    /// Waits for withdrawals, at most for the time of a vote: nodes that answer at all do so by
    /// then. The others are released in the background.
    pub(super) async fn withdrawn(&self, withdrawals: impl IntoIterator<Item = Withdrawal>) {
        let until = self.clock.boot().plus(VOTE_MAX);
        let all = async {
            for answers in withdrawals {
                ended(answers).await;
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = self.clock.sleep_until(until) => {}
        }
    }
}

async fn ended(mut answers: Withdrawal) {
    while answers.recv().await.is_some() {}
}

/// Builds the release of a vote, compared by `token`: what the owner is granted later stays.
pub(super) fn release_of(owner: Owner, names: &Names, token: u64) -> Release {
    Release {
        names: names.clone(),
        owner,
        token: FencingToken::new(token),
        waiter: None,
    }
}

/// Waits for the late votes of a grant, and releases them if it was released before they came.
async fn watch(nodes: Vec<Node>, mut late: Late, votes: Arc<LateVotes>, expected: Arc<Expected>) {
    let mut came = Vec::new();
    while let Some((at, _)) = late.recv().await {
        came.extend(nodes.get(at));
    }
    if let Some(release) = votes.came(&expected) {
        give_back(&came, release).await;
    }
}

/// Releases each vote of a lost round once it has arrived.
async fn give_back_each(nodes: Vec<Node>, mut late: Late, release: Arc<Release>) {
    while let Some((at, _)) = late.recv().await {
        let node = nodes.get(at);
        give_back(node.as_slice(), &release).await;
    }
}

/// Releases on each of `nodes`. A node that is not reached keeps its vote until its ttl ends.
pub(super) async fn give_back(nodes: &[&Node], release: &Release) {
    for node in nodes {
        node.release_all(slice::from_ref(release)).await;
    }
}
