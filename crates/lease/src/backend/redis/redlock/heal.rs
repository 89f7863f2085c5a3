//! Heals nodes: one that lost the key of a lease gets it back after each renewal, by a vote for the
//! same owner and token. Else restarts, one after the other, would erode the majority.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::late::{self, Expected, LateVotes};
use super::nodes::{Node, Nodes};
use crate::backend::{Acquire, Backend, Durability, Renew, RenewReply};

/// A round of renewals that is decided, with answers still to come.
pub(super) struct Round {
    pub(super) batch: Arc<[Renew]>,
    /// For each grant of the batch, whether a majority keeps it.
    pub(super) kept: Vec<bool>,
    pub(super) heard: Vec<Option<Vec<RenewReply>>>,
    pub(super) answers: mpsc::Receiver<(usize, Vec<RenewReply>)>,
}

/// Heals in the background, so that the renewal need not wait for the slowest node. Only grants
/// that a majority has just confirmed are healed, and only on a minority of the nodes: even if this
/// process is paused in between, healing alone can never make a majority.
pub(super) fn behind(nodes: &Nodes, late: &Arc<LateVotes>, round: Round) {
    if round.kept.contains(&true) {
        let healable = round.healable().map(|(grant, renew)| {
            let release = late::release_of(renew.owner, &renew.names, renew.token.number());
            (grant, late.expect(release))
        });
        let healable = healable.collect();
        nodes.background(round.heal(nodes.all().to_vec(), Arc::clone(late), healable));
    }
}

impl Round {
    /// Lists the grants that live on, by their index in the batch.
    fn healable(&self) -> impl Iterator<Item = (usize, &Renew)> {
        let all = self.batch.iter().zip(&self.kept).enumerate();
        let kept = all.filter(|(_, (renew, kept))| **kept && !renew.ttl.is_zero());
        kept.map(|(grant, (renew, _))| (grant, renew))
    }

    async fn heal(
        mut self,
        nodes: Vec<Node>,
        late: Arc<LateVotes>,
        healable: Vec<(usize, Arc<Expected>)>,
    ) {
        while let Some((at, answer)) = self.answers.recv().await {
            if let Some(slot) = self.heard.get_mut(at) {
                *slot = Some(answer);
            }
        }
        for (grant, expected) in healable {
            let said = |(_, heard): &(&Node, &Option<Vec<RenewReply>>)| {
                let replies = heard.as_ref()?;
                replies.get(grant).cloned()
            };
            let both = || nodes.iter().zip(&self.heard);
            let has = both().find(|both| matches!(said(both), Some(RenewReply::Renewed { .. })));
            let lost = both().filter(|both| said(both) == Some(RenewReply::Gone));
            let lost: Vec<&Node> = lost.map(|(node, _)| node).collect();
            if let (Some((has, _)), false, Some(renew)) =
                (has, lost.is_empty(), self.batch.get(grant))
            {
                copy(renew, has, &lost).await;
            }
            // The vote that heals may have come after a release.
            if let Some(release) = late.came(&expected) {
                late::give_back(&lost, release).await;
            }
        }
    }
}

/// Copies a grant from a node that has it to those that lost it.
async fn copy(renew: &Renew, has: &Node, lost: &[&Node]) {
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
        meta: holder.meta,
        durability: Durability::Primary,
    };
    for node in lost {
        // A node that started a moment ago may store what a majority confirms. It still grants
        // nothing new.
        let vote = node.vote(&grant, renew.token.number(), Duration::ZERO);
        if let Err(error) = vote.await {
            tracing::debug!(%error, "a node that lost a lease was not healed");
        }
    }
}
