//! The doctor sees what endangers leases, and says what to do.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
use soldonce_lease::backend::{Backend, BackendContext, Fencing, Finding, Verdict};
use soldonce_lease::{BootTime, Clock, SleepFuture, SystemClock};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::redis::{Redis, RedisPair};

use super::site::{Numbers, Site, anchored, connect, settings};

fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("{check} is not in {findings:#?}"))
}

fn assert_all(findings: &[Finding], expected: &[(&str, Verdict)]) {
    for (check, verdict) in expected {
        let finding = of(findings, check);
        assert_eq!(finding.verdict, *verdict, "{finding:?}");
        let fixed = finding.fix.is_empty() == (finding.verdict == Verdict::Ok);
        assert!(fixed, "what is not ok names the fix: {finding:?}");
    }
}

/// Settings on this clock, with time for an answer.
fn settings_on(clock: impl Clock) -> BackendContext {
    let mut settings = settings();
    settings.call_timeout = PATIENCE;
    settings.clock = Arc::new(clock);
    settings
}

#[tokio::test]
async fn a_server_as_it_should_be_is_ok() {
    let redis = Redis::options().appendonly().start().unwrap();
    let mut settings = settings_on(SystemClock);
    settings.fencing = Fencing::Source(Numbers::from(1));
    let backend = connect(&redis, settings).await;
    let expected = [
        ("server version", Verdict::Ok),
        ("tokens can be minted", Verdict::Ok),
        ("role is primary", Verdict::Ok),
        ("eviction", Verdict::Ok),
        ("leases survive a restart", Verdict::Ok),
        ("a primary without replicas stops", Verdict::Ok),
        ("clock offset", Verdict::Ok),
        ("epochs left", Verdict::Ok),
    ];
    assert_all(&backend.doctor().await, &expected);
}

#[tokio::test]
async fn careless_settings_are_found() {
    let careless = Redis::options()
        .line("maxmemory 100mb")
        .line("maxmemory-policy allkeys-lru");
    let site = Site::on(careless.start().unwrap()).await;
    let expected = [
        ("eviction", Verdict::Fail),
        ("leases survive a restart", Verdict::Warn),
    ];
    assert_all(&site.backend.doctor().await, &expected);
    let pair = RedisPair::start().unwrap();
    let on_replica = anchored(&pair.replica, &Numbers::from(1)).await;
    assert_all(
        &on_replica.doctor().await,
        &[("role is primary", Verdict::Fail)],
    );
    let on_primary = anchored(&pair.primary, &Numbers::from(1)).await;
    let lonely = [("a primary without replicas stops", Verdict::Warn)];
    assert_all(&on_primary.doctor().await, &lonely);
}

#[tokio::test]
async fn what_the_server_hides_is_not_verifiable() {
    let users = "user default on nopass ~* &* +@all -config\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let backend = RedisBackend::connect(&redis.url().into(), settings())
        .await
        .unwrap();
    let expected = [
        ("eviction", Verdict::Ok),
        ("leases survive a restart", Verdict::NotVerifiable),
    ];
    assert_all(&backend.doctor().await, &expected);
}

#[tokio::test]
async fn a_server_that_hides_what_tokens_need_is_found_where_tokens_are_wanted() {
    let users = "user default on nopass ~* &* +@all -info\n";
    let redis = Redis::options().acl(users).start().unwrap();
    let mut plain = settings();
    plain.fencing = Fencing::Off;
    let fenced = connect(&redis, settings()).await.doctor().await;
    assert_all(&fenced, &[("tokens can be minted", Verdict::Fail)]);
    let plain = connect(&redis, plain).await.doctor().await;
    assert_all(&plain, &[("server settings", Verdict::NotVerifiable)]);
    assert!(plain.iter().all(|found| found.verdict != Verdict::Fail));
}

const HOUR_MS: i64 = 3_600_000;

/// The machine's clocks, its wall clock an hour ahead.
struct Ahead;

impl Clock for Ahead {
    fn wall_ms(&self) -> i64 {
        SystemClock.wall_ms() + HOUR_MS
    }

    fn boot(&self) -> BootTime {
        SystemClock.boot()
    }

    fn sleep_until(&self, until: BootTime) -> SleepFuture<'_> {
        SystemClock.sleep_until(until)
    }
}

/// How far the clocks are apart, and how wrong that may be, in milliseconds.
fn offset_ms(finding: &Finding) -> (i64, i64) {
    let words: Vec<&str> = finding.found.split(' ').collect();
    let [offset, "ms,", "give", "or", "take", error, "ms"] = words[..] else {
        panic!("{finding:?}");
    };
    (offset.parse().unwrap(), error.parse().unwrap())
}

#[tokio::test]
async fn clocks_that_differ_are_told_and_those_of_one_machine_do_not() {
    let redis = Redis::start().unwrap();
    let same = connect(&redis, settings_on(SystemClock)).await;
    let same = same.doctor().await;
    let (offset, error) = offset_ms(of(&same, "clock offset"));
    assert!(offset <= error, "{same:#?}");
    let findings = connect(&redis, settings_on(Ahead)).await.doctor().await;
    assert_all(&findings, &[("clock offset", Verdict::Warn)]);
    let (offset, error) = offset_ms(of(&findings, "clock offset"));
    assert!((offset - HOUR_MS).abs() <= error, "{findings:#?}");
}

/// The server read its clock as soon as it was asked: half of the round trip is more than clocks may differ by.
#[tokio::test]
async fn an_answer_that_took_long_is_no_difference_of_clocks() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::to(redis.address()).unwrap();
    let url = proxy.url(&redis.url(), redis.address());
    let backend = RedisBackend::connect(&url.into(), settings_on(SystemClock)).await;
    proxy.next_with("TIME", Fault::Delay(Duration::from_millis(2_500)));
    let findings = backend.unwrap().doctor().await;
    assert_eq!(proxy.to_come(), 0, "the clock was not asked for");
    assert_all(&findings, &[("clock offset", Verdict::Ok)]);
}
