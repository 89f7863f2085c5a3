//! Calls that wait at the same moment go in one script: each keeps its own checks, its own answer
//! and its own failure, and the commands of a busy process stay few.

use std::collections::BTreeSet;
use std::sync::Arc;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Acquire, AcquireReply, Backend, ReleaseReply, RenewReply};
use soldonce_lease::{BackendError, Doctor, FencingToken, Leases};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::redis::Redis;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::site::{
    Site, TTL, ask, ask_fair, code, granted, group, one, owner, release, renew, while_waiters_live,
};
use crate::conformance::refused;

/// Asks for all of them at once; the answers in the same order.
async fn at_once(site: &Site, asked: &[Acquire], scripts_max: u64) -> Vec<AcquireReply> {
    let before = scripts(&site.redis);
    let mut calls: Vec<_> = asked.iter().map(|ask| site.backend.acquire(ask)).collect();
    let mut replies = vec![None; asked.len()];
    std::future::poll_fn(|cx| {
        for (call, reply) in calls.iter_mut().zip(&mut replies) {
            if reply.is_none()
                && let std::task::Poll::Ready(ready) = call.as_mut().poll(cx)
            {
                *reply = Some(ready);
            }
        }
        if replies.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    let sent = scripts(&site.redis) - before;
    assert!(sent <= scripts_max, "{sent} scripts, not a batch");
    replies.into_iter().flatten().collect()
}

/// Scripts that clients sent so far.
pub(super) fn scripts(redis: &Redis) -> u64 {
    let info = redis.cli(&["INFO", "commandstats"]).unwrap();
    let calls = info.lines().filter_map(|line| {
        let rest = line.strip_prefix("cmdstat_eval")?;
        let (_, rest) = rest.split_once(":calls=")?;
        rest.split_once(',')?.0.parse::<u64>().ok()
    });
    calls.sum()
}

fn failure(reply: &AcquireReply) -> &BackendError {
    match reply {
        AcquireReply::Failed(error) => error,
        other => panic!("failed, but {other:?}"),
    }
}

fn is_granted(reply: &AcquireReply) -> bool {
    matches!(reply, AcquireReply::Granted { again: false, .. })
}

fn is_granted_again(reply: &AcquireReply) -> bool {
    matches!(reply, AcquireReply::Granted { again: true, .. })
}

fn token(reply: &AcquireReply) -> FencingToken {
    match reply {
        AcquireReply::Granted { token, .. } => *token,
        other => panic!("granted, but {other:?}"),
    }
}

fn conflicts(reply: &AcquireReply) -> Vec<String> {
    match reply {
        AcquireReply::Refused(refusal) => {
            let names = refusal.conflicts.iter();
            names.map(|held| held.name.to_string()).collect()
        }
        other => panic!("refused, but {other:?}"),
    }
}

/// Puts a set where the script expects another type.
fn spoil(site: &Site, key_of: &Acquire, kind: &str) {
    let pattern = format!("sl:*:l:{}", key_of.names.routing_key().unwrap());
    let key = site.redis.cli(&["KEYS", &pattern]).unwrap();
    let spoilt = key.replacen(":l:", &format!(":{kind}:"), 1);
    site.redis.cli(&["DEL", &key]).unwrap();
    site.redis.cli(&["SADD", &spoilt, "x"]).unwrap();
}

#[tokio::test]
pub(super) async fn each_item_of_a_mixed_batch_has_its_own_answer() {
    let (mine, theirs) = (ask(one("mine")), ask(one("theirs")));
    let batch = [
        ask(one("bad-lease")),
        ask(one("free")),
        mine.clone(),
        ask(one("theirs")),
        ask_fair(one("bad-queue"), 8),
        ask_fair(one("theirs"), 7),
        ask(group(&["A-1", "A-2", "A-3"])),
        ask(group(&["A-2"])),
    ];
    // Two plain ones alone and three in one script; one for each of the other kinds; and one for each of four that
    // the first script may leave to the other, because a waiter has marked the queues meanwhile.
    let scripts_max = 2 + 1 + 3 + 4;
    let scene = while_waiters_live(async |site: Site| {
        let first = granted(&site.backend, &mine).await;
        granted(&site.backend, &theirs).await;
        granted(&site.backend, &ask(group(&["A-1", "A-3"]))).await;
        for (text, kind) in [("bad-lease", "l"), ("bad-queue", "q")] {
            let spoilt = ask(one(text));
            granted(&site.backend, &spoilt).await;
            spoil(&site, &spoilt, kind);
        }
        let replies = at_once(&site, &batch, scripts_max).await;
        let freed = release(&site.backend, &theirs, None).await;
        let passer_by = site.backend.acquire(&ask(one("theirs"))).await;
        (site, first, replies, freed, passer_by)
    });
    let (site, first, replies, freed, passer_by) = scene.await;
    assert_eq!(code(failure(&replies[0])), "WRONGTYPE");
    assert!(is_granted(&replies[1]), "{:?}", replies[1]);
    assert!(is_granted_again(&replies[2]), "{:?}", replies[2]);
    assert_eq!(conflicts(&replies[3]), ["theirs"]);
    assert_eq!(code(failure(&replies[4])), "WRONGTYPE");
    assert!(matches!(&replies[5], AcquireReply::Refused(refusal) if refusal.queued));
    assert_eq!(conflicts(&replies[6]), ["A-1", "A-3"]);
    assert!(is_granted(&replies[7]), "{:?}", replies[7]);
    assert_eq!(granted(&site.backend, &mine).await, first);
    assert_eq!(freed, ReleaseReply::Released);
    // The place that the batch took is kept: a passer-by waits.
    assert!(refused(passer_by).conflicts.is_empty());
}

#[tokio::test]
pub(super) async fn of_two_items_that_want_the_same_name_the_first_gets_it() {
    let site = Site::start().await;
    granted(&site.backend, &ask(one("other"))).await;
    let first = ask(one("a"));
    granted(&site.backend, &first).await;
    release(&site.backend, &first, None).await;
    let (winner, loser) = (ask(one("a")), ask(one("a")));
    // Two calls go alone, and the others gather meanwhile.
    let batch = [ask(one("b")), ask(one("c")), winner.clone(), loser, winner];
    let replies = at_once(&site, &batch, 4).await;
    assert!(is_granted(&replies[2]), "{:?}", replies[2]);
    assert_eq!(conflicts(&replies[3]), ["a"]);
    assert!(is_granted_again(&replies[4]), "{:?}", replies[4]);
}

#[tokio::test]
async fn a_batch_after_a_flush_installs_one_epoch_and_grants_all() {
    let site = Site::start().await;
    granted(&site.backend, &ask(group(&["A-0"]))).await;
    site.redis.cli(&["FLUSHALL"]).unwrap();
    let batch: Vec<Acquire> = (1..=8)
        .map(|seat| ask(group(&[&format!("A-{seat}")])))
        .collect();
    // All are left to the other script, install, and ask again; the first install serves all.
    let replies = at_once(&site, &batch, 3 + 8 + 8 + 8).await;
    let tokens: BTreeSet<_> = replies.iter().map(token).collect();
    assert_eq!(tokens.len(), 8, "a token twice");
    let first = tokens.first().unwrap().epoch();
    assert!(first > 1 && tokens.iter().all(|token| token.epoch() == first));
}

#[tokio::test]
pub(super) async fn tokens_of_one_batch_differ_and_rise() {
    let batch = (1..=16).map(|seat| ask(group(&[&format!("A-{seat}")])));
    // Two go alone, the others in one script.
    tokens_rise(&batch.collect::<Vec<_>>(), 3).await;
}

#[tokio::test]
pub(super) async fn tokens_of_groups_at_once_differ_and_rise() {
    let row = |row| ask(group(&[&format!("A-{row}"), &format!("B-{row}")]));
    tokens_rise(&(1..=16).map(row).collect::<Vec<_>>(), 16).await;
}

async fn tokens_rise(batch: &[Acquire], scripts_max: u64) {
    let site = Site::start().await;
    let mut last = granted(&site.backend, &ask(group(&["A-0"]))).await;
    let replies = at_once(&site, batch, scripts_max).await;
    for (asked, reply) in batch.iter().zip(&replies) {
        let token = token(reply);
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        let whole = RenewReply::Renewed { granted: TTL };
        let renewed = renew(&site.backend, asked, token, TTL).await;
        assert_eq!(renewed, whole, "{token:?} is what is stored");
    }
    assert!(granted(&site.backend, &ask(group(&["A-99"]))).await > last);
}

/// A script that stopped at the refusal would have granted without counting.
#[tokio::test]
pub(super) async fn a_command_that_is_forbidden_gives_no_token_twice() {
    let site = Site::start().await;
    granted(&site.backend, &ask(one("held"))).await;
    let forbid = ["ACL", "SETUSER", "default", "-pttl"];
    site.redis.cli(&forbid).unwrap();
    // Two go alone, the others in one script; the refused one then in the other script, which needs the command.
    let batch = ["a", "b", "free", "held"].map(|name| ask(one(name)));
    let replies = at_once(&site, &batch, 4).await;
    assert!(is_granted(&replies[2]), "the refusal stopped the script");
    assert!(matches!(&replies[3], AcquireReply::Failed(_)));
    let next = granted(&site.backend, &ask(one("next"))).await;
    assert!(next > token(&replies[2]), "{next:?} after {:?}", replies[2]);
}

#[tokio::test]
pub(super) async fn each_release_of_a_batch_has_its_own_answer() {
    let site = Site::start().await;
    let (mine, theirs) = (ask(one("mine")), ask(one("theirs")));
    granted(&site.backend, &mine).await;
    let held = granted(&site.backend, &theirs).await;
    let spoilt = ask(one("spoilt"));
    granted(&site.backend, &spoilt).await;
    spoil(&site, &spoilt, "l");
    let of = |ask: &Acquire| soldonce_lease::backend::Release {
        names: ask.names.clone(),
        owner: ask.owner,
        token: None,
        waiter: ask.waiter,
    };
    let stranger = Acquire {
        owner: owner(),
        ..theirs.clone()
    };
    let late = soldonce_lease::backend::Release {
        token: FencingToken::new(held.number() + 1),
        ..of(&theirs)
    };
    let batch = [
        of(&spoilt),
        of(&mine),
        of(&mine),
        of(&stranger),
        late,
        of(&theirs),
    ];
    assert_eq!(
        site.backend.release(&batch).await,
        [
            ReleaseReply::Gone,
            ReleaseReply::Released,
            ReleaseReply::Gone,
            ReleaseReply::Taken { by: held },
            ReleaseReply::Taken { by: held },
            ReleaseReply::Released,
        ]
    );
}

#[tokio::test]
async fn a_caller_who_goes_away_takes_no_answer_from_the_others() {
    let site = Site::start().await;
    granted(&site.backend, &ask(one("warm"))).await;
    let (gone, stays) = (ask(one("a")), ask(one("b")));
    let first = site.backend.acquire(&gone);
    let second = site.backend.acquire(&stays);
    let mut first = Some(first);
    let mut second = std::pin::pin!(second);
    let reply = std::future::poll_fn(|cx| {
        if let Some(mut leaving) = first.take() {
            // Asks, and goes away before the answer.
            assert!(leaving.as_mut().poll(cx).is_pending());
        }
        second.as_mut().poll(cx)
    })
    .await;
    assert!(is_granted(&reply), "{reply:?}");
}

async fn pairs(locks: &Leases, name: &str, count: usize) {
    for _ in 0..count {
        let lease = locks.lease(name).try_acquire().await.unwrap().unwrap();
        lease.release().await.unwrap();
    }
}

/// A server that stands still meanwhile, so that no answer comes between the calls.
#[test]
fn calls_of_tasks_that_are_ready_at_the_same_moment_share_a_script() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // One worker, which looks for answers only when no task is ready.
    runtime.worker_threads(1).event_interval(1_000_000);
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let Site { mut redis, backend } = Site::start().await;
        granted(&backend, &ask(one("warm"))).await;
        let backend = Arc::new(backend);
        // Two calls go alone, and all others together; after a batch none goes alone.
        assert_eq!(scripts_of_tasks(&mut redis, &backend, "a").await, 3);
        assert_eq!(scripts_of_tasks(&mut redis, &backend, "b").await, 1);
    });
}

/// Lets 16 tasks acquire at the same moment, and counts the scripts.
async fn scripts_of_tasks(redis: &mut Redis, backend: &Arc<RedisBackend>, name: &str) -> u64 {
    const TASKS: usize = 16;
    let before = scripts(redis);
    redis.pause().unwrap();
    let start = Arc::new(Barrier::new(TASKS));
    let sent = Arc::new(Barrier::new(TASKS + 1));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (backend, start, sent) = (backend.clone(), start.clone(), sent.clone());
        let name = format!("{name}:{task}");
        tasks.spawn(async move {
            start.wait().await;
            let ask = ask(one(&name));
            tokio::join!(granted(&backend, &ask), sent.wait());
        });
    }
    sent.wait().await;
    redis.resume().unwrap();
    tasks.join_all().await;
    scripts(redis) - before
}

/// A count, not a time: what 64 busy tasks cost the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_64_tasks_stay_far_below_two_for_each_pair() {
    const TASKS: usize = 64;
    const PAIRS: usize = 20;
    let redis = Redis::start().unwrap();
    let locks = Leases::redis(redis.url().as_str())
        .namespace("app")
        .call_timeout(PATIENCE)
        .doctor(Doctor::Off);
    let locks = locks.connect().await.unwrap();
    let start = Arc::new(Barrier::new(TASKS));
    let before = scripts(&redis);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (locks, start) = (locks.clone(), Arc::clone(&start));
        tasks.spawn(async move {
            start.wait().await;
            pairs(&locks, &format!("job-{task}"), PAIRS).await;
        });
    }
    tasks.join_all().await;
    let sent = usize::try_from(scripts(&redis) - before).unwrap();
    assert!(
        sent < TASKS * PAIRS / 2,
        "{sent} scripts for {} pairs",
        TASKS * PAIRS
    );
}
