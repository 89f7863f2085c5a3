//! A majority of all nodes, and not of those that answered, against rules that get it wrong.

use super::*;

type Rule = fn(usize, &[Option<&RenewReply>]) -> Option<RenewReply>;

fn token(counter: u32) -> FencingToken {
    FencingToken::from_parts(1, counter).expect("legal")
}

/// Lists every way in which this many nodes can answer, silence included.
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

fn longer(round: &[Option<RenewReply>], answer: Option<&RenewReply>) -> Vec<Option<RenewReply>> {
    let mut round = round.to_vec();
    round.push(answer.cloned());
    round
}

/// Finds the first round that `rule` judges wrongly: a lease without a majority of all nodes, or an
/// end of one that a majority may still have.
fn first_wrong(rule: Rule) -> Option<Vec<Option<RenewReply>>> {
    let wrong = |round: &Vec<Option<RenewReply>>| {
        let answers: Vec<Option<&RenewReply>> = round.iter().map(Option::as_ref).collect();
        let count = |of: fn(&RenewReply) -> bool| {
            let said = answers.iter();
            said.filter(|answer| answer.is_some_and(of)).count()
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
        meta: String::new(),
        durability: crate::backend::Durability::Primary,
    }
}

/// Lets the answers of the others decide, in any order: the release of the last holder may still be
/// on its way to one node.
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

/// Shows that a node without a right in its access list ends no wait that another may let win.
#[test]
fn a_node_that_refuses_for_good_does_not_speak_for_one_that_is_away() {
    let noperm = BackendError::Rejected {
        code: "NOPERM".to_owned(),
        message: String::new(),
    };
    let away = BackendError::NotSent("starting".to_owned());
    for told in [[&noperm, &away], [&away, &noperm]] {
        let mut votes = Votes::of(2);
        for error in told {
            votes.add(Err(error.clone()));
        }
        let lost = votes.outcome(&ask(), Duration::ZERO);
        assert_eq!(lost, Outcome::Lost(AcquireReply::Failed(away.clone())));
    }
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
    let one = all([&gone, &taken, &gone]);
    assert_eq!(one, Some(gone.clone()), "it has not heard of a release");
    assert_eq!(all([&gone, &failed, &failed]), Some(failed.clone()));
    assert_eq!(release(3, &[Some(&released), None, None]), None);
}
