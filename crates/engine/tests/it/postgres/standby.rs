//! A standby shows what was: no server decides from one, and no client is told what is there. A judge may
//! read it.

use std::sync::Arc;

use soldonce_clock::{Clock, SystemClock};
use soldonce_core::Rejection;
use soldonce_engine::ledger::Ledger;
use soldonce_engine::ledger::postgres::{
    DatabaseRole, OpenError, PostgresOptions, examine, migrate,
};
use soldonce_testkit::chaos::FaultProxy;
use soldonce_testkit::postgres::{Postgres, PostgresPair};
use soldonce_testkit::{PATIENCE, until};

use super::Servers;
use crate::ledgers::{Recorder, verified};

/// A database with tables but without a server, and the standby that follows it.
async fn with_standby() -> (Servers, Postgres) {
    let PostgresPair { primary, standby } = PostgresPair::start().unwrap();
    let servers = Servers::start_on(primary, 0).await;
    await_on(&standby, "SELECT count(*) > 0 FROM sequencer");
    (servers, standby)
}

/// Waits until the standby says yes.
fn await_on(standby: &Postgres, sql: &str) {
    let has_come = || standby.query(sql).is_ok_and(|answer| answer == "t");
    until("the standby has it", PATIENCE, has_come).unwrap();
}

impl Servers {
    fn at(&self, url: String) -> PostgresOptions {
        PostgresOptions {
            url,
            ..self.options.clone()
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_named_and_neither_opened_nor_migrated() {
    let (servers, standby) = with_standby().await;
    let options = servers.at(standby.url());
    let opened = servers.open(&options, Arc::new(Recorder::default()));
    let refused = opened.await.err();
    assert!(matches!(refused, Some(OpenError::Standby)), "{refused:?}");
    let refused = migrate(&options).await.err();
    assert!(matches!(refused, Some(OpenError::Standby)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_hosts_the_primary_is_taken() {
    let (mut servers, standby) = with_standby().await;
    let hosts = format!("{},{}", standby.address(), servers.database.address());
    let primary = servers.database.address().to_string();
    let options = servers.at(servers.database.url().replace(&primary, &hosts));
    let ledger = servers.one_more(&options).await;
    servers.ledgers.push(ledger);
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    assert_eq!(servers.judge(0, &event.id).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_moves_to_a_standby_gives_no_answers_from_there() {
    let (mut servers, standby) = with_standby().await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let ledger = servers.one_more(&servers.at(url)).await;
    servers.ledgers.push(ledger);
    let event = servers.event(|_| {}).await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    await_on(&standby, "SELECT count(*) = 1 FROM holds");
    proxy.retarget(standby.address());
    for n in 0..20 {
        let read = servers.ledgers[0].hold(hold.id).await;
        assert!(read.is_err(), "{n}: {read:?}");
        // What is there would refuse it as taken.
        let wish = servers.hold(0, &event, "bob", &["A-1"]).await;
        assert_eq!(wish, Err(Rejection::ReadOnly), "{n}");
    }
    proxy.retarget(servers.database.address());
    let limit = SystemClock.boot().plus(PATIENCE);
    let mut wish = servers.hold(0, &event, "bob", &["A-2"]).await;
    while matches!(wish, Err(Rejection::ReadOnly | Rejection::OutcomeUnknown)) {
        assert!(SystemClock.boot() < limit, "it goes on by itself");
        wish = servers.hold(0, &event, "bob", &["A-2"]).await;
    }
    wish.unwrap();
    let read = servers.ledgers[0].hold(hold.id).await.unwrap();
    assert_eq!(read, Some(hold));
    assert_eq!(servers.judge(0, &event.id).await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_can_be_verified_and_looked_at() {
    let (mut servers, standby) = with_standby().await;
    let ledger = servers.one_more(&servers.options).await;
    servers.ledgers.push(ledger);
    let event = servers.event(|_| {}).await;
    servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    await_on(&standby, "SELECT count(*) = 1 FROM holds");
    let options = servers.at(standby.url());
    verified(&options);
    let role = examine(&options).await.unwrap().role;
    assert_eq!(role, DatabaseRole::Standby);
}
