//! What holds as time passes: lives end when they were said to, and tokens rise.

use std::time::Duration;

use soldonce_lease::FencingToken;
use soldonce_lease::backend::ReleaseReply;

use super::{Bench, acquire, ask, granted, name, one, refused, release};

pub(crate) async fn b6_tokens_rise(bench: &dyn Bench) {
    let names = one("a");
    let mut last = granted(acquire(bench, &names, 1).await).token;
    for n in 2..=20 {
        if n % 10 == 0 {
            bench.advance(bench.ttl() + bench.slack()).await;
        } else {
            let reply = release(bench, &names, n - 1, None).await;
            assert_eq!(reply, ReleaseReply::Released);
        }
        let next = granted(acquire(bench, &names, n).await).token;
        assert!(next.number() > last.number(), "{next} after {last}");
        last = next;
    }
}

/// Who was refused got no token in advance: its grant is above those that others had meanwhile.
pub(crate) async fn b6_a_refusal_draws_no_token(bench: &dyn Bench) {
    let names = one("a");
    granted(acquire(bench, &names, 1).await);
    refused(acquire(bench, &names, 2).await);
    let reply = release(bench, &names, 1, None).await;
    assert_eq!(reply, ReleaseReply::Released);
    let between = granted(acquire(bench, &names, 3).await).token;
    let reply = release(bench, &names, 3, None).await;
    assert_eq!(reply, ReleaseReply::Released);
    let last = granted(acquire(bench, &names, 2).await).token;
    assert!(last.number() > between.number(), "{last} after {between}");
}

pub(crate) async fn b6_tokens_rise_above_the_floor(bench: &dyn Bench) {
    let first = granted(acquire(bench, &one("a"), 1).await).token;
    let floor = FencingToken::from_parts(first.epoch(), first.counter() + 1_000);
    let mut asked = ask(bench, &one("b"), 2);
    asked.floor = floor;
    let above = granted(bench.backend().acquire(&asked).await).token;
    assert!(above.number() > floor.unwrap().number(), "{above}");
    let next = granted(acquire(bench, &one("c"), 3).await).token;
    assert!(next.number() > first.number());
}

/// With a fence source or without one.
pub(crate) async fn b6_a_floor_of_a_later_epoch_lifts_the_token(bench: &dyn Bench) {
    let first = granted(acquire(bench, &one("a"), 1).await).token;
    let floor = FencingToken::from_parts(first.epoch() + 3, 5);
    let mut asked = ask(bench, &one("b"), 2);
    asked.floor = floor;
    let above = granted(bench.backend().acquire(&asked).await).token;
    assert!(above.number() > floor.unwrap().number(), "{above}");
}

pub(crate) async fn b8_a_grant_lives_as_long_as_answered(bench: &dyn Bench) {
    let names = one("a");
    let held = granted(acquire(bench, &names, 1).await);
    assert!(held.granted <= bench.ttl() && held.granted + bench.slack() >= bench.ttl());
    // In virtual time to the nanosecond: the instant of expiry itself is too late.
    let edge = bench.slack().max(Duration::from_nanos(1));
    bench.advance(held.granted.saturating_sub(edge)).await;
    refused(acquire(bench, &names, 2).await);
    bench.advance(edge + bench.slack()).await;
    granted(acquire(bench, &names, 3).await);
}

pub(crate) async fn b10_what_is_kept_ends(bench: &dyn Bench) {
    for text in ["a", "b", "c"] {
        granted(acquire(bench, &one(text), 1).await);
    }
    bench.advance(bench.ttl() + bench.slack()).await;
    for text in ["a", "b", "c"] {
        let holder = bench.backend().inspect(None, &name(text)).await;
        assert_eq!(holder, Ok(None), "{text}");
    }
}
