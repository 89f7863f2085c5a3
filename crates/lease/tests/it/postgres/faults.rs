//! Pools, crashes, locks held by others, a server that hangs, a standby that had not caught up.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::postgres::{PgConfig, Postgres};
use soldonce_lease::backend::{Acquire, AcquireReply, Backend, ReleaseReply, RenewReply};
use soldonce_lease::{BackendError, Clock, FencingToken, Namespace, SystemClock};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::postgres::{PgBouncer, Postgres as Server, PostgresPair};
use tokio::task::JoinSet;

use super::{
    ask, backend, config, granted, group, migrated, one, refused, release, renew, server, session,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_through_a_pool_in_transaction_mode() {
    let server = Server::start().unwrap();
    let pool = PgBouncer::start(&server, 2).unwrap();
    let config = PgConfig::url(&pool.url_of("postgres")).unwrap();
    migrated(&config).await.unwrap();
    let mut clients = JoinSet::new();
    for client in 0..8 {
        clients.spawn(ten_leases(backend(config.clone().connections(2)), client));
    }
    let mut tokens = clients.join_all().await.concat();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 80);
}

/// A server that is far away: its connection and its version together take more than a second.
#[tokio::test]
async fn a_database_that_is_far_away_is_migrated() {
    let server = Server::start().unwrap();
    let proxy = FaultProxy::to(server.address()).unwrap();
    proxy.set(Fault::Delay(Duration::from_millis(600)));
    let url = proxy.url(&server.url(), server.address());
    migrated(&PgConfig::url(&url).unwrap()).await.unwrap();
    granted(&backend(config(&server)), &ask(one("a"))).await;
}

/// Ten names of its own and a shared one, each taken, renewed and released.
async fn ten_leases(backend: Postgres, client: u32) -> Vec<FencingToken> {
    let mut tokens = Vec::new();
    for n in 0..10 {
        let mine = ask(one(&format!("name-{client}-{n}")));
        let token = granted(&backend, &mine).await;
        let renewed = renew(&backend, &mine, token).await;
        assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
        let contested = ask(one("shared"));
        let reply = backend.acquire(&contested).await;
        assert!(!matches!(reply, AcquireReply::Failed(_)), "{reply:?}");
        release(&backend, &contested, None).await;
        let released = release(&backend, &mine, Some(token)).await;
        assert_eq!(released, ReleaseReply::Released);
        tokens.push(token);
    }
    tokens
}

#[tokio::test]
async fn tokens_rise_and_leases_stay_over_crashes_of_the_server() {
    let mut server = Server::options().durable().start().unwrap();
    migrated(&config(&server)).await.unwrap();
    let backend = backend(config(&server));
    let held = ask(one("held"));
    let held_token = granted(&backend, &held).await;
    let mut last = held_token;
    for _ in 0..3 {
        let mine = ask(one("job"));
        let token = answered(&backend, &mine).await;
        assert!(token > last, "{last} then {token}");
        last = token;
        server.stop_immediately().unwrap();
        server.restart().unwrap();
        let other = ask(one("held"));
        let refusal = match backend.acquire(&other).await {
            // The connection that the server ended was noticed by its use.
            AcquireReply::Failed(BackendError::Unknown(_)) => refused(&backend, &other).await,
            AcquireReply::Refused(refusal) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(refusal.conflicts[0].token, held_token);
        assert_eq!(
            release(&backend, &mine, Some(token)).await,
            ReleaseReply::Released
        );
    }
    assert!(matches!(
        renew(&backend, &held, held_token).await,
        RenewReply::Renewed { .. }
    ));
}

/// Asks as the facade does: again with the same owner after an answer that is none.
async fn answered(backend: &Postgres, ask: &Acquire) -> FencingToken {
    for _ in 0..50 {
        match backend.acquire(ask).await {
            AcquireReply::Granted { token, .. } => return token,
            AcquireReply::Failed(BackendError::Unknown(_) | BackendError::NotSent(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("no answer in 50 tries");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_midst_of_acquires_leaves_no_second_holder() {
    let mut server = Server::options().durable().start().unwrap();
    migrated(&config(&server)).await.unwrap();
    for round in 0..3 {
        let mut clients = JoinSet::new();
        for client in 0..10 {
            let backend = backend(config(&server).connections(1));
            clients.spawn(acquire_until_stopped(backend, format!("{round}-{client}")));
        }
        server.query("SELECT pg_sleep(0.2)").unwrap();
        server.stop_immediately().unwrap();
        let attempts = clients.join_all().await;
        server.restart().unwrap();
        let backend = backend(config(&server));
        for (ask, last) in attempts {
            // What was answered is there, and what was not is settled by asking again.
            let token = granted(&backend, &ask).await;
            assert!(last.is_none_or(|last| token > last));
            refused(&backend, &self::ask(ask.names.clone())).await;
        }
    }
}

/// Takes and releases one name until the server is gone; the attempt that was never settled, and the
/// last token that was given back.
async fn acquire_until_stopped(backend: Postgres, name: String) -> (Acquire, Option<FencingToken>) {
    let mut last = None;
    loop {
        let mine = ask(one(&name));
        match backend.acquire(&mine).await {
            AcquireReply::Granted { token, .. } => {
                assert!(last < Some(token));
                if release(&backend, &mine, Some(token)).await != ReleaseReply::Released {
                    return (mine, last);
                }
                last = Some(token);
            }
            AcquireReply::Failed(BackendError::Unknown(_) | BackendError::NotSent(_)) => {
                return (mine, last);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_row_locked_by_another_is_a_refusal_and_a_renewal_that_did_not_run() {
    let server = server().await;
    let backend = backend(config(&server));
    let mine = ask(one("locked"));
    let token = granted(&backend, &mine).await;
    let (holder, _task) = session(&server).await;
    let lock = "BEGIN; SELECT FROM soldonce_lease FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    let renewed = renew(&backend, &mine, token).await;
    let code = "55P03";
    assert!(
        matches!(&renewed, RenewReply::Failed(BackendError::Rejected { code: said, .. }) if said == code),
        "{renewed:?}"
    );
    // Who sees that the name is another's needs no lock to be refused.
    let refusal = refused(&backend, &ask(one("locked"))).await;
    assert_eq!(refusal.conflicts.len(), 1);
    holder
        .batch_execute("UPDATE soldonce_lease SET expires_at = now(); COMMIT")
        .await
        .unwrap();
    holder.batch_execute(lock).await.unwrap();
    let refusal = refused(&backend, &ask(one("locked"))).await;
    assert!(refusal.conflicts.is_empty() && !refusal.retry_after.is_zero());
    holder.batch_execute("ROLLBACK").await.unwrap();
    granted(&backend, &ask(one("locked"))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_a_refusal() {
    // A server looks once, that long after a wait began: the other must wait for ours by then, on a busy machine too.
    let server = Server::options()
        .line("deadlock_timeout = 5s")
        .start()
        .unwrap();
    migrated(&config(&server)).await.unwrap();
    // So that nothing else ends ours before.
    let patient = "CREATE OR REPLACE FUNCTION soldonce_lease_settings() RETURNS void LANGUAGE sql \
                   AS $$ SELECT set_config('lock_timeout', '1min', true) $$";
    server.query(patient).unwrap();
    let backend = Arc::new(backend(config(&server)));
    let first = ask(group(&["a", "b"]));
    let token = granted(&*backend, &first).await;
    release(&*backend, &first, Some(token)).await;
    let (other, _task) = session(&server).await;
    // The other waits patiently, so that it is ours that is ended.
    let lock_b = "SET deadlock_timeout = '1min'; BEGIN; \
                  SELECT FROM soldonce_lease WHERE name = 'g/b' FOR UPDATE";
    other.batch_execute(lock_b).await.unwrap();
    let (watcher, _watched) = session(&server).await;
    let mut ours = JoinSet::new();
    let (asking, mine) = (backend.clone(), ask(group(&["a", "b"])));
    ours.spawn(async move { refused(&*asking, &mine).await });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let end = SystemClock.boot().plus(soldonce_testkit::PATIENCE);
    while watcher
        .query_one(waiting, &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        != 1
    {
        assert!(SystemClock.boot() < end, "ours does not wait for b");
    }
    let lock_a = "SELECT FROM soldonce_lease WHERE name = 'g/a' FOR UPDATE; ROLLBACK";
    other.batch_execute(lock_a).await.unwrap();
    let refusal = ours.join_all().await.remove(0);
    assert!(refusal.conflicts.is_empty() && !refusal.retry_after.is_zero());
    granted(&*backend, &ask(group(&["a", "b"]))).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_unknown_and_the_next_call_begins_anew() {
    let mut server = server().await;
    let namespace = Namespace::new("app").unwrap();
    let limit = Duration::from_millis(300);
    let backend = Postgres::new(config(&server), namespace, Arc::new(SystemClock), limit);
    let mine = ask(one("hung"));
    let token = answered(&backend, &mine).await;
    server.pause().unwrap();
    let reply = backend.acquire(&mine).await;
    assert!(
        matches!(reply, AcquireReply::Failed(BackendError::Unknown(_))),
        "{reply:?}"
    );
    let reply = backend.acquire(&mine).await;
    assert!(
        matches!(reply, AcquireReply::Failed(BackendError::NotSent(_))),
        "{reply:?}"
    );
    server.resume().unwrap();
    assert_eq!(answered(&backend, &mine).await, token);
}

#[tokio::test]
async fn a_promoted_standby_that_was_behind_is_healed_by_the_floor() {
    let pair = PostgresPair::start().unwrap();
    migrated(&config(&pair.primary)).await.unwrap();
    let old = backend(config(&pair.primary));
    granted(&old, &ask(one("seen"))).await;
    pair.await_sync().unwrap();
    pair.cut().unwrap();
    let mut lost = Vec::new();
    for n in 0..50 {
        lost.push(granted(&old, &ask(one(&format!("lost-{n}")))).await);
    }
    pair.promote().unwrap();
    let new = backend(config(&pair.standby));
    refused(&new, &ask(one("seen"))).await;
    let mut fell = 0;
    for (n, before) in lost.into_iter().enumerate().rev() {
        // Granted a second time: nothing here can know of the first.
        let mut mine = ask(one(&format!("lost-{n}")));
        let token = granted(&new, &mine).await;
        release(&new, &mine, Some(token)).await;
        if token <= before {
            fell += 1;
            // The gate refuses it, the facade keeps the floor, and the next grant is above it.
            mine.floor = Some(before);
            let healed = granted(&new, &ask_again(&mine)).await;
            assert!(healed > before, "{healed} after {before}");
        }
    }
    assert!(
        fell > 0,
        "the standby was not behind, so the test shows nothing"
    );
}

#[tokio::test]
async fn of_several_servers_the_primary_has_the_leases() {
    let pair = PostgresPair::start().unwrap();
    migrated(&config(&pair.primary)).await.unwrap();
    pair.await_sync().unwrap();
    let hosts = [&pair.standby, &pair.primary].map(|server| server.address().to_string());
    let both = PgConfig::url(&format!("postgres://postgres@{}/postgres", hosts.join(",")));
    granted(&backend(both.unwrap()), &ask(one("seat"))).await;
}

fn ask_again(before: &Acquire) -> Acquire {
    Acquire {
        owner: super::owner(),
        ..before.clone()
    }
}

#[tokio::test]
async fn a_standby_does_not_grant() {
    let pair = PostgresPair::start().unwrap();
    migrated(&config(&pair.primary)).await.unwrap();
    pair.await_sync().unwrap();
    let standby = backend(config(&pair.standby));
    let reply = standby.acquire(&ask(one("a"))).await;
    let AcquireReply::Failed(BackendError::Rejected { code, .. }) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(code, "25006");
}
