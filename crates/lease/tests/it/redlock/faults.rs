//! Minorities that are dead, stopped or restarted empty, and what must not follow from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soldonce_lease::backend::redis::{RedisConfig, Redlock, RedlockConfig};
use soldonce_lease::backend::{
    AcquireReply, Backend, BackendContext, Fut, ReleaseReply, Renew, RenewReply, Verdict,
};
use soldonce_lease::{
    AcquireError, BackendError, BootTime, Clock, FenceError, FenceKind, FenceSource,
    InvalidRequest, Leases, ManualClock, Namespace, SystemClock,
};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{Data, Redis};
use soldonce_testkit::{PATIENCE, until};

use super::{Slow, ask, connect, granted, keys, nodes, redlock, release, renew};
use crate::faults::script;

/// A minority of nodes dead, then stopped: nothing changes for the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_and_two_of_five_may_be_dead_or_slow() {
    for (count, lost) in [(3, 1), (5, 2)] {
        let mut servers = Redis::independent(count).unwrap();
        let backend = redlock(&servers).await;
        let held = ask("held");
        let token = granted(&backend, &held).await;
        // A late vote of one of the others would leave the minority no majority to be one of.
        let all = || keys(&servers) == count;
        until("all nodes have it", PATIENCE, all).unwrap();
        for server in &mut servers[..lost] {
            server.pause().unwrap();
        }
        let renewed = renew(&backend, &held, token).await;
        assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
        let slow = ask("slow");
        let later = granted(&backend, &slow).await;
        assert_eq!(release(&backend, &slow, None).await, ReleaseReply::Released);
        for server in &mut servers[..lost] {
            server.kill().unwrap();
        }
        let dead = granted(&backend, &ask("slow")).await;
        assert!(token < later && later < dead, "{token} {later} {dead}");
        let renewed = renew(&backend, &held, token).await;
        assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_granted_and_nothing_stays() {
    let mut servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    for server in &mut servers[..2] {
        server.kill().unwrap();
    }
    let reply = backend.acquire(&ask("a")).await;
    assert!(matches!(reply, AcquireReply::Failed(_)), "{reply:?}");
    // The node that said yes is released too: one of three is no lease.
    until("the vote is given back", PATIENCE, || {
        keys(&servers[2..]) == 0
    })
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minority_is_no_lease_when_it_is_renewed() {
    let servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    let held = ask("held");
    let token = granted(&backend, &held).await;
    until("all nodes have it", PATIENCE, || keys(&servers) == 3).unwrap();
    for server in &servers[..2] {
        server.cli(&["FLUSHALL"]).unwrap();
    }
    assert_eq!(renew(&backend, &held, token).await, RenewReply::Gone);
    assert_eq!(keys(&servers), 1, "a lost lease is not healed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn restarted_node_heals_and_does_not_vote() {
    let mut servers = Redis::independent(3).unwrap();
    let longest = Duration::from_secs(20);
    let voting = redlock(&servers).await;
    let held = ask("held");
    let token = granted(&voting, &held).await;
    until("all nodes have it", PATIENCE, || keys(&servers) == 3).unwrap();
    servers[0].restart(Data::Lost).unwrap();
    assert_eq!(keys(&servers), 2);
    let strict = connect(RedlockConfig::new(nodes(&servers)).ttl_longest(longest)).await;
    // It is young, as all of them are: no one is granted anything new.
    let reply = strict.acquire(&ask("other")).await;
    let AcquireReply::Failed(BackendError::Rejected { code, .. }) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(code, "YOUNG");
    assert_eq!(keys(&servers), 2);
    // And it gets back what a majority still holds.
    let renewed = renew(&strict, &held, token).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
    until("the node is healed", PATIENCE, || keys(&servers) == 3).unwrap();
    // So a second restart does not cost the lease.
    servers[1].restart(Data::Lost).unwrap();
    let renewed = renew(&strict, &held, token).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
}

/// A server tells its age in whole seconds, cut off at its start and now: two seconds may be one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_restarted_node_sits_out_its_whole_time() {
    let mut servers = Redis::independent(3).unwrap();
    let longest = Duration::from_secs(2);
    let backend = connect(RedlockConfig::new(nodes(&servers)).ttl_longest(longest)).await;
    let mut mine = ask("a");
    mine.ttl = longest;
    // Without the third, the second must vote; the first is older.
    servers[2].kill().unwrap();
    servers[0].restart(Data::Lost).unwrap();
    let begun = restarted_late_in_a_second(&mut servers[1]);
    while !matches!(backend.acquire(&mine).await, AcquireReply::Granted { .. }) {
        assert!(SystemClock.boot().since(begun) < PATIENCE);
    }
    let age = SystemClock.boot().since(begun);
    assert!(age >= longest, "it voted when it was at most {age:?} old");
}

/// Starts a server when a second of the wall clock is almost over, in that second, and returns when that began.
fn restarted_late_in_a_second(server: &mut Redis) -> BootTime {
    let mut begun = SystemClock.boot();
    until("a start late in a second", PATIENCE, || {
        let wall_ms = SystemClock.wall_ms();
        if !(750..850).contains(&(wall_ms % 1_000)) {
            return false;
        }
        begun = SystemClock.boot();
        server.restart(Data::Lost).unwrap();
        let told = |field| server.info(field).unwrap().unwrap().parse::<i64>().unwrap();
        let (up, now) = (told("uptime_in_seconds"), told("server_time_usec"));
        now / 1_000_000 - up == wall_ms / 1_000
    })
    .unwrap();
    begun
}

/// The node that has the lease is slow to tell about it; by then its holder has given it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_released_is_not_healed() {
    let servers = Redis::independent(3).unwrap();
    let proxies: Vec<FaultProxy> = servers
        .iter()
        .map(|server| FaultProxy::to(server.address()).unwrap())
        .collect();
    let urls = servers.iter().zip(&proxies);
    let urls = urls.map(|(server, proxy)| proxy.url(&server.url(), server.address()));
    let behind = urls.map(RedisConfig::from).collect();
    let backend = connect(RedlockConfig::new(behind).sit_out(Duration::ZERO)).await;
    // Every script is known before one of them is slow.
    let held = ask("held");
    let token = granted(&backend, &held).await;
    let name = held.names.as_slice()[0].clone();
    backend.inspect(None, &name).await.unwrap();
    until("all nodes have it", PATIENCE, || keys(&servers) == 3).unwrap();
    let lost = servers[2].cli(&["KEYS", "sl:*:l:*"]).unwrap();
    servers[2].cli(&["DEL", lost.trim()]).unwrap();
    let inspect = redis::Script::new(&script("inspect.lua"));
    for proxy in &proxies[..2] {
        let slow = Fault::Delay(Duration::from_millis(300));
        proxy.next_with(inspect.get_hash(), slow);
    }
    let renewed = renew(&backend, &held, token).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
    assert_eq!(release(&backend, &held, None).await, ReleaseReply::Released);
    let asked = || proxies[..2].iter().any(|proxy| proxy.to_come() == 0);
    until("the healing has begun", PATIENCE, asked).unwrap();
    // Until the slow answer has come, and what follows from it.
    let settled = SystemClock.boot().plus(Duration::from_millis(600));
    until("the healing has ended", PATIENCE, || {
        SystemClock.boot() > settled
    })
    .unwrap();
    until("nothing is left", PATIENCE, || keys(&servers) == 0).unwrap();
}

/// Two nodes grant, and the third does not know the script of votes yet: the vote reaches it after the release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vote_that_comes_after_its_release_is_given_back() {
    let servers = Redis::independent(3).unwrap();
    let proxy = FaultProxy::to(servers[2].address()).unwrap();
    let mut behind = nodes(&servers);
    behind[2] = RedisConfig::from(proxy.url(&servers[2].url(), servers[2].address()));
    let backend = connect(RedlockConfig::new(behind).sit_out(Duration::ZERO)).await;
    // The first grant lets two nodes know all scripts; the third keeps that of releases.
    let first = ask("first");
    granted(&backend, &first).await;
    until("all nodes have it", PATIENCE, || keys(&servers) == 3).unwrap();
    assert_eq!(
        release(&backend, &first, None).await,
        ReleaseReply::Released
    );
    until("all nodes are free", PATIENCE, || keys(&servers) == 0).unwrap();
    servers[2].cli(&["SCRIPT", "FLUSH"]).unwrap();
    servers[2]
        .cli(&["SCRIPT", "LOAD", &script("release.lua")])
        .unwrap();
    let vote = redis::Script::new(&script("rl_acquire.lua"));
    let slow = Fault::Delay(Duration::from_millis(100));
    proxy.next_with(vote.get_hash(), slow);
    let held = ask("held");
    granted(&backend, &held).await;
    assert_eq!(release(&backend, &held, None).await, ReleaseReply::Released);
    let knows = || servers[2].cli(&["SCRIPT", "EXISTS", vote.get_hash()]);
    until("the vote has come", PATIENCE, || {
        knows().unwrap().trim() == "1"
    })
    .unwrap();
    until("nothing is left", PATIENCE, || keys(&servers) == 0).unwrap();
}

/// Evicted, say: the node still knows which token it granted last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_node_that_lost_only_the_key_is_healed() {
    let servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    let held = ask("held");
    let token = granted(&backend, &held).await;
    until("all nodes have it", PATIENCE, || keys(&servers) == 3).unwrap();
    let key = servers[0].cli(&["KEYS", "sl:*:l:*"]).unwrap();
    servers[0].cli(&["DEL", key.trim()]).unwrap();
    let renewed = renew(&backend, &held, token).await;
    assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
    // Not all of `PATIENCE`: with a planted bug it is waited for to the end.
    let limit = Duration::from_secs(20);
    until("the node is healed", limit, || keys(&servers) == 3).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn a_majority_that_remembers_grants_no_lower_token() {
    let servers = Redis::independent(3).unwrap();
    let (first, second) = (redlock(&servers).await, redlock(&servers).await);
    let mut last = None;
    for round in 0..6 {
        // Each has seen only its own tokens.
        let backend = if round % 2 == 0 { &first } else { &second };
        let mine = ask("turns");
        let token = granted(backend, &mine).await;
        assert!(last < Some(token), "{last:?} then {token}");
        last = Some(token);
        assert_eq!(release(backend, &mine, None).await, ReleaseReply::Released);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_race_at_most_one_wins_and_in_the_end_one_does() {
    let servers = Redis::independent(3).unwrap();
    let mut racing = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let backend = redlock(&servers).await;
        racing.spawn(async move {
            let reply = backend.acquire(&ask("race")).await;
            (backend, reply)
        });
    }
    let replies = racing.join_all().await;
    let won = |reply: &AcquireReply| matches!(reply, AcquireReply::Granted { .. });
    let winners = replies.iter().filter(|(_, reply)| won(reply)).count();
    assert!(winners <= 1, "{winners} winners");
    for (_, reply) in replies.iter().filter(|(_, reply)| !won(reply)) {
        assert!(matches!(reply, AcquireReply::Refused(_)), "{reply:?}");
    }
    if winners == 0 {
        until("all votes are given back", PATIENCE, || keys(&servers) == 0).unwrap();
        granted(&replies[0].0, &ask("race")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_sees_a_server_that_is_named_twice_and_one_that_is_gone() {
    let mut servers = Redis::independent(3).unwrap();
    let mut named = nodes(&servers);
    named[2] = named[1].clone();
    let of = |findings: &[soldonce_lease::backend::Finding], check: &str| {
        let mut found = findings.iter().filter(|finding| finding.check == check);
        found.next().map(|finding| finding.verdict)
    };
    let mut settings = BackendContext::new(Namespace::new("app").unwrap());
    // On a clock that stands all answers are heard.
    settings.clock = Arc::new(ManualClock::at(0));
    let twice = Redlock::connect(RedlockConfig::new(named), settings).await;
    let Some(BackendError::Config(why)) = twice.err() else {
        panic!("a server votes twice");
    };
    let port = servers[1].address().port().to_string();
    assert_eq!(why.matches(&port).count(), 2, "{why}");
    let backend = redlock(&servers).await;
    let good = backend.doctor().await;
    assert!(
        good.iter().all(|finding| finding.verdict == Verdict::Ok),
        "{good:?}"
    );
    servers[0].kill().unwrap();
    let gone = backend.doctor().await;
    assert_eq!(of(&gone, "nodes answer"), Some(Verdict::Warn), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_node_keeps_nobody_from_the_majority() {
    let servers = Redis::independent(2).unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut named = nodes(&servers);
    let port = silent.local_addr().unwrap().port();
    named.insert(0, RedisConfig::new("127.0.0.1", port));
    let mut settings = BackendContext::new(Namespace::new("app").unwrap());
    // Longer than any test: its answer is not waited for.
    settings.call_timeout = Duration::from_hours(1);
    let config = RedlockConfig::new(named);
    Redlock::connect(config, settings).await.unwrap();
}

#[tokio::test]
async fn a_redlock_has_three_five_or_seven_nodes() {
    for count in [1, 2, 4, 9] {
        let named = vec![RedisConfig::new("127.0.0.1", 1); count];
        let settings = BackendContext::new(Namespace::new("app").unwrap());
        let refused = Redlock::connect(RedlockConfig::new(named), settings).await;
        let error = refused.err().unwrap();
        assert!(matches!(error, BackendError::Config(_)), "{count}: {error}");
    }
}

/// A durable sequence, as far as this process lives.
struct Sequence(std::sync::atomic::AtomicU64);

impl FenceSource for Sequence {
    fn next<'a>(
        &'a self,
        _: FenceKind,
        _: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        let raise = |last: u64| Some(last.max(above) + 1);
        let relaxed = Ordering::Relaxed;
        let last = self.0.fetch_update(relaxed, relaxed, raise).unwrap();
        Box::pin(std::future::ready(Ok(last.max(above) + 1)))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_a_source_rise_even_when_every_node_forgets() {
    let servers = Redis::independent(3).unwrap();
    let config = RedlockConfig::new(nodes(&servers)).sit_out(Duration::ZERO);
    let locks = Leases::redlock(config)
        .namespace("app")
        .fence(Sequence(AtomicU64::new(1 << 32)))
        .clock(Arc::new(Slow))
        .connect()
        .await
        .unwrap();
    let lease = locks.lease("report").try_acquire().await.unwrap().unwrap();
    let first = lease.token().unwrap();
    assert_eq!(first.epoch(), 1);
    let refused = locks.lease("report").try_acquire().await;
    assert!(matches!(refused, Ok(None)), "{refused:?}");
    for server in &servers {
        server.cli(&["FLUSHALL"]).unwrap();
    }
    let second = locks.lease("report").try_acquire().await.unwrap().unwrap();
    assert!(
        second.token().unwrap() > first,
        "granted twice, and ordered"
    );
    drop((lease, second));
    locks.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn a_ttl_that_restarted_nodes_would_not_sit_out_is_refused() {
    let servers = Redis::independent(3).unwrap();
    let backend = redlock(&servers).await;
    let mut long = ask("long");
    long.ttl = Duration::from_mins(2);
    let reply = backend.acquire(&long).await;
    let config = matches!(reply, AcquireReply::Failed(BackendError::Config(_)));
    assert!(config, "{reply:?}");
    // A renewal would keep it as long, and the other one of its batch is no worse for it.
    let held = ask("held");
    let token = granted(&backend, &held).await;
    let renew = |ttl| Renew {
        names: held.names.clone(),
        owner: held.owner,
        token,
        ttl,
    };
    let replies = backend.renew(&[renew(long.ttl), renew(held.ttl)]).await;
    let config = matches!(replies[0], RenewReply::Failed(BackendError::Config(_)));
    assert!(config, "{replies:?}");
    let renewed = matches!(replies[1], RenewReply::Renewed { .. });
    assert!(renewed, "{replies:?}");
    // A lease asks for no more than that, in its request and later.
    let leases = Leases::backend(Arc::new(backend)).call_timeout(PATIENCE);
    let leases = leases.connect().await.unwrap();
    let refused = leases.lease("a").ttl(long.ttl).try_acquire().await;
    let invalid = matches!(
        refused,
        Err(AcquireError::Invalid(InvalidRequest::Ttl { .. }))
    );
    assert!(invalid, "{refused:?}");
    let lease = leases.lease("a").acquire().await.unwrap();
    let left = lease.renew_for(long.ttl).await.unwrap();
    let (shortest, most) = (Duration::from_secs(50), Duration::from_mins(1));
    assert!((shortest..most).contains(&left), "{left:?}");
}
