//! A node that lost the key of a lease gets it back after each renewal, by a vote for the same owner
//! and token. Else restarts, one after the other, would erode the majority.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::nodes::{Node, Nodes};
use crate::backend::{Acquire, Backend, Durability, Renew, RenewReply};

/// A round of renewals that is decided, and whose late answers are still to come.
pub(super) struct Round {
    pub(super) batch: Arc<[Renew]>,
    /// Which grants of the batch a majority keeps.
    pub(super) kept: Vec<bool>,
    pub(super) heard: Vec<Option<Vec<RenewReply>>>,
    pub(super) answers: mpsc::Receiver<(usize, Vec<RenewReply>)>,
}

/// Heals in the background, so that the renewal need not wait for the slowest node. Only grants
/// that a majority has just confirmed are healed, and only on a minority of the nodes: even if this
/// process is paused in between, healing alone can never make a majority.
pub(super) fn behind(nodes: &Nodes, round: Round) {
    if round.kept.contains(&true) {
        let all = nodes.all().to_vec();
        nodes.background(round.heal(all));
    }
}

impl Round {
    async fn heal(mut self, nodes: Vec<Node>) {
        while let Some((at, answer)) = self.answers.recv().await {
            if let Some(slot) = self.heard.get_mut(at) {
                *slot = Some(answer);
            }
        }
        let kept = self.batch.iter().zip(&self.kept).enumerate();
        for (grant, (renew, _)) in kept.filter(|(_, (renew, kept))| **kept && !renew.ttl.is_zero())
        {
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
        }
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
