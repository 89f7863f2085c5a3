//! What holds at one instant: one owner, all or none, only by owner and token.

use std::time::Duration;

use soldonce_lease::FencingToken;
use soldonce_lease::backend::{Names, Release, ReleaseReply, Renew, RenewReply};

use crate::names::{GROUPED, LEGAL};

use super::{Bench, acquire, ask, granted, group, name, one, owner, refused, release, renew};

pub(crate) async fn b1_one_owner_at_a_time(bench: &dyn Bench) {
    let names = one("a");
    let first = granted(acquire(bench, &names, 1).await);
    assert!(!first.again);
    let refusal = refused(acquire(bench, &names, 2).await);
    assert_eq!(refusal.conflicts.len(), 1);
    assert_eq!(refusal.conflicts[0].name, name("a"));
    assert_eq!(refusal.conflicts[0].token.number(), first.token.number());
    assert!(refusal.conflicts[0].remaining <= bench.ttl());
    granted(acquire(bench, &one("b"), 2).await);
}

pub(crate) async fn b1_of_many_at_once_one_wins(bench: &dyn Bench) {
    let names = one("a");
    let asks: Vec<_> = (1..=20).map(|n| ask(bench, &names, n)).collect();
    let calls = asks.iter().map(|ask| bench.backend().acquire(ask));
    let mut won = 0;
    for reply in join_all(calls.collect()).await {
        won += u32::from(matches!(
            reply,
            soldonce_lease::backend::AcquireReply::Granted { .. }
        ));
    }
    assert_eq!(won, 1);
}

/// Polls all futures until all are ready.
pub(super) async fn join_all<T>(mut calls: Vec<soldonce_lease::backend::Fut<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (call, done) in calls.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = call.as_mut().poll(cx)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    done.into_iter().flatten().collect()
}

pub(crate) async fn b2_all_names_or_none(bench: &dyn Bench) {
    granted(acquire(bench, &group(&["b"]), 1).await);
    let refusal = refused(acquire(bench, &group(&["a", "b", "c"]), 2).await);
    let conflicts: Vec<_> = refusal.conflicts.iter().map(|held| &held.name).collect();
    assert_eq!(conflicts, [&name("b")]);
    let rest = group(&["a", "c"]);
    let both = granted(acquire(bench, &rest, 3).await);
    assert_eq!(
        release(bench, &rest, 3, Some(both.token)).await,
        ReleaseReply::Released
    );
}

pub(crate) async fn b3_asking_again_gives_the_same_grant(bench: &dyn Bench) {
    for names in [one("a"), group(&["a", "b"])] {
        let first = granted(acquire(bench, &names, 1).await);
        bench.advance(bench.ttl() / 2).await;
        let again = granted(acquire(bench, &names, 1).await);
        assert!(again.again);
        assert_eq!(again.token.number(), first.token.number());
        assert!(again.granted + bench.slack() >= bench.ttl(), "{again:?}");
        bench.advance(bench.ttl() * 3 / 4).await;
        refused(acquire(bench, &names, 2).await);
    }
}

/// A question that is late, or whose answer is lost, must not end what a later one was promised.
pub(crate) async fn b3_asking_for_less_shortens_nothing(bench: &dyn Bench) {
    let (names, ttl) = (group(&["a", "b"]), bench.ttl());
    let held = granted(acquire(bench, &names, 1).await);
    let mut less = ask(bench, &names, 1);
    less.ttl = ttl / 4;
    let again = granted(bench.backend().acquire(&less).await);
    assert_eq!(again.token.number(), held.token.number());
    let reply = renew(bench, &names, (1, held.token), ttl / 4).await;
    let RenewReply::Renewed { granted: left } = reply else {
        panic!("not renewed: {reply:?}");
    };
    for life in [again.granted, left] {
        assert!(life <= ttl && life + bench.slack() >= ttl, "{life:?}");
    }
    bench.advance(ttl / 2).await;
    refused(acquire(bench, &names, 2).await);
    bench.advance(ttl / 2 + bench.slack()).await;
    granted(acquire(bench, &names, 2).await);
}

pub(crate) async fn b4_renew_never_creates(bench: &dyn Bench) {
    let names = one("a");
    let token = FencingToken::from_parts(0, 1).unwrap();
    let reply = renew(bench, &names, (1, token), bench.ttl()).await;
    assert_eq!(reply, RenewReply::Gone);
    let held = granted(acquire(bench, &names, 1).await);
    bench.advance(bench.ttl() + bench.slack()).await;
    let reply = renew(bench, &names, (1, held.token), bench.ttl()).await;
    assert_eq!(reply, RenewReply::Gone, "an expired grant was renewed");
    let holder = bench.backend().inspect(None, &name("a")).await;
    assert_eq!(holder, Ok(None));
}

pub(crate) async fn b4_renew_needs_owner_and_token(bench: &dyn Bench) {
    let names = one("a");
    let old = granted(acquire(bench, &names, 1).await);
    let reply = release(bench, &names, 1, Some(old.token)).await;
    assert_eq!(reply, ReleaseReply::Released);
    let held = granted(acquire(bench, &names, 2).await);
    for stranger in [(1, old.token), (1, held.token), (2, old.token)] {
        match renew(bench, &names, stranger, bench.ttl()).await {
            RenewReply::Taken { by } => assert_eq!(by.number(), held.token.number()),
            other => panic!("{stranger:?} renewed: {other:?}"),
        }
    }
}

pub(crate) async fn b4_renew_stops_at_the_cap(bench: &dyn Bench) {
    let (names, ttl) = (one("a"), bench.ttl());
    let mut capped = ask(bench, &names, 1);
    capped.cap = Some(ttl * 3 / 2);
    let held = granted(bench.backend().acquire(&capped).await);
    bench.advance(ttl * 3 / 4).await;
    let reply = renew(bench, &names, (1, held.token), ttl).await;
    let RenewReply::Renewed { granted: left } = reply else {
        panic!("not renewed: {reply:?}");
    };
    assert!(left <= ttl * 3 / 4, "{left:?} passes the cap");
    bench.advance(ttl * 3 / 4 + bench.slack()).await;
    let reply = renew(bench, &names, (1, held.token), ttl).await;
    let ended = matches!(reply, RenewReply::Gone | RenewReply::Capped);
    assert!(ended, "renewed beyond the cap: {reply:?}");
    granted(acquire(bench, &names, 2).await);
}

pub(crate) async fn b4_renew_lengthens_all_names_or_none(bench: &dyn Bench) {
    let (part, whole, ttl) = (group(&["a"]), group(&["a", "b"]), bench.ttl());
    let held = granted(acquire(bench, &part, 1).await);
    bench.advance(ttl / 2).await;
    let reply = renew(bench, &whole, (1, held.token), ttl).await;
    assert_eq!(reply, RenewReply::Gone);
    bench.advance(ttl / 2 + bench.slack()).await;
    granted(acquire(bench, &part, 2).await);
}

pub(crate) async fn b4_renew_for_no_time_changes_nothing(bench: &dyn Bench) {
    let (names, ttl) = (one("a"), bench.ttl());
    let held = granted(acquire(bench, &names, 1).await);
    bench.advance(ttl / 2).await;
    let reply = renew(bench, &names, (1, held.token), Duration::ZERO).await;
    let RenewReply::Renewed { granted: left } = reply else {
        panic!("not answered: {reply:?}");
    };
    assert!(
        left <= ttl / 2 && left + bench.slack() >= ttl / 2,
        "{left:?}"
    );
    bench.advance(ttl / 2 + bench.slack()).await;
    granted(acquire(bench, &names, 2).await);
}

pub(crate) async fn b5_release_needs_owner_and_token(bench: &dyn Bench) {
    let names = one("a");
    let old = granted(acquire(bench, &names, 1).await);
    let reply = release(bench, &names, 1, Some(old.token)).await;
    assert_eq!(reply, ReleaseReply::Released);
    let reply = release(bench, &names, 1, Some(old.token)).await;
    assert_eq!(reply, ReleaseReply::Gone, "repeating is harmless");
    let held = granted(acquire(bench, &names, 2).await);
    for (stranger, token) in [(1, old.token), (1, held.token), (2, old.token)] {
        match release(bench, &names, stranger, Some(token)).await {
            ReleaseReply::Taken { by } => assert_eq!(by.number(), held.token.number()),
            other => panic!("owner {stranger} released: {other:?}"),
        }
        refused(acquire(bench, &names, 3).await);
    }
}

pub(crate) async fn b5_release_by_owner_alone(bench: &dyn Bench) {
    let names = group(&["a", "b"]);
    granted(acquire(bench, &names, 1).await);
    let reply = release(bench, &names, 2, None).await;
    assert!(matches!(reply, ReleaseReply::Taken { .. }), "{reply:?}");
    let reply = release(bench, &names, 1, None).await;
    assert_eq!(reply, ReleaseReply::Released);
    granted(acquire(bench, &names, 3).await);
}

pub(crate) async fn b9_every_conflict_is_listed(bench: &dyn Bench) {
    granted(acquire(bench, &group(&["a", "c"]), 1).await);
    granted(acquire(bench, &group(&["e"]), 2).await);
    let refusal = refused(acquire(bench, &group(&["e", "d", "c", "b", "a"]), 3).await);
    let mut conflicts: Vec<_> = refusal
        .conflicts
        .into_iter()
        .map(|held| held.name)
        .collect();
    conflicts.sort_unstable();
    assert_eq!(conflicts, [name("a"), name("c"), name("e")]);
    assert!(refusal.retry_after <= bench.ttl());
}

pub(crate) async fn a_name_alone_is_not_the_name_of_a_group(bench: &dyn Bench) {
    granted(acquire(bench, &one("a"), 1).await);
    granted(acquire(bench, &group(&["a"]), 2).await);
    let hall = name("hall");
    let alone = bench.backend().inspect(None, &name("a")).await.unwrap();
    let grouped = bench.backend().inspect(Some(&hall), &name("a")).await;
    assert_eq!(alone.unwrap().owner, owner(1));
    assert_eq!(grouped.unwrap().unwrap().owner, owner(2));
}

pub(crate) async fn inspect_tells_who_holds(bench: &dyn Bench) {
    let names = one("a");
    let nobody = bench.backend().inspect(None, &name("a")).await;
    assert_eq!(nobody, Ok(None));
    let mut asked = ask(bench, &names, 1);
    asked.meta = "host=db-1;why=report".into();
    let held = granted(bench.backend().acquire(&asked).await);
    bench.advance(bench.ttl() / 2).await;
    let holder = bench.backend().inspect(None, &name("a")).await;
    let holder = holder.unwrap().expect("held");
    assert_eq!(holder.owner, owner(1));
    assert_eq!(holder.token.number(), held.token.number());
    assert_eq!(holder.meta, "host=db-1;why=report");
    assert!(holder.held + bench.slack() >= bench.ttl() / 2);
    assert!(holder.remaining <= bench.ttl() / 2);
    let cap = holder.cap.expect("capped");
    let most = bench.ttl() * 100 + bench.slack();
    assert!(cap + bench.ttl() / 2 <= most, "{cap:?}");
    let mut endless = ask(bench, &one("b"), 1);
    endless.cap = None;
    granted(bench.backend().acquire(&endless).await);
    let holder = bench.backend().inspect(None, &name("b")).await;
    assert_eq!(holder.unwrap().expect("held").cap, None);
}

pub(crate) async fn a_batch_is_answered_in_order(bench: &dyn Bench) {
    let held = granted(acquire(bench, &one("b"), 2).await);
    let renewal = |text: &str, n| Renew {
        names: one(text),
        owner: owner(n),
        token: held.token,
        ttl: bench.ttl(),
    };
    let batch = [renewal("a", 1), renewal("b", 2), renewal("b", 3)];
    let replies = bench.backend().renew(&batch).await;
    assert_eq!(replies[0], RenewReply::Gone);
    assert!(
        matches!(replies[1], RenewReply::Renewed { .. }),
        "{replies:?}"
    );
    assert!(
        matches!(replies[2], RenewReply::Taken { .. }),
        "{replies:?}"
    );
    let ending = |text: &str, n| Release {
        names: one(text),
        owner: owner(n),
        token: Some(held.token),
        waiter: None,
    };
    let batch = [ending("b", 3), ending("b", 2), ending("a", 1)];
    let replies = bench.backend().release(&batch).await;
    assert!(
        matches!(replies[0], ReleaseReply::Taken { .. }),
        "{replies:?}"
    );
    assert_eq!(replies[1..], [ReleaseReply::Released, ReleaseReply::Gone]);
}

pub(crate) async fn of_several_others_the_highest_is_told(bench: &dyn Bench) {
    // The highest stands neither first nor last.
    let mut highest = None;
    for (text, n) in [("a", 1), ("c", 2), ("b", 3)] {
        highest = Some(
            granted(acquire(bench, &group(&[text]), n).await)
                .token
                .number(),
        );
    }
    let all = group(&["a", "b", "c", "d"]);
    let token = FencingToken::from_parts(0, 1).unwrap();
    match renew(bench, &all, (9, token), bench.ttl()).await {
        RenewReply::Taken { by } => assert_eq!(Some(by.number()), highest),
        other => panic!("renewed what others have: {other:?}"),
    }
    match release(bench, &all, 9, None).await {
        ReleaseReply::Taken { by } => assert_eq!(Some(by.number()), highest),
        other => panic!("released what others have: {other:?}"),
    }
}

pub(crate) async fn odd_names_come_back_and_are_kept_apart(bench: &dyn Bench) {
    let alone = LEGAL.iter().map(|text| one(text));
    let grouped = GROUPED
        .iter()
        .map(|(hall, text)| Names::of_group(name(hall), vec![name(text)]));
    let held: Vec<(u64, Names)> = (1..).zip(alone.chain(grouped)).collect();
    for (n, names) in &held {
        let mut asked = ask(bench, names, *n);
        asked.ttl = asked.ttl.max(Duration::from_secs(20));
        granted(bench.backend().acquire(&asked).await);
    }
    for (n, names) in &held {
        let only = &names.as_slice()[0];
        let holder = bench.backend().inspect(names.group(), only).await.unwrap();
        assert_eq!(
            holder.map(|holder| holder.owner),
            Some(owner(*n)),
            "{names:?}"
        );
        let refusal = refused(acquire(bench, names, 1_000).await);
        let conflicts: Vec<_> = refusal.conflicts.iter().map(|held| &held.name).collect();
        assert_eq!(conflicts, [only]);
        let reply = release(bench, names, *n, None).await;
        assert_eq!(reply, ReleaseReply::Released, "{names:?}");
    }
}
