//! The checker is shown right histories and every kind of wrong one.

use std::sync::Arc;
use std::time::Duration;

use super::{Held, History, Recorder, Refusals, Violation};
use soldonce_lease::{Entropy, FencingToken, ManualClock, SeededEntropy};

/// A recorder whose notes are one nanosecond apart.
fn recorder() -> Recorder {
    Recorder::new(Arc::new(ManualClock::at(0)))
}

fn token(counter: u32) -> FencingToken {
    FencingToken::from_parts(1, counter).unwrap()
}

impl Recorder {
    fn grant(&self, client: u32, counter: u32) -> Held {
        self.acquire(client, "a").granted(Some(token(counter)))
    }
}

fn release(held: Held) {
    held.releasing().released();
}

fn violations(recorder: &Recorder) -> Vec<Violation> {
    recorder.history().check(Refusals::NeedHolder)
}

#[test]
fn one_holder_after_the_other_is_right() {
    let recorder = recorder();
    let first = recorder.grant(1, 1);
    recorder.acquire(2, "a").refused();
    release(first);
    recorder.grant(2, 2).lost();
    recorder.acquire(9, "b").granted(Some(token(1))).lost();
    release(recorder.grant(3, 3));
    assert_eq!(violations(&recorder), []);
}

#[test]
fn catches_two_holders() {
    let recorder = recorder();
    let first = recorder.grant(1, 1);
    let second = recorder.grant(2, 2);
    release(first);
    release(second);
    assert!(
        matches!(&violations(&recorder)[..], [Violation::TwoHolders { first, second, .. }]
            if (first.client, second.client) == (1, 2))
    );
}

#[test]
fn catches_a_holder_before_the_deadline_of_another() {
    let recorder = recorder();
    let paused = recorder.grant(1, 1);
    release(recorder.grant(2, 2));
    paused.lost();
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::TwoHolders { .. }]
    ));
}

#[test]
fn a_loss_of_the_backend_explains_two_holders_once() {
    let recorder = recorder();
    let first = recorder.grant(1, 1);
    recorder.losing(|| ());
    let second = recorder.grant(2, 2);
    assert_eq!(violations(&recorder), []);
    let third = recorder.grant(3, 3);
    let clash = violations(&recorder);
    assert!(
        matches!(&clash[..], [Violation::TwoHolders { first, second, .. }]
            if (first.client, second.client) == (2, 3)),
        "{clash:?}"
    );
    drop((first, second, third));
}

#[test]
fn a_grant_may_be_heard_of_after_it_was_lost() {
    let recorder = recorder();
    let late = recorder.acquire(1, "a");
    recorder.losing(|| {});
    let current = recorder.grant(2, 2);
    late.granted(Some(token(1))).lost();
    release(current);
    assert_eq!(violations(&recorder), []);
}

#[test]
fn catches_a_repeated_token() {
    let recorder = recorder();
    release(recorder.grant(1, 7));
    release(recorder.grant(2, 7));
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::TokenRepeated { .. }]
    ));
}

#[test]
fn catches_a_falling_token_also_after_a_loss() {
    let recorder = recorder();
    release(recorder.grant(1, 7));
    recorder.losing(|| ());
    release(recorder.grant(2, 6));
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::TokenFell { .. }]
    ));
}

#[test]
fn catches_a_write_after_a_higher_token() {
    let recorder = recorder();
    recorder.write(1, "row", token(2)).admitted();
    recorder.write(2, "row", token(1)).stale();
    assert_eq!(violations(&recorder), []);
    recorder.write(2, "row", token(1)).admitted();
    assert!(matches!(
        &violations(&recorder)[..],
        [Violation::StaleWrite { write, .. }] if write.client == 2
    ));
}

#[test]
fn catches_a_write_called_stale_without_a_higher_one() {
    let recorder = recorder();
    recorder.write(1, "row", token(1)).admitted();
    recorder.write(2, "row", token(2)).stale();
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::NoOrder { .. }]
    ));
    recorder.write(3, "row", token(3)).unknown();
    assert!(
        matches!(violations(&recorder)[..], [Violation::NoOrder { .. }]),
        "the unknown write was called too late to explain it"
    );
}

#[test]
fn an_unknown_write_explains_a_later_stale_one() {
    let recorder = recorder();
    recorder.write(3, "row", token(3)).unknown();
    recorder.write(2, "row", token(2)).stale();
    recorder.write(2, "row", token(2)).admitted();
    assert_eq!(violations(&recorder), []);
}

#[test]
fn catches_a_refusal_without_a_holder() {
    let recorder = recorder();
    release(recorder.grant(1, 1));
    recorder.acquire(2, "a").refused();
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::NoOrder { .. }]
    ));
    assert_eq!(recorder.history().check(Refusals::Free), []);
}

#[test]
fn an_uncertain_acquire_explains_a_later_refusal() {
    let recorder = recorder();
    recorder.acquire(1, "a").unknown();
    recorder.acquire(2, "a").refused();
    release(recorder.grant(2, 5));
    assert_eq!(violations(&recorder), []);
}

/// No two grants contradict each other here: only the search over all of them finds it.
#[test]
fn catches_what_no_two_operations_show() {
    let recorder = recorder();
    let slow = recorder.acquire(2, "a");
    let quick = recorder.grant(1, 2);
    release(quick);
    let slow = slow.granted(Some(token(1)));
    assert!(matches!(
        violations(&recorder)[..],
        [Violation::NoOrder { .. }]
    ));
    drop(slow);
}

#[test]
fn concurrent_grants_may_stand_in_either_order() {
    let recorder = recorder();
    let slow = recorder.acquire(2, "a");
    let quick = recorder.grant(1, 1);
    release(quick);
    let slow = slow.granted(Some(token(2)));
    recorder.acquire(3, "a").refused();
    release(slow);
    assert_eq!(violations(&recorder), []);
}

#[test]
fn histories_of_processes_are_put_together_as_json() {
    let recorder = recorder();
    release(recorder.grant(1, 1));
    let text = serde_json::to_string(&recorder.history()).unwrap();
    let mut all: History = serde_json::from_str(&text).unwrap();
    all.merge(serde_json::from_str(&text).unwrap());
    let found = all.check(Refusals::NeedHolder);
    let repeated = |violation: &Violation| matches!(violation, Violation::TokenRepeated { .. });
    assert!(found.iter().any(repeated), "{found:?}");
}

/// A history of `clients` who contend for one name, made by playing a real lock, so it is right.
fn contention(seed: u64, clients: u32, steps: u32) -> Recorder {
    let recorder = recorder();
    let entropy = SeededEntropy::new(seed);
    let draw = |below: u32| {
        let mut bytes = [0; 4];
        entropy.fill(&mut bytes);
        u32::from_le_bytes(bytes) % below
    };
    let (mut holder, mut next) = (None, 1);
    let mut calls: Vec<Option<super::AcquireCall>> = (0..clients).map(|_| None).collect();
    for _ in 0..steps {
        let client = draw(clients);
        let call = &mut calls[client as usize];
        match call.take() {
            None if holder.as_ref().is_some_and(|(who, _)| *who == client) => {
                let (_, held): (u32, Held) = holder.take().unwrap();
                release(held);
            }
            None => *call = Some(recorder.acquire(client, "a")),
            Some(call) if holder.is_none() => {
                holder = Some((client, call.granted(Some(token(next)))));
                next += 1;
            }
            Some(call) => call.refused(),
        }
    }
    recorder
}

#[test]
fn long_histories_of_many_clients_are_judged() {
    for seed in 0..20 {
        let recorder = contention(seed, 30, 4_000);
        assert_eq!(violations(&recorder), [], "seed {seed}");
    }
}

#[test]
fn catches_one_wrong_token_in_a_long_history() {
    for seed in 0..20 {
        let mut history = contention(seed, 20, 2_000).history();
        let middle = history.grants.len() / 2;
        history.grants[middle].token = Some(token(1_000_000));
        assert_ne!(history.check(Refusals::NeedHolder), [], "seed {seed}");
    }
}

#[test]
fn what_overlaps_too_much_is_not_called_right() {
    let recorder = recorder();
    let slow = recorder.acquire(1, "a");
    for counter in 1..=200 {
        release(recorder.grant(2, counter));
    }
    slow.granted(Some(token(201))).lost();
    let found = violations(&recorder);
    assert!(
        matches!(found[..], [Violation::TooWide { .. }]),
        "{found:?}"
    );
}

#[test]
fn a_deadline_of_a_paused_client_counts_from_its_own_time() {
    let recorder = recorder();
    let clock = ManualClock::at(0);
    let until = soldonce_lease::Clock::boot(&clock).plus(Duration::from_nanos(3));
    recorder.grant(1, 1).lost_at(until);
    release(recorder.grant(2, 2));
    assert_eq!(violations(&recorder), []);
}

/// Stopped right after its grant, it went on when another held the name already.
#[test]
fn a_client_that_stood_still_claims_only_what_it_saw() {
    let (recorder, clock) = (recorder(), ManualClock::at(0));
    let at = |nanos| soldonce_lease::Clock::boot(&clock).plus(Duration::from_nanos(nanos));
    let slow = recorder.acquire(1, "a");
    let second = recorder.grant(2, 2);
    let first = slow.granted_at(Some(token(1)), at(2));
    first.releasing().lapsed_at(at(2));
    release(second);
    assert_eq!(violations(&recorder), []);
}
