//! The doctor sees what endangers leases, and says what to do.

use soldonce_lease::backend::postgres::PgConfig;
use soldonce_lease::backend::{Backend, Finding, Verdict};
use soldonce_lease::{Clock, SystemClock};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::postgres::{PgBouncer, Postgres as Server, PostgresPair};

use super::{backend, config, migrated, server};

fn of<'a>(findings: &'a [Finding], check: &str) -> &'a Finding {
    let found = findings.iter().find(|finding| finding.check == check);
    found.unwrap_or_else(|| panic!("{check} is not in {findings:#?}"))
}

#[tokio::test]
async fn a_server_as_it_should_be_is_all_ok() {
    let server = Server::options().durable().start().unwrap();
    migrated(&config(&server)).await.unwrap();
    let backend = backend(config(&server));
    let mut findings = backend.doctor().await;
    // A machine that runs other tests may answer slowly for a while.
    let end = SystemClock.boot().plus(PATIENCE);
    while of(&findings, "round trip").verdict != Verdict::Ok && SystemClock.boot() < end {
        findings = backend.doctor().await;
    }
    let bad = findings
        .iter()
        .filter(|finding| finding.verdict != Verdict::Ok);
    assert_eq!(bad.collect::<Vec<_>>(), Vec::<&Finding>::new());
    assert_eq!(of(&findings, "pooling").found, "direct connection");
}

#[tokio::test]
async fn every_finding_that_is_not_ok_names_the_mend() {
    let careless = Server::options()
        .line("synchronous_commit = off")
        .line("default_transaction_isolation = 'repeatable read'");
    let server = careless.start().unwrap();
    let findings = backend(config(&server)).doctor().await;
    for (check, verdict) in [
        ("commits are durable", Verdict::Fail),
        ("isolation level", Verdict::Warn),
        ("lease tables", Verdict::Fail),
        ("role is primary", Verdict::Ok),
    ] {
        let finding = of(&findings, check);
        assert_eq!(finding.verdict, verdict, "{finding:?}");
        assert_eq!(
            finding.fix.is_empty(),
            verdict == Verdict::Ok,
            "{finding:?}"
        );
    }
    migrated(&config(&server)).await.unwrap();
    let insert = "INSERT INTO soldonce_lease_epoch VALUES ('app', 2000000)";
    server.query(insert).unwrap();
    let findings = backend(config(&server)).doctor().await;
    assert_eq!(of(&findings, "epochs left").verdict, Verdict::Warn);
}

#[tokio::test]
async fn a_pool_is_seen_and_matters_only_to_notify() {
    let server = server().await;
    let pool = PgBouncer::start(&server, 2).unwrap();
    let config = PgConfig::url(&pool.url_of("postgres")).unwrap();
    let findings = backend(config.clone()).doctor().await;
    let pooling = of(&findings, "pooling");
    assert_eq!(pooling.verdict, Verdict::Ok);
    assert!(pooling.found.contains("pool"), "{pooling:?}");
    let findings = backend(config.notify()).doctor().await;
    assert_eq!(of(&findings, "pooling").verdict, Verdict::Fail);
}

#[tokio::test]
async fn standbys_are_seen_from_both_sides() {
    let pair = PostgresPair::start().unwrap();
    let findings = backend(config(&pair.primary)).doctor().await;
    assert_eq!(
        of(&findings, "standbys are synchronous").verdict,
        Verdict::Warn
    );
    let findings = backend(config(&pair.standby)).doctor().await;
    assert_eq!(of(&findings, "role is primary").verdict, Verdict::Fail);
}

#[tokio::test]
async fn a_server_that_is_gone_is_one_finding() {
    let mut server = server().await;
    server.kill().unwrap();
    let findings = backend(config(&server)).doctor().await;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].verdict, Verdict::Fail);
}
