//! Counts votes. Pure: what was answered goes in, what it means comes out. A majority is always one
//! of all configured nodes, never of those that answered or of those that were won.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backend::redis::reply::Vote;
use crate::backend::{Acquire, AcquireReply, ReleaseReply, RenewReply};
use crate::{BackendError, Conflict, FencingToken, Refusal};

/// How many of `nodes` are a majority.
pub(super) const fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// What the votes that came so far mean.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    /// Too early to tell.
    Open,
    /// A majority granted.
    Won(AcquireReply),
    /// No majority any more, unless with a token above this one.
    TooLow(FencingToken),
    /// No majority any more.
    Lost(AcquireReply),
}

/// The votes for one acquire.
pub(super) struct Votes {
    nodes: usize,
    answered: usize,
    /// By token: how many nodes, and the shortest life.
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
            answered: 0,
            granted: BTreeMap::new(),
            again: false,
            capped: 0,
            too_low: Vec::new(),
            young: Vec::new(),
            refusals: Vec::new(),
            failures: Vec::new(),
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

    /// `split_retry` is when to ask again after nobody had a majority.
    pub(super) fn outcome(&self, command: &Acquire, split_retry: Duration) -> Outcome {
        let needed = majority(self.nodes);
        let best = self.granted.iter().max_by_key(|(_, (count, _))| *count);
        let votes = best.map_or(0, |(_, (count, _))| *count);
        if let Some((&token, &(count, granted))) = best
            && count >= needed
        {
            return Outcome::Won(AcquireReply::Granted {
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
        // A higher token may still have a majority, if those who have not answered yet want one too.
        let higher = votes + self.too_low.len();
        match self.too_low.iter().max() {
            Some(&last) if higher >= needed => Outcome::TooLow(last),
            Some(_) if higher + open >= needed => Outcome::Open,
            _ => Outcome::Lost(self.lost(command, split_retry)),
        }
    }

    /// Why there is no majority; conflicts tell most, and only silence is unknown.
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
        let failure = self.failures.first().cloned();
        let split = BackendError::Unknown("the votes were split".to_owned());
        AcquireReply::Failed(failure.unwrap_or(split))
    }

    /// All conflicts of all nodes, each name once. A name that no single owner has on a majority is
    /// contended, not held: whoever asked for it gives it back at once.
    fn refusal(&self, command: &Acquire, split_retry: Duration) -> Refusal {
        let mut refusal = Refusal::default();
        let mut held = false;
        for name in command.names.as_slice() {
            let told = self.refusals.iter().flat_map(|refusal| &refusal.conflicts);
            let told: Vec<&Conflict> = told.filter(|conflict| conflict.name == *name).collect();
            let Some(longest) = told.iter().max_by_key(|told| (told.token, told.remaining)) else {
                continue;
            };
            let same = told
                .iter()
                .filter(|told| told.token == longest.token)
                .count();
            held |= same >= majority(self.nodes);
            refusal.retry_after = refusal.retry_after.max(longest.remaining);
            refusal.conflicts.push((*longest).clone());
        }
        if !held {
            refusal.retry_after = split_retry;
        }
        refusal
    }

    /// Every token that was told, so that the next one can be above it.
    pub(super) fn tokens(&self) -> impl Iterator<Item = FencingToken> + '_ {
        let conflicts = self.refusals.iter().flat_map(|refusal| &refusal.conflicts);
        let told = conflicts.map(|conflict| conflict.token);
        told.chain(self.too_low.iter().copied())
    }
}

/// What the nodes' answers to one renewal mean; `None` while it is too early to tell. A minority is
/// no lease, even if all other nodes are only silent: then it is unknown.
///
/// Of several other owners the highest is told though not every node has answered: those that said
/// no are too many to be missed by any owner's majority.
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

/// What the nodes' answers to one release mean; `None` while it is too early to tell.
pub(super) fn release(nodes: usize, answers: &[Option<&ReleaseReply>]) -> Option<ReleaseReply> {
    let (mut released, mut silent, mut failed, mut taken) = (0, 0, None, None);
    for answer in answers.iter().flatten() {
        match answer {
            ReleaseReply::Released => released += 1,
            ReleaseReply::Gone => {}
            ReleaseReply::Taken { by } => taken = taken.max(Some(*by)),
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
    Some(match (failed, taken) {
        (Some(error), _) if nodes - silent < majority(nodes) => ReleaseReply::Failed(error),
        // A majority may have had it, and none has it now.
        (Some(_), _) if released > 0 && released + silent >= majority(nodes) => {
            ReleaseReply::Released
        }
        (_, Some(by)) => ReleaseReply::Taken { by },
        (_, None) => ReleaseReply::Gone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rule = fn(usize, &[Option<&RenewReply>]) -> Option<RenewReply>;

    fn token(counter: u32) -> FencingToken {
        FencingToken::from_parts(1, counter).expect("legal")
    }

    /// Every way in which so many nodes can answer, silence included.
    fn every_round(nodes: usize) -> Vec<Vec<Option<RenewReply>>> {
        let granted = Duration::from_secs(1);
        let one = [
            None,
            Some(RenewReply::Renewed { granted }),
            Some(RenewReply::Gone),
            Some(RenewReply::Taken { by: token(9) }),
            Some(RenewReply::Failed(BackendError::Unknown(String::new()))),
        ];
        let mut rounds = vec![Vec::new()];
        for _ in 0..nodes {
            let mut next = Vec::new();
            for answer in &one {
                next.extend(rounds.iter().map(|round| longer(round, answer.as_ref())));
            }
            rounds = next;
        }
        rounds
    }

    fn longer(
        round: &[Option<RenewReply>],
        answer: Option<&RenewReply>,
    ) -> Vec<Option<RenewReply>> {
        let mut round = round.to_vec();
        round.push(answer.cloned());
        round
    }

    /// The first round that `rule` judges wrongly: a lease without a majority of all nodes, or an
    /// end of one that a majority may still have.
    fn first_wrong(rule: Rule) -> Option<Vec<Option<RenewReply>>> {
        let wrong = |round: &Vec<Option<RenewReply>>| {
            let answers: Vec<Option<&RenewReply>> = round.iter().map(Option::as_ref).collect();
            let count = |of: fn(&RenewReply) -> bool| {
                answers
                    .iter()
                    .filter(|answer| answer.is_some_and(of))
                    .count()
            };
            let yes = count(|reply| matches!(reply, RenewReply::Renewed { .. }));
            let silent = count(|reply| matches!(reply, RenewReply::Failed(_)));
            let waiting = answers.iter().filter(|answer| answer.is_none()).count();
            let enough = round.len() / 2 + 1;
            match rule(round.len(), &answers) {
                Some(RenewReply::Renewed { .. }) => yes < enough,
                Some(RenewReply::Failed(_)) => yes >= enough || yes + silent < enough,
                Some(_) => yes + silent + waiting >= enough,
                None => yes >= enough || waiting == 0,
            }
        };
        let mut rounds = [3, 5].into_iter().flat_map(every_round);
        rounds.find(wrong)
    }

    fn ask() -> Acquire {
        Acquire {
            names: crate::backend::Names::one(crate::Name::new("n").expect("legal")),
            owner: crate::Owner::from_bits([1; 16]),
            ttl: Duration::from_secs(2),
            cap: None,
            floor: None,
            waiter: None,
            fair: false,
            meta: "".into(),
            durability: crate::backend::Durability::Primary,
        }
    }

    /// The release of the last holder may still be on its way to one node: what the others remember
    /// decides, in whatever order they answer.
    #[test]
    fn a_token_too_low_is_minted_anew_though_one_node_still_refuses() {
        let too_low = || Ok(Vote::TooLow(token(3)));
        let refused = || Ok(Vote::Reply(AcquireReply::Refused(Refusal::default())));
        let outcome = |answers: Vec<Result<Vote, BackendError>>| {
            let mut votes = Votes::of(3);
            for answer in answers {
                votes.add(answer);
            }
            votes.outcome(&ask(), Duration::ZERO)
        };
        assert_eq!(outcome(vec![too_low(), refused()]), Outcome::Open);
        for last in [
            vec![too_low(), refused(), too_low()],
            vec![refused(), too_low(), too_low()],
        ] {
            assert_eq!(outcome(last), Outcome::TooLow(token(3)));
        }
        let lost = outcome(vec![refused(), too_low(), refused()]);
        assert!(matches!(lost, Outcome::Lost(AcquireReply::Refused(_))));
    }

    #[test]
    fn a_renewal_needs_a_majority_of_all_nodes() {
        assert_eq!(first_wrong(renewal), None);
    }

    #[test]
    fn a_majority_of_the_nodes_that_were_won_is_caught() {
        let of_those_that_answered: Rule = |_, answers| {
            let answered: Vec<_> = answers.iter().flatten().copied().map(Some).collect();
            renewal(answered.len(), &answered)
        };
        let of_those_that_did_not_fail: Rule = |_, answers| {
            let fine =
                |answer: &&RenewReply| !matches!(answer, RenewReply::Failed(_) | RenewReply::Gone);
            let won = answers.iter().flatten().copied().filter(fine);
            let won: Vec<_> = won.map(Some).collect();
            renewal(won.len(), &won)
        };
        assert!(first_wrong(of_those_that_answered).is_some());
        assert!(first_wrong(of_those_that_did_not_fail).is_some());
    }

    #[test]
    fn a_renewal_lives_as_long_as_its_shortest_vote() {
        let of = |secs| RenewReply::Renewed {
            granted: Duration::from_secs(secs),
        };
        let (long, short) = (of(9), of(3));
        let reply = renewal(3, &[Some(&long), None, Some(&short)]);
        assert_eq!(reply, Some(short.clone()));
    }

    #[test]
    fn what_is_left_on_silent_nodes_is_no_lease_after_a_release() {
        let failed = ReleaseReply::Failed(BackendError::NotSent(String::new()));
        let (released, gone) = (ReleaseReply::Released, ReleaseReply::Gone);
        let taken = ReleaseReply::Taken { by: token(9) };
        let all = |answers: [&ReleaseReply; 3]| release(3, &answers.map(Some));
        assert_eq!(all([&released, &released, &gone]), Some(released.clone()));
        assert_eq!(all([&released, &gone, &failed]), Some(released.clone()));
        assert_eq!(all([&released, &gone, &gone]), Some(gone.clone()));
        assert_eq!(all([&gone, &taken, &taken]), Some(taken.clone()));
        assert_eq!(all([&gone, &failed, &failed]), Some(failed.clone()));
        assert_eq!(release(3, &[Some(&released), None, None]), None);
    }
}
