//! One of several names, whichever is free: semaphores, readers and writers are made of it.

use std::collections::BTreeSet;

use soldonce_lease::Name;
use soldonce_lease::backend::{AcquireReply, Names, ReleaseReply};

use super::laws::join_all;
use super::{Bench, acquire, ask, granted, group, name, owner, refused, release};

const PERMITS: [&str; 3] = ["00", "01", "02"];

/// One of the permits.
fn permit() -> Names {
    Names::any_of(name("hall"), PERMITS.map(name).to_vec())
}

fn this_permit(text: &str) -> Names {
    group(&[text])
}

/// The permit of a grant, and the grant.
#[track_caller]
fn picked(reply: AcquireReply) -> (Name, super::Got) {
    let AcquireReply::Granted { picked, .. } = &reply else {
        panic!("not granted: {reply:?}");
    };
    let name = picked.clone().expect("it says which one");
    (name, granted(reply))
}

pub(crate) async fn of_many_at_once_as_many_win_as_there_are_permits(bench: &dyn Bench) {
    let asks: Vec<_> = (1..=20).map(|n| ask(bench, &permit(), n)).collect();
    let calls = asks.iter().map(|ask| bench.backend().acquire(ask));
    let mut held = BTreeSet::new();
    for reply in join_all(calls.collect()).await {
        if matches!(reply, AcquireReply::Granted { .. }) {
            assert!(held.insert(picked(reply).0), "one permit, two holders");
        }
    }
    assert!(held.len() <= PERMITS.len() && !held.is_empty(), "{held:?}");
    // Those who got into each other's way may have been refused too early. What is free is to be had.
    for n in 21.. {
        if held.len() == PERMITS.len() {
            break;
        }
        assert!(held.insert(picked(acquire(bench, &permit(), n).await).0));
    }
    let refusal = refused(acquire(bench, &permit(), 99).await);
    let names: Vec<_> = refusal.conflicts.iter().map(|held| &held.name).collect();
    assert_eq!(
        names,
        held.iter().collect::<Vec<_>>(),
        "every holder is told"
    );
}

pub(crate) async fn a_permit_given_back_is_the_next_ones_with_a_higher_token(bench: &dyn Bench) {
    let mut tokens = Vec::new();
    for n in 1..=3 {
        tokens.push(picked(acquire(bench, &permit(), n).await).1.token);
    }
    assert!(tokens.is_sorted(), "{tokens:?}");
    refused(acquire(bench, &permit(), 4).await);
    let middle = this_permit("01");
    let (hall, second) = (name("hall"), name("01"));
    let holder = bench.backend().inspect(Some(&hall), &second).await;
    let holder = holder.unwrap().expect("held");
    let n = (1..=3).find(|&n| owner(n) == holder.owner).unwrap();
    let freed = release(bench, &middle, n, Some(holder.token)).await;
    assert_eq!(freed, ReleaseReply::Released);
    let (which, next) = picked(acquire(bench, &permit(), 4).await);
    assert_eq!(which, name("01"));
    assert!(tokens.iter().all(|token| *token < next.token), "{tokens:?}");
    refused(acquire(bench, &permit(), 5).await);
}

pub(crate) async fn asking_again_gives_the_same_permit(bench: &dyn Bench) {
    let (first, _) = picked(acquire(bench, &permit(), 1).await);
    let (second, before) = picked(acquire(bench, &permit(), 2).await);
    assert_ne!(first, second);
    let freed = release(bench, &this_permit(first.as_str()), 1, None).await;
    assert_eq!(freed, ReleaseReply::Released);
    let (same, again) = picked(acquire(bench, &permit(), 2).await);
    assert_eq!(
        (same, again.again),
        (second, true),
        "though another is free"
    );
    assert_eq!(again.token.number(), before.token.number());
    // Who asked without an answer gives back what it was.
    let reply = release(bench, &permit(), 2, None).await;
    assert_eq!(reply, ReleaseReply::Gone, "two of the names were nobody's");
    for n in 3..=5 {
        picked(acquire(bench, &permit(), n).await);
    }
}

pub(crate) async fn permits_of_the_dead_come_free(bench: &dyn Bench) {
    for n in 1..=3 {
        picked(acquire(bench, &permit(), n).await);
    }
    refused(acquire(bench, &permit(), 4).await);
    bench.advance(bench.ttl() + bench.slack()).await;
    for n in 5..=7 {
        picked(acquire(bench, &permit(), n).await);
    }
    refused(acquire(bench, &permit(), 8).await);
}

pub(crate) async fn readers_and_a_writer_exclude_each_other(bench: &dyn Bench) {
    let writer = group(&PERMITS);
    let (read, first) = picked(acquire(bench, &permit(), 1).await);
    let refusal = refused(acquire(bench, &writer, 2).await);
    assert_eq!(refusal.conflicts.len(), 1);
    let (_, second) = picked(acquire(bench, &permit(), 3).await);
    for (n, token) in [(1, first.token), (3, second.token)] {
        for text in PERMITS {
            release(bench, &this_permit(text), n, Some(token)).await;
        }
    }
    let written = granted(acquire(bench, &writer, 2).await);
    assert!(written.token > second.token);
    let refusal = refused(acquire(bench, &permit(), 4).await);
    assert_eq!(refusal.conflicts.len(), PERMITS.len());
    let reply = release(bench, &writer, 2, Some(written.token)).await;
    assert_eq!(reply, ReleaseReply::Released);
    let (again, later) = picked(acquire(bench, &permit(), 5).await);
    assert!(again == read && later.token > written.token);
}
