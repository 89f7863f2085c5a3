//! A server that refuses, hangs, breaks or forbids: what is said of it, and that leases still end.

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Durability, Fencing, ReleaseReply, RenewReply,
};
use soldonce_lease::{BackendError, ManualClock};
use soldonce_testkit::redis::{Redis, RedisPair};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::site::{
    CALL_TIMEOUT, Numbers, Site, TTL, anchored, ask, ask_fair, code, connect, granted, group, one,
    owner, refused, release, renew, settings, timed_out, until,
};

fn failed(reply: AcquireReply) -> BackendError {
    match reply {
        AcquireReply::Failed(error) => error,
        other => panic!("failed, but {other:?}"),
    }
}

#[tokio::test]
async fn at_maxmemory_nothing_is_granted_and_everything_can_be_kept_and_ended() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    site.redis
        .cli(&["CONFIG", "SET", "maxmemory", "1"])
        .unwrap();
    let error = failed(site.backend.acquire(&ask(one("b"))).await);
    assert_eq!(code(&error), "OOM");
    let whole = RenewReply::Renewed { granted: TTL };
    assert_eq!(renew(&site.backend, &mine, token, TTL).await, whole);
    assert_eq!(
        release(&site.backend, &mine, Some(token)).await,
        ReleaseReply::Released
    );
}

#[tokio::test]
async fn a_replica_refuses_and_the_next_call_finds_its_promotion() {
    let pair = RedisPair::start().unwrap();
    let backend = anchored(&pair.replica, &Numbers::from(1)).await;
    let error = failed(backend.acquire(&ask(one("a"))).await);
    assert_eq!(code(&error), "READONLY");
    pair.promote().unwrap();
    granted(&backend, &ask(one("a"))).await;
}

#[tokio::test]
async fn scripts_come_back_after_the_server_forgot_them() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    let token = granted(&site.backend, &mine).await;
    let forget = || site.redis.cli(&["SCRIPT", "FLUSH"]).unwrap();
    forget();
    let whole = RenewReply::Renewed { granted: TTL };
    assert_eq!(renew(&site.backend, &mine, token, TTL).await, whole);
    forget();
    assert_eq!(
        release(&site.backend, &mine, Some(token)).await,
        ReleaseReply::Released
    );
    forget();
    granted(&site.backend, &mine).await;
}

#[tokio::test]
async fn a_user_with_only_the_listed_commands_can_do_everything() {
    let users = "user default on nopass ~* &* +@all\n\
         user leases on >secret resetchannels &sl:{app.* ~sl:{app.* -@all \
         +evalsha +eval +time +get +mget +pttl +pexpire +set +del +hgetall +hset +hdel \
         +info +spublish +ssubscribe +sunsubscribe +ping +wait +hello +auth\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let url = redis.url().replace("redis://", "redis://leases:secret@");
    let mut settings = settings();
    settings.fencing = Fencing::Source(Numbers::from(1));
    let backend = RedisBackend::connect(&url.into(), settings).await.unwrap();
    let mine = ask(one("a"));
    let token = granted(&backend, &mine).await;
    let mut wakes = backend.wake(&mine.names).await;
    let whole = RenewReply::Renewed { granted: TTL };
    assert_eq!(renew(&backend, &mine, token, TTL).await, whole);
    assert!(
        backend
            .inspect(None, mine.names.routing_key().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(
        release(&backend, &mine, Some(token)).await,
        ReleaseReply::Released
    );
    wakes.next().await;
    for forbidden in [&["FLUSHALL"][..], &["KEYS", "*"], &["GET", "other"]] {
        let reply = redis.ask_as("leases", "secret", forbidden).unwrap().text();
        assert!(
            reply.unwrap_err().to_string().contains("NOPERM"),
            "{forbidden:?}"
        );
    }
}

/// Without tokens nothing is counted, and a server may hide what it is.
#[tokio::test]
async fn without_tokens_a_server_may_hide_info() {
    let users = "user default on nopass ~* &* +@all -info\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let mut plain = settings();
    plain.fencing = Fencing::Off;
    let backend = RedisBackend::connect(&redis.url().into(), plain)
        .await
        .unwrap();
    for asked in [ask(one("a")), ask(group(&["A-1", "A-2"]))] {
        let token = granted(&backend, &asked).await;
        let whole = RenewReply::Renewed { granted: TTL };
        assert_eq!(renew(&backend, &asked, token, TTL).await, whole);
        let other = Acquire {
            owner: owner(),
            ..asked.clone()
        };
        let conflicts = refused(&backend, &other).await;
        assert_eq!(conflicts.len(), asked.names.as_slice().len());
        let released = release(&backend, &asked, Some(token)).await;
        assert_eq!(released, ReleaseReply::Released);
    }
    assert_eq!(redis.cli(&["KEYS", "*"]).unwrap(), "");
    let tokens = RedisBackend::connect(&redis.url().into(), settings()).await;
    let reply = tokens.unwrap().acquire(&ask(one("a"))).await;
    assert!(matches!(reply, AcquireReply::Failed(_)), "{reply:?}");
}

/// A script that stopped behind its first write would have changed what it is said not to have.
#[tokio::test]
async fn a_script_that_may_not_read_lives_writes_nothing() {
    let site = Site::start().await;
    let mine = ask(one("a"));
    granted(&site.backend, &mine).await;
    let stored = site.redis.cli(&["DBSIZE"]).unwrap();
    let set_user = |rule| {
        let command = ["ACL", "SETUSER", "default", rule];
        site.redis.cli(&command).unwrap()
    };
    set_user("-pttl");
    let longer = Acquire {
        ttl: TTL * 6,
        ..mine
    };
    for asked in [longer, ask_fair(one("a"), 1)] {
        failed(site.backend.acquire(&asked).await);
    }
    set_user("+pttl");
    let now_stored = site.redis.cli(&["DBSIZE"]).unwrap();
    assert_eq!(now_stored, stored, "a place in the queue stays");
    let key = site.redis.cli(&["KEYS", "sl:*:l:a"]).unwrap();
    let left: u64 = site.redis.cli(&["PTTL", &key]).unwrap().parse().unwrap();
    assert!(Duration::from_millis(left) <= TTL, "{left} ms");
}

#[tokio::test]
async fn a_wrong_password_is_a_configuration_error() {
    let users = "user default on >right ~* &* +@all\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let plain = redis.url();
    let wrong = plain.replace("redis://", "redis://default:wrong@");
    for url in [plain, wrong] {
        let error = RedisBackend::connect(&url.into(), settings())
            .await
            .err()
            .unwrap();
        assert!(matches!(error, BackendError::Config(_)), "{error:?}");
        assert!(!error.to_string().contains("wrong@"), "{error}");
    }
}

#[tokio::test]
async fn a_dead_server_was_sent_nothing_and_a_hung_one_perhaps() {
    let mut redis = Redis::start().unwrap();
    let (clock, mut settings) = (ManualClock::at(0), settings());
    settings.clock = Arc::new(clock.clone());
    let backend = connect(&redis, settings).await;
    let mine = ask(one("a"));
    granted(&backend, &mine).await;
    redis.pause().unwrap();
    let hung = failed(timed_out((&clock, CALL_TIMEOUT), backend.acquire(&mine)).await);
    assert!(matches!(hung, BackendError::Unknown(_)), "{hung:?}");
    redis.resume().unwrap();
    redis.kill().unwrap();
    until("the broken connection is noticed", async || {
        let dead = failed(backend.acquire(&mine).await);
        matches!(dead, BackendError::NotSent(_)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn missing_replica_ack_is_reported_not_fatal() {
    let pair = RedisPair::start().unwrap();
    let backend = anchored(&pair.primary, &Numbers::from(1)).await;
    let within = Duration::from_millis(300);
    let names = AtomicU32::new(0);
    let replicas = async |n| {
        let free = one(&format!("n:{}", names.fetch_add(1, Ordering::Relaxed)));
        let durability = Durability::Replicas { n, within };
        match backend
            .acquire(&Acquire {
                durability,
                ..ask(free)
            })
            .await
        {
            AcquireReply::Granted { replicas, .. } => replicas,
            other => panic!("granted, but {other:?}"),
        }
    };
    // A replica counts from its first word on, which it may still have to say.
    until("the replica acknowledges", async || {
        (replicas(1).await == Some(1)).then_some(())
    })
    .await;
    // One is all there is, also where two are asked for.
    until("it acknowledges in time", async || {
        let of_two = replicas(2).await;
        assert!(of_two <= Some(1), "{of_two:?}");
        (of_two == Some(1)).then_some(())
    })
    .await;
    pair.cut().unwrap();
    assert_eq!(replicas(3).await, Some(0));
}
