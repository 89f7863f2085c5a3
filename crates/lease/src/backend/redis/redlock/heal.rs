//! A node that lost the key of a lease gets it back after each renewal, by a vote for the same owner
//! and token. Else restarts, one after the other, would erode the majority.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::nodes::{Node, Nodes};
use crate::Owner;
use crate::backend::{Acquire, Backend, Durability, Names, Release, Renew, RenewReply};

/// A round of renewals that is decided, and whose late answers are still to come.
pub(super) struct Round {
    pub(super) batch: Arc<[Renew]>,
    /// Which grants of the batch a majority keeps.
    pub(super) kept: Vec<bool>,
    pub(super) heard: Vec<Option<Vec<RenewReply>>>,
    pub(super) answers: mpsc::Receiver<(usize, Vec<RenewReply>)>,
}

/// Grants that are being healed. A release may come in between: the vote that heals could then arrive
/// after it, and would stay until its ttl ends.
#[derive(Default)]
pub(super) struct Healing(Mutex<HashMap<(Owner, Names), Ongoing>>);

#[derive(Default)]
struct Ongoing {
    rounds: usize,
    is_released: bool,
}

impl Healing {
    fn ongoing(&self) -> MutexGuard<'_, HashMap<(Owner, Names), Ongoing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, renew: &Renew) {
        let grant = (renew.owner, renew.names.clone());
        self.ongoing().entry(grant).or_default().rounds += 1;
    }

    /// A release is about to be sent to the nodes.
    pub(super) fn release(&self, release: &Release) {
        let mut ongoing = self.ongoing();
        if ongoing.is_empty() {
            return;
        }
        if let Some(healing) = ongoing.get_mut(&(release.owner, release.names.clone())) {
            healing.is_released = true;
        }
    }

    /// Whether the grant was released meanwhile.
    fn end(&self, renew: &Renew) -> bool {
        let grant = (renew.owner, renew.names.clone());
        let mut ongoing = self.ongoing();
        let Some(healing) = ongoing.get_mut(&grant) else {
            return false;
        };
        let is_released = healing.is_released;
        healing.rounds = healing.rounds.saturating_sub(1);
        if healing.rounds == 0 {
            ongoing.remove(&grant);
        }
        is_released
    }
}

/// Heals in the background, so that the renewal need not wait for the slowest node. Only grants
/// that a majority has just confirmed are healed, and only on a minority of the nodes: even if this
/// process is paused in between, healing alone can never make a majority.
pub(super) fn behind(nodes: &Nodes, healing: &Arc<Healing>, round: Round) {
    if round.kept.contains(&true) {
        // Before the holder hears of its renewal, and so before it can release.
        round.healable().for_each(|(_, renew)| healing.begin(renew));
        nodes.background(round.heal(nodes.all().to_vec(), Arc::clone(healing)));
    }
}

impl Round {
    /// The grants that live on, by their places in the batch.
    fn healable(&self) -> impl Iterator<Item = (usize, &Renew)> {
        let all = self.batch.iter().zip(&self.kept).enumerate();
        let kept = all.filter(|(_, (renew, kept))| **kept && !renew.ttl.is_zero());
        kept.map(|(grant, (renew, _))| (grant, renew))
    }

    async fn heal(mut self, nodes: Vec<Node>, healing: Arc<Healing>) {
        while let Some((at, answer)) = self.answers.recv().await {
            if let Some(slot) = self.heard.get_mut(at) {
                *slot = Some(answer);
            }
        }
        for (grant, renew) in self.healable() {
            let said = |(_, heard): &(&Node, &Option<Vec<RenewReply>>)| {
                heard
                    .as_ref()
                    .and_then(|replies| replies.get(grant))
                    .cloned()
            };
            let both = || nodes.iter().zip(&self.heard);
            let has = both().find(|both| matches!(said(both), Some(RenewReply::Renewed { .. })));
            let lost = both().filter(|both| said(both) == Some(RenewReply::Gone));
            let lost: Vec<&Node> = lost.map(|(node, _)| node).collect();
            if let (Some((has, _)), false) = (has, lost.is_empty()) {
                give_back(renew, has, &lost).await;
            }
            if healing.end(renew) {
                take_back(renew, &lost).await;
            }
        }
    }
}

/// Releases on the nodes that were healed what its holder has released meanwhile.
async fn take_back(renew: &Renew, healed: &[&Node]) {
    let release = [Release {
        names: renew.names.clone(),
        owner: renew.owner,
        token: Some(renew.token),
        waiter: None,
    }];
    for node in healed {
        // A node that is not reached keeps it until its ttl ends.
        node.release_all(&release).await;
    }
}

/// Copies a grant from a node that has it to those that lost it.
async fn give_back(renew: &Renew, has: &Node, lost: &[&Node]) {
    let Some(name) = renew.names.as_slice().first() else {
        return;
    };
    let Ok(Some(holder)) = has.inspect(renew.names.group(), name).await else {
        return;
    };
    if holder.owner != renew.owner || holder.token.number() != renew.token.number() {
        return;
    }
    let grant = Acquire {
        names: renew.names.clone(),
        owner: renew.owner,
        ttl: holder.remaining.min(renew.ttl),
        cap: holder.cap,
        floor: None,
        waiter: None,
        fair: false,
        meta: holder.meta.into(),
        durability: Durability::Primary,
    };
    for node in lost {
        // A node that started a moment ago may store what a majority confirms. It still grants
        // nothing new.
        let healed = node
            .vote(&grant, renew.token.number(), Duration::ZERO)
            .await;
        if let Err(error) = healed {
            tracing::debug!(%error, "a node that lost a lease was not healed");
        }
    }
}
