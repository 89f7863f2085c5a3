//! Renewals and releases: sent to all nodes, decided by a majority of all nodes.

use std::sync::Arc;

use super::heal::{self, Round};
use super::{Redlock, quorum};
use crate::BackendError;
use crate::backend::{Release, ReleaseReply, Renew, RenewReply};

impl Redlock {
    /// Renews; fails, as an acquire does, for a ttl that restarted nodes would not sit out.
    pub(super) async fn renew_all(&self, batch: &[Renew]) -> Vec<RenewReply> {
        let fits = |renew: &Renew| renew.ttl <= self.config.ttl_longest;
        let fitting: Vec<Renew> = batch.iter().filter(|one| fits(one)).cloned().collect();
        let mut decided = self.renew_fitting(&fitting).await.into_iter();
        let reply = |renew: &Renew| {
            let of_nodes = fits(renew).then(|| decided.next()).flatten();
            of_nodes.unwrap_or_else(|| RenewReply::Failed(self.too_long(renew.ttl)))
        };
        batch.iter().map(reply).collect()
    }

    async fn renew_fitting(&self, batch: &[Renew]) -> Vec<RenewReply> {
        if batch.is_empty() {
            return Vec::new();
        }
        let sent = self.clock.boot();
        let asked: Arc<[Renew]> = batch.into();
        let mut answers = self.nodes.ask(|node| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { node.renew_all(&asked).await })
        });
        let mut heard: Vec<Option<Vec<RenewReply>>> = vec![None; self.nodes.len()];
        let mut replies = None;
        while replies.is_none() {
            let Some((at, answer)) = answers.recv().await else {
                break;
            };
            if let Some(slot) = heard.get_mut(at) {
                *slot = Some(answer);
            }
            replies = decide(&heard, batch.len(), quorum::renewal);
        }
        let Some(replies) = replies else {
            let lost = BackendError::Unknown("the nodes were not asked to the end".to_owned());
            return vec![RenewReply::Failed(lost); batch.len()];
        };
        for (renew, reply) in batch.iter().zip(&replies) {
            if let RenewReply::Renewed { granted } = reply {
                let held = (renew.token.number(), sent.plus(*granted));
                self.numbers.held(renew.owner, &renew.names, held);
            }
        }
        let is_renewed = |reply: &RenewReply| matches!(reply, RenewReply::Renewed { .. });
        let round = Round {
            batch: asked,
            kept: replies.iter().map(is_renewed).collect(),
            heard,
            answers,
        };
        heal::behind(&self.nodes, &self.late, round);
        replies
    }

    pub(super) async fn release_all(&self, batch: &[Release]) -> Vec<ReleaseReply> {
        for release in batch {
            self.numbers.forget(release.owner, &release.names);
            self.late.release(release);
        }
        let asked: Arc<[Release]> = batch.into();
        let mut answers = self.nodes.ask(|node| {
            let asked = Arc::clone(&asked);
            Box::pin(async move { node.release_all(&asked).await })
        });
        let mut heard: Vec<Option<Vec<ReleaseReply>>> = vec![None; self.nodes.len()];
        while let Some((at, answer)) = answers.recv().await {
            if let Some(slot) = heard.get_mut(at) {
                *slot = Some(answer);
            }
            if let Some(replies) = decide(&heard, batch.len(), quorum::release) {
                return replies;
            }
        }
        let lost = BackendError::Unknown("the nodes were not asked to the end".to_owned());
        vec![ReleaseReply::Failed(lost); batch.len()]
    }
}

/// Computes the replies for all `grants` of a batch, once every one of them is decided.
fn decide<R>(
    heard: &[Option<Vec<R>>],
    grants: usize,
    rule: fn(usize, &[Option<&R>]) -> Option<R>,
) -> Option<Vec<R>> {
    let of = |grant: usize| {
        let answers = heard.iter().map(|node| node.as_ref()?.get(grant));
        rule(heard.len(), &answers.collect::<Vec<_>>())
    };
    (0..grants).map(of).collect()
}
