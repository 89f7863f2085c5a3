//! Counts votes. Pure functions of the answers, without I/O. A majority is always one of all
//! configured nodes, never of those that answered or of those that were won.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::redis::reply::Vote;
use crate::backend::{Acquire, AcquireReply, ReleaseReply, RenewReply};
use crate::{BackendError, Conflict, FencingToken, Refusal};

pub(super) const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// The meaning of the votes so far.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// Too early to tell.
    Open,
    /// A majority granted.
    Won(AcquireReply),
    /// No majority is possible any more, except with a token above this one.
    TooLow(FencingToken),
    /// No majority is possible any more.
    Lost(AcquireReply),
}

#[derive(Default)]
pub(super) struct Votes {
    nodes: usize,
    answered: usize,
    /// For each token, how many nodes granted it, and the shortest life.
    granted: BTreeMap<FencingToken, (usize, Duration)>,
    again: bool,
    capped: usize,
    too_low: Vec<FencingToken>,
    young: Vec<Duration>,
    refusals: Vec<Refusal>,
    failures: Vec<BackendError>,
}

impl Votes {
    pub(super) fn of(nodes: usize) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, vote: Result<Vote, BackendError>) {
        self.answered += 1;
        match vote {
            Ok(Vote::Reply(reply)) => self.add_reply(reply),
            Ok(Vote::TooLow(last)) => self.too_low.push(last),
            Ok(Vote::Young(age)) => self.young.push(age),
            Err(error) => self.failures.push(error),
        }
    }

    fn add_reply(&mut self, reply: AcquireReply) {
        match reply {
            AcquireReply::Granted {
                token,
                granted,
                again,
                ..
            } => {
                let (count, life) = self.granted.entry(token).or_insert((0, granted));
                *count += 1;
                *life = granted.min(*life);
                self.again |= again;
            }
            AcquireReply::Refused(refusal) => self.refusals.push(refusal),
            AcquireReply::CapReached => self.capped += 1,
            AcquireReply::QueueFull | AcquireReply::Epoch(_) => {
                self.failures
                    .push(BackendError::Unknown("an answer of no vote".to_owned()));
            }
            AcquireReply::Failed(error) => self.failures.push(error),
        }
    }

    /// Counts the votes. `split_retry` is when to ask again after a vote without a majority.
    pub(super) fn outcome(&self, command: &Acquire, split_retry: Duration) -> Outcome {
        let needed = majority(self.nodes);
        let best = self.granted.iter().max_by_key(|(_, (count, _))| *count);
        let votes = best.map_or(0, |(_, (count, _))| *count);
        if let Some((&token, &(count, granted))) = best
            && count >= needed
        {
            return Outcome::Won(AcquireReply::Granted {
                picked: None,
                token,
                granted,
                again: self.again,
                replicas: None,
            });
        }
        let open = self.nodes - self.answered;
        if votes + open >= needed {
            return Outcome::Open;
        }
        // A higher token may still have a majority, if nodes that have not answered want one too.
        let higher = votes + self.too_low.len();
        match self.too_low.iter().max() {
            Some(&last) if higher >= needed => Outcome::TooLow(last),
            Some(_) if higher + open >= needed => Outcome::Open,
            _ => Outcome::Lost(self.lost(command, split_retry)),
        }
    }

    /// Explains why there is no majority. Conflicts tell most, then the cap, an unknown outcome,
    /// nodes that started too recently to vote, and other errors.
    fn lost(&self, command: &Acquire, split_retry: Duration) -> AcquireReply {
        if !self.refusals.is_empty() || !self.too_low.is_empty() {
            return AcquireReply::Refused(self.refusal(command, split_retry));
        }
        if self.capped > 0 {
            return AcquireReply::CapReached;
        }
        let unknown = |error: &&BackendError| matches!(error, BackendError::Unknown(_));
        if let Some(error) = self.failures.iter().find(unknown) {
            return AcquireReply::Failed(error.clone());
        }
        if !self.young.is_empty() {
            let ages: Vec<String> = self.young.iter().map(|age| format!("{age:?}")).collect();
            return AcquireReply::Failed(BackendError::Rejected {
                code: "YOUNG".to_owned(),
                message: format!(
                    "no majority: {} of {} nodes do not vote yet, they started {} ago",
                    self.young.len(),
                    self.nodes,
                    ages.join(", ")
                ),
            });
        }
        // One node that refuses for good ends no wait while another may come back.
        let passes = |error: &&BackendError| !error.is_lasting();
        let passing = self.failures.iter().find(passes);
        let failure = passing.or(self.failures.first()).cloned();
        let split = BackendError::Unknown("the votes were split".to_owned());
        AcquireReply::Failed(failure.unwrap_or(split))
    }

    /// Merges the conflicts of all nodes, each name once. A name that no single owner has on a
    /// majority is contended, not held: the caller gives it back at once.
    fn refusal(&self, command: &Acquire, split_retry: Duration) -> Refusal {
        let mut refusal = Refusal::default();
        let mut held = false;
        for name in command.names.as_slice() {
            let told = self.refusals.iter().flat_map(|refusal| &refusal.conflicts);
            let told: Vec<&Conflict> = told.filter(|conflict| conflict.name == *name).collect();
            let Some(longest) = told.iter().max_by_key(|told| (told.token, told.remaining)) else {
                continue;
            };
            let same = told.iter().filter(|told| told.token == longest.token);
            held |= same.count() >= majority(self.nodes);
            refusal.retry_after = refusal.retry_after.max(longest.remaining);
            refusal.conflicts.push((*longest).clone());
        }
        if !held {
            refusal.retry_after = split_retry;
        }
        refusal
    }

    /// Lists every token in the answers, so that the next one can be above it.
    pub(super) fn tokens(&self) -> impl Iterator<Item = FencingToken> + '_ {
        let conflicts = self.refusals.iter().flat_map(|refusal| &refusal.conflicts);
        let told = conflicts.map(|conflict| conflict.token);
        told.chain(self.too_low.iter().copied())
    }
}

/// Decides one renewal by the nodes' answers; `None` while it is too early. A minority is no lease,
/// even if all other nodes are only silent: then it is unknown.
///
/// Of several other owners the highest token is returned though not every node has answered: those
/// that said no are too many to be missed by any owner's majority.
pub(super) fn renewal(nodes: usize, answers: &[Option<&RenewReply>]) -> Option<RenewReply> {
    let (mut yes, mut open, mut failed) = (0, 0, None);
    let (mut life, mut taken, mut capped) = (Duration::MAX, None, false);
    for answer in answers {
        match answer {
            None => open += 1,
            Some(RenewReply::Renewed { granted }) => {
                yes += 1;
                life = life.min(*granted);
            }
            Some(RenewReply::Taken { by }) => taken = taken.max(Some(*by)),
            Some(RenewReply::Capped) => capped = true,
            Some(RenewReply::Gone) => {}
            Some(RenewReply::Failed(error)) => {
                open += 1;
                failed = Some(error.clone());
            }
        }
    }
    if yes >= majority(nodes) {
        return Some(RenewReply::Renewed { granted: life });
    }
    let waiting = answers.iter().any(Option::is_none);
    if yes + open >= majority(nodes) {
        let failed = failed.filter(|_| !waiting)?;
        return Some(RenewReply::Failed(failed));
    }
    Some(match taken {
        Some(by) => RenewReply::Taken { by },
        None if capped => RenewReply::Capped,
        None => RenewReply::Gone,
    })
}

/// Decides one release by the nodes' answers; `None` while it is too early. Another owner has a
/// name if a majority says so: one node may not have received the release of its owner yet.
pub(super) fn release(nodes: usize, answers: &[Option<&ReleaseReply>]) -> Option<ReleaseReply> {
    let (mut released, mut silent, mut failed) = (0, 0, None);
    let mut taken = Vec::new();
    for answer in answers.iter().flatten() {
        match answer {
            ReleaseReply::Released => released += 1,
            ReleaseReply::Gone => {}
            ReleaseReply::Taken { by } => taken.push(*by),
            ReleaseReply::Failed(error) => {
                failed = Some(error.clone());
                silent += 1;
            }
        }
    }
    if released >= majority(nodes) {
        return Some(ReleaseReply::Released);
    }
    if answers.iter().any(Option::is_none) {
        return None;
    }
    let by = taken.iter().max().copied();
    Some(match (failed, by) {
        (Some(error), _) if nodes - silent < majority(nodes) => ReleaseReply::Failed(error),
        // A majority may have had it, and none has it now.
        (Some(_), _) if released > 0 && released + silent >= majority(nodes) => {
            ReleaseReply::Released
        }
        (_, Some(by)) if taken.len() >= majority(nodes) => ReleaseReply::Taken { by },
        (_, Some(_) | None) => ReleaseReply::Gone,
    })
}

#[cfg(test)]
mod tests;
