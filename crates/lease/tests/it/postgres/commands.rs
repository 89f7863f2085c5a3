//! What each command does, and what the rows are afterwards.

use std::time::Duration;

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::backend::{AcquireReply, Backend, ReleaseReply, Renew, RenewReply};
use soldonce_lease::{BackendError, FencingToken, Leases, Name};
use soldonce_testkit::postgres::Postgres as Server;
use soldonce_testkit::{PATIENCE, until};

use super::{ask, backend, config, granted, group, migrated, one, refused, release, renew, server};

#[tokio::test]
async fn a_lease_is_granted_renewed_seen_and_released() {
    let server = server().await;
    let backend = backend(config(&server));
    let mine = ask(one("report"));
    let token = granted(&backend, &mine).await;
    assert!(token.epoch() > 0);
    let name = Name::new("report").unwrap();
    let seen = backend.inspect(None, &name).await.unwrap().unwrap();
    assert_eq!((seen.owner, seen.token), (mine.owner, token));
    assert_eq!((seen.cap, seen.meta.as_str()), (None, "who=test"));
    assert!(seen.remaining <= mine.ttl && seen.remaining > mine.ttl / 2);
    assert!(
        matches!(renew(&backend, &mine, token).await, RenewReply::Renewed { granted } if granted == mine.ttl)
    );
    assert_eq!(
        release(&backend, &mine, Some(token)).await,
        ReleaseReply::Released
    );
    assert_eq!(
        release(&backend, &mine, Some(token)).await,
        ReleaseReply::Gone
    );
    assert_eq!(renew(&backend, &mine, token).await, RenewReply::Gone);
    assert_eq!(backend.inspect(None, &name).await, Ok(None));
}

#[tokio::test]
async fn a_refusal_names_every_conflict_and_keeps_nothing() {
    let server = server().await;
    let backend = backend(config(&server));
    let (a, b) = (ask(group(&["a"])), ask(group(&["b"])));
    let tokens = [granted(&backend, &a).await, granted(&backend, &b).await];
    let all = ask(group(&["a", "b", "c"]));
    let refusal = refused(&backend, &all).await;
    let seen: Vec<_> = refusal
        .conflicts
        .iter()
        .map(|c| (c.name.as_str(), c.token))
        .collect();
    assert_eq!(seen, [("a", tokens[0]), ("b", tokens[1])]);
    assert!(refusal.retry_after <= a.ttl && refusal.retry_after > a.ttl / 2);
    let c = ask(group(&["c"]));
    granted(&backend, &c).await;
    granted(&backend, &ask(one("a"))).await;
}

#[tokio::test]
async fn asking_again_gives_the_same_token_and_a_refused_owner_gives_back_what_it_has() {
    let server = server().await;
    let backend = backend(config(&server));
    let mine = ask(group(&["a", "b"]));
    let token = granted(&backend, &mine).await;
    let again = backend.acquire(&mine).await;
    assert!(
        matches!(again, AcquireReply::Granted { token: same, again: true, .. } if same == token)
    );
    granted(&backend, &ask(group(&["c"]))).await;
    let mut more = mine.clone();
    more.names = group(&["a", "b", "c"]);
    assert_eq!(refused(&backend, &more).await.conflicts.len(), 1);
    assert_eq!(renew(&backend, &mine, token).await, RenewReply::Gone);
    let later = granted(&backend, &ask(group(&["a", "b"]))).await;
    assert!(later > token);
    assert_eq!(
        renew(&backend, &mine, token).await,
        RenewReply::Taken { by: later }
    );
    assert_eq!(
        release(&backend, &mine, Some(token)).await,
        ReleaseReply::Taken { by: later }
    );
    assert_eq!(
        release(&backend, &mine, None).await,
        ReleaseReply::Taken { by: later }
    );
}

#[tokio::test]
async fn a_cap_holds_against_renewal_and_repetition() {
    let server = server().await;
    let backend = backend(config(&server));
    let mut mine = ask(one("capped"));
    mine.ttl = Duration::from_secs(20);
    mine.cap = Some(Duration::from_secs(30));
    let token = granted(&backend, &mine).await;
    mine.ttl = Duration::from_hours(1);
    let cap = Duration::from_secs(30);
    let life = renew(&backend, &mine, token).await;
    assert!(matches!(life, RenewReply::Renewed { granted } if granted <= cap && granted > cap / 2));
    let again = backend.acquire(&mine).await;
    assert!(matches!(again, AcquireReply::Granted { granted, .. } if granted <= cap));
}

#[tokio::test]
async fn a_renewal_of_a_group_is_whole_or_nothing_and_batches_keep_their_order() {
    let server = server().await;
    let backend = backend(config(&server));
    let (whole, broken) = (ask(group(&["a", "b"])), ask(group(&["c", "d"])));
    let (whole_token, broken_token) = (
        granted(&backend, &whole).await,
        granted(&backend, &broken).await,
    );
    let mut d = ask(group(&["d"]));
    d.owner = broken.owner;
    release(&backend, &d, None).await;
    let of = |ask: &soldonce_lease::backend::Acquire, token, ttl| Renew {
        names: ask.names.clone(),
        owner: ask.owner,
        token,
        ttl,
    };
    let long = Duration::from_mins(10);
    let batch = [
        of(&broken, broken_token, long),
        of(&whole, whole_token, long),
        of(&whole, whole_token, Duration::ZERO),
        of(&whole, broken_token, long),
    ];
    let replies = backend.renew(&batch).await;
    assert_eq!(replies[0], RenewReply::Gone);
    assert_eq!(replies[1], RenewReply::Renewed { granted: long });
    assert!(matches!(replies[2], RenewReply::Renewed { granted } if granted <= long));
    assert_eq!(replies[3], RenewReply::Taken { by: whole_token });
    let c = backend
        .inspect(broken.names.group(), &Name::new("c").unwrap())
        .await;
    assert!(
        c.unwrap().unwrap().remaining <= broken.ttl,
        "the rest of a lost group is not renewed"
    );
    assert!(backend.renew(&[]).await.is_empty());
}

#[tokio::test]
async fn an_expired_lease_is_gone_at_that_moment() {
    let server = server().await;
    let backend = backend(config(&server));
    let mine = ask(one("short"));
    let token = granted(&backend, &mine).await;
    // The row as it is when its time is over, and untouched since.
    server
        .query("UPDATE soldonce_lease SET expires_at = clock_timestamp()")
        .unwrap();
    assert_eq!(renew(&backend, &mine, token).await, RenewReply::Gone);
    let later = granted(&backend, &ask(one("short"))).await;
    assert!(later > token);
    assert_eq!(
        renew(&backend, &mine, token).await,
        RenewReply::Taken { by: later }
    );
}

#[tokio::test]
async fn a_floor_lifts_the_token_and_the_last_epoch_ends_it() {
    let server = server().await;
    let backend = backend(config(&server));
    let mut mine = ask(one("floor"));
    let floor = FencingToken::from_parts(77, u32::MAX).unwrap();
    mine.floor = Some(floor);
    let token = granted(&backend, &mine).await;
    assert!(token > floor && token.epoch() == 78, "{token}");
    assert!(
        granted(&backend, &ask(one("other"))).await > token,
        "it stays that high"
    );
    let mut hopeless = ask(one("third"));
    hopeless.floor = FencingToken::from_parts(soldonce_lease::EPOCH_MAX, 1);
    let reply = backend.acquire(&hopeless).await;
    assert!(matches!(reply, AcquireReply::Epoch(_)), "{reply:?}");
    mine.names = one("third");
    mine.floor = None;
    granted(&backend, &mine).await;
}

#[tokio::test]
async fn tokens_rise_over_the_end_of_the_counter() {
    let server = server().await;
    let backend = backend(config(&server));
    server
        .query("SELECT setval('soldonce_lease_counter', 4294967294)")
        .unwrap();
    let mut last = None;
    for _ in 0..4 {
        let mine = ask(one("rolls"));
        let token = granted(&backend, &mine).await;
        assert!(last < Some(token), "{last:?} then {token}");
        last = Some(token);
        release(&backend, &mine, Some(token)).await;
    }
    assert!(last.unwrap().epoch() == 2);
}

#[tokio::test]
async fn migrations_race_and_repeat_and_refuse_a_newer_version() {
    let server = Server::start().unwrap();
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let config = config(&server);
        starting.spawn(async move { migrated(&config).await });
    }
    for migrated in starting.join_all().await {
        migrated.unwrap();
    }
    let newer = "CREATE OR REPLACE FUNCTION soldonce_lease_version() RETURNS integer LANGUAGE sql \
                 IMMUTABLE AS $$ SELECT 99 $$";
    server.query(newer).unwrap();
    let refused = migrated(&config(&server)).await.unwrap_err();
    let leases = Leases::postgres(config(&server)).namespace("app");
    let leases = leases.call_timeout(Duration::from_secs(20));
    let unconnected = leases.connect().await.unwrap_err();
    let findings = backend(config(&server)).doctor().await;
    let tables = findings.iter().find(|found| found.check == "lease tables");
    for said in [
        refused.to_string(),
        unconnected.to_string(),
        tables.unwrap().found.clone(),
    ] {
        assert!(said.contains("version 99, this client knows "), "{said}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_is_said() {
    let server = Server::start().unwrap();
    let reply = backend(config(&server)).acquire(&ask(one("a"))).await;
    let AcquireReply::Failed(BackendError::Config(said)) = reply else {
        panic!("{reply:?}");
    };
    assert!(said.contains("postgres::migrate"), "{said}");
    let nowhere = PgConfig::url(&server.url_of("nowhere")).unwrap();
    let reply = backend(nowhere).acquire(&ask(one("a"))).await;
    assert!(
        matches!(reply, AcquireReply::Failed(BackendError::Config(_))),
        "{reply:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_rows_are_pruned_and_live_ones_stay() {
    let server = server().await;
    let backend = backend(config(&server));
    granted(&backend, &ask(one("live"))).await;
    server
        .query(
            "INSERT INTO soldonce_lease (ns, name, expires_at) SELECT 'app', 'idle' || n, \
             clock_timestamp() - interval '25 hours' FROM generate_series(1, 1000) n",
        )
        .unwrap();
    // The bits of this owner are some that prune.
    let mut bits = [0; 16];
    let pruner = (0_u64..).find_map(|n| {
        bits[8..].copy_from_slice(&n.to_be_bytes());
        let owner = soldonce_lease::Owner::from_bits(bits);
        u128::from_be_bytes(bits)
            .is_multiple_of(1_024)
            .then_some(owner)
    });
    let mut mine = ask(one("trigger"));
    mine.owner = pruner.unwrap();
    granted(&backend, &mine).await;
    until("idle rows are pruned", PATIENCE, || {
        let rows = server.query("SELECT count(*) FROM soldonce_lease");
        rows.is_ok_and(|rows| rows == "2")
    })
    .unwrap();
}
