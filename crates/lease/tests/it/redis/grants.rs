//! What each script answers in each state a name can be in.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::{Acquire, AcquireReply, Backend, ReleaseReply, RenewReply};
use soldonce_lease::{BackendError, FencingToken, ManualClock};
use soldonce_testkit::redis::Redis;

use super::site::{
    CALL_TIMEOUT, Site, TTL, ask, ask_fair, connect, granted, group, name, one, owner, refused,
    release, renew, settings, timed_out, while_waiters_live,
};
use crate::conformance::pass_on_redis;

#[tokio::test]
pub(super) async fn a_free_name_is_granted_and_asking_again_gives_the_same_token() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    assert!(token.epoch() > 0);
    let AcquireReply::Granted {
        token: again,
        granted,
        picked: None,
        again: was_ours,
        replicas,
    } = site.backend.acquire(&mine).await
    else {
        panic!("the owner may ask again");
    };
    assert_eq!(
        (again, granted, was_ours, replicas),
        (token, TTL, true, None)
    );
    assert_eq!(refused(&site.backend, &ask(one("a"))).await, ["a"]);
}

#[tokio::test]
async fn a_lost_reply_is_healed_by_asking_again() {
    let mut redis = Redis::start().unwrap();
    let (clock, mut settings) = (ManualClock::at(0), settings());
    settings.clock = Arc::new(clock.clone());
    let backend = connect(&redis, settings).await;
    let mine = ask(one("a"));
    granted(&backend, &ask(one("other"))).await;
    redis.pause().unwrap();
    let lost = timed_out((&clock, CALL_TIMEOUT), backend.acquire(&mine)).await;
    redis.resume().unwrap();
    let is_unknown = matches!(lost, AcquireReply::Failed(BackendError::Unknown(_)));
    assert!(is_unknown, "{lost:?}");
    let token = granted(&backend, &mine).await;
    let held = backend.inspect(None, &name("a")).await.unwrap().unwrap();
    assert_eq!((held.owner, held.token), (mine.owner, token));
}

#[tokio::test]
pub(super) async fn tokens_of_a_name_rise_and_the_floor_lifts_them() {
    let site = Site::start().await;
    let mut last = None;
    for _ in 0..5 {
        let next = ask(one("a"));
        let token = granted(&site.backend, &next).await;
        assert!(Some(token) > last, "{token:?} after {last:?}");
        last = Some(token);
        assert_eq!(
            release(&site.backend, &next, last).await,
            ReleaseReply::Released
        );
    }
    let floor = FencingToken::new(last.unwrap().number() + 1_000);
    let lifted = Acquire {
        floor,
        ..ask(one("a"))
    };
    let token = granted(&site.backend, &lifted).await;
    assert!(Some(token) > floor);
    assert_eq!(token.epoch(), last.unwrap().epoch(), "it costs no epoch");
    release(&site.backend, &lifted, Some(token)).await;
    // The record of the shard is there, and its epoch is too low.
    let above = Acquire {
        floor: FencingToken::from_parts(77, 5),
        ..ask(one("a"))
    };
    let token = granted(&site.backend, &above).await;
    assert!(token.epoch() > 77, "{token:?}");
}

#[tokio::test]
pub(super) async fn a_group_is_granted_whole_or_not_at_all() {
    let site = Site::start().await;
    let held = ask(group(&["A-1", "A-3"]));
    granted(&site.backend, &held).await;
    let more = ask(group(&["A-1", "A-2", "A-3"]));
    assert_eq!(refused(&site.backend, &more).await, ["A-1", "A-3"]);
    granted(&site.backend, &ask(group(&["A-2"]))).await;
    granted(&site.backend, &ask(one("A-1"))).await;
}

#[tokio::test]
pub(super) async fn what_is_ours_is_freed_when_the_rest_is_anothers() {
    let site = Site::start().await;
    let mine = ask(group(&["A-1"]));
    granted(&site.backend, &mine).await;
    granted(&site.backend, &ask(group(&["A-2"]))).await;
    let both = Acquire {
        names: group(&["A-1", "A-2"]),
        ..mine
    };
    assert_eq!(refused(&site.backend, &both).await, ["A-2"]);
    granted(&site.backend, &ask(group(&["A-1"]))).await;
}

#[tokio::test]
pub(super) async fn renew_needs_owner_and_token_and_creates_nothing() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    let longer = TTL * 10;
    let whole = RenewReply::Renewed { granted: longer };
    assert_eq!(renew(&site.backend, &mine, token, longer).await, whole);
    let RenewReply::Renewed { granted: left } =
        renew(&site.backend, &mine, token, Duration::ZERO).await
    else {
        panic!("verifying tells what is left");
    };
    assert!(left <= longer && left + TTL > longer, "{left:?}");
    let foreign = RenewReply::Taken { by: token };
    let stranger = Acquire {
        owner: owner(),
        ..mine.clone()
    };
    assert_eq!(renew(&site.backend, &stranger, token, TTL).await, foreign);
    let earlier = FencingToken::new(token.number() + 1).unwrap();
    assert_eq!(renew(&site.backend, &mine, earlier, TTL).await, foreign);
    site.redis.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(
        renew(&site.backend, &mine, token, TTL).await,
        RenewReply::Gone
    );
    assert_eq!(site.redis.cli(&["DBSIZE"]).unwrap(), "0");
}

#[tokio::test]
pub(super) async fn nothing_lives_longer_than_its_cap() {
    let site = Site::start().await;
    let short = TTL / 2;
    let mine = Acquire {
        cap: Some(short),
        ttl: short,
        ..ask(one("a"))
    };
    let token = granted(&site.backend, &mine).await;
    let RenewReply::Renewed { granted } = renew(&site.backend, &mine, token, TTL).await else {
        panic!("the cap is not used up yet");
    };
    assert!(granted <= short, "{granted:?}");
    let again = Acquire {
        ttl: TTL,
        ..mine.clone()
    };
    match site.backend.acquire(&again).await {
        AcquireReply::Granted { granted, .. } => assert!(granted <= short, "{granted:?}"),
        other => panic!("still ours, but {other:?}"),
    }
    let capped = Acquire {
        cap: Some(short),
        ..ask(one("b"))
    };
    match site.backend.acquire(&capped).await {
        AcquireReply::Granted { granted, .. } => assert!(granted <= short, "{granted:?}"),
        other => panic!("granted, but {other:?}"),
    }
    let seats = Acquire {
        cap: Some(short),
        ..ask(group(&["A-1", "A-2"]))
    };
    super::site::granted(&site.backend, &seats).await;
    for key in ["sl:*:l:b", "sl:*:l:*/A-1"] {
        let key = site.redis.cli(&["KEYS", key]).unwrap();
        let left: u64 = site.redis.cli(&["PTTL", &key]).unwrap().parse().unwrap();
        let left = Duration::from_millis(left);
        assert!(left <= short, "{key} lives for {left:?}");
    }
    pass_on_redis(std::slice::from_ref(&site.redis), short);
    let ended = renew(&site.backend, &mine, token, TTL).await;
    let has_ended = matches!(ended, RenewReply::Gone | RenewReply::Capped);
    assert!(has_ended, "{ended:?}");
}

#[tokio::test]
pub(super) async fn release_frees_only_what_is_the_owners() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    let stranger = Acquire {
        owner: owner(),
        ..mine.clone()
    };
    let foreign = ReleaseReply::Taken { by: token };
    assert_eq!(
        release(&site.backend, &stranger, Some(token)).await,
        foreign
    );
    let earlier = FencingToken::new(token.number() + 1);
    assert_eq!(release(&site.backend, &mine, earlier).await, foreign);
    assert_eq!(refused(&site.backend, &ask(one("a"))).await, ["a"]);
    assert_eq!(
        release(&site.backend, &mine, None).await,
        ReleaseReply::Released
    );
    assert_eq!(
        release(&site.backend, &mine, Some(token)).await,
        ReleaseReply::Gone
    );
}

#[tokio::test]
async fn a_holder_can_be_looked_at() {
    let site = Site::start().await;
    let cap = Some(TTL * 6);
    let mine = Acquire {
        meta: "who=me|x".into(),
        cap,
        ..ask(group(&["A-1"]))
    };
    let token = granted(&site.backend, &mine).await;
    let of = |text| {
        site.backend
            .inspect(Some(mine.names.group().unwrap()), text)
    };
    let (first, second) = (name("A-1"), name("A-2"));
    let held = of(&first).await.unwrap().unwrap();
    assert_eq!(
        (held.owner, held.token, held.meta.as_str()),
        (mine.owner, token, "who=me|x")
    );
    assert!(
        held.remaining <= TTL && held.remaining > TTL / 2,
        "{held:?}"
    );
    assert!(
        held.cap <= cap && held.cap > cap.map(|cap| cap / 2),
        "{held:?}"
    );
    assert_eq!(of(&second).await, Ok(None));
    assert_eq!(site.backend.inspect(None, &name("A-1")).await, Ok(None));
}

#[tokio::test]
async fn a_batch_of_renewals_keeps_its_places() {
    let site = Site::start().await;
    let mut batch = Vec::new();
    for i in 0..100 {
        let mine = ask(one(&format!("report:{i}")));
        let token = granted(&site.backend, &mine).await;
        batch.push((mine, token));
    }
    let gone: Vec<usize> = vec![3, 50, 99];
    for at in &gone {
        let (mine, token) = &batch[*at];
        release(&site.backend, mine, Some(*token)).await;
    }
    let renewals = batch
        .iter()
        .map(|(mine, token)| soldonce_lease::backend::Renew {
            names: mine.names.clone(),
            owner: mine.owner,
            token: *token,
            ttl: TTL,
        });
    let replies = site.backend.renew(&renewals.collect::<Vec<_>>()).await;
    let whole = RenewReply::Renewed { granted: TTL };
    for (at, reply) in replies.iter().enumerate() {
        let expected = if gone.contains(&at) {
            &RenewReply::Gone
        } else {
            &whole
        };
        assert_eq!(reply, expected, "renewal {at}");
    }
    assert_eq!(replies.len(), 100);
}

#[tokio::test]
pub(super) async fn every_key_but_fence_ends_by_itself() {
    const LIVES: &str = "local all = redis.call('KEYS', '*') \
        for at, key in ipairs(all) do all[at] = redis.call('PTTL', key) .. ' ' .. key end return all";
    let keys = while_waiters_live(async |site: Site| {
        for text in ["a", "b", "c"] {
            granted(&site.backend, &ask(one(text))).await;
            refused(&site.backend, &ask_fair(one(text), 1)).await;
        }
        granted(&site.backend, &ask(group(&["A-1", "A-2"]))).await;
        site.redis.cli(&["EVAL", LIVES, "0"]).unwrap()
    });
    let keys = keys.await;
    // Three names, their queues and the mark of these, and a group of two.
    let (mut fences, mut others) = (0, 0);
    for line in keys.lines() {
        let ends = !line.starts_with('-');
        assert_eq!(ends, !line.ends_with(":f"), "{line}");
        if ends { others += 1 } else { fences += 1 }
    }
    assert!(fences == 1 && others == 9, "{keys}");
}

#[tokio::test]
async fn lease_keys_never_meet_data() {
    let site = Site::start().await;
    for text in ["report:2026", "a", "f", "w", "l:a"] {
        site.redis.cli(&["SET", text, "data"]).unwrap();
        let mine = ask(one(text));
        granted(&site.backend, &mine).await;
        release(&site.backend, &mine, None).await;
        assert_eq!(site.redis.cli(&["GET", text]).unwrap(), "data");
    }
    granted(&site.backend, &ask(one("kept"))).await;
    let keys = site.redis.cli(&["KEYS", "*"]).unwrap();
    let ours = keys.lines().filter(|key| key.starts_with("sl:{app."));
    assert_eq!(ours.count(), keys.lines().count() - 5, "{keys}");
}

#[tokio::test]
pub(super) async fn a_key_of_another_type_is_refused_and_left_alone() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    granted(&site.backend, &mine).await;
    let key = site.redis.cli(&["KEYS", "sl:*:l:a"]).unwrap();
    let long = "x".repeat(60);
    for command in [
        &["LPUSH", &key, "x"][..],
        &["SET", &key, "x"],
        &["SET", &key, &long],
    ] {
        site.redis.cli(&["DEL", &key]).unwrap();
        site.redis.cli(command).unwrap();
        let AcquireReply::Failed(error) = site.backend.acquire(&ask(one("a"))).await else {
            panic!("another's data is not a lease");
        };
        assert_eq!(super::site::code(&error), "WRONGTYPE");
        assert_eq!(
            release(&site.backend, &mine, None).await,
            ReleaseReply::Gone
        );
        assert_eq!(site.redis.cli(&["EXISTS", &key]).unwrap(), "1");
    }
}
