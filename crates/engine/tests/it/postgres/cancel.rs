//! An event is called off while others hold: no hold outlives it, whichever server stored it when.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Command, Event, Hold, HoldState, NewHold, Rejection, Span, Text, TtlMax};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::chaos::{Fault, FaultProxy};
use soldonce_testkit::{PATIENCE, until};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Servers;
use crate::ledgers::{held, on, transaction};

fn call_off(event: &Event) -> Command {
    Command::CancelEvent {
        event: event.no,
        reason: Text::parse("rain").unwrap(),
    }
}

impl Servers {
    /// Nothing of a cancelled event is held, as the database and every server have it.
    async fn nothing_is_held(&self, event: &Event, holds: &[Hold]) {
        let live = "SELECT (SELECT count(*) FROM holds WHERE state IN (0, 1)), \
                    (SELECT count(*) FROM units WHERE state = 1), \
                    (SELECT count(*) FROM events WHERE cancelled IS NULL)";
        assert_eq!(self.database.query(live).unwrap(), "0|0|0");
        for (server, ledger) in self.ledgers.iter().enumerate() {
            for hold in holds {
                let found = ledger.hold(hold.id).await.unwrap().unwrap();
                let is_revoked = matches!(found.state, HoldState::Revoked(_));
                assert!(is_revoked, "server {server}: {found:?}");
                let extend = Command::Extend {
                    on: on(hold),
                    ttl: None,
                    ttl_max: TtlMax::HoldMax,
                };
                let refused = held(self.ask(server, extend).await).unwrap_err();
                assert!(matches!(refused, Rejection::HoldRevoked(_)), "{refused:?}");
            }
            let refused = self.hold(server, event, "zoe", &["A-1"]).await;
            assert_eq!(refused, Err(Rejection::NotOnSale { opens_at: None }));
        }
        self.judge(0, &event.id).await;
    }
}

/// A hold at another server is stored after the cancelling one has read, and before it writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hold_outlives_a_cancellation_that_it_comes_between() {
    let mut servers = Servers::start(1).await;
    let proxy = FaultProxy::to(servers.database.address()).unwrap();
    let url = proxy.url(&servers.database.url(), servers.database.address());
    let options = servers.unprepared_at(url);
    let cancelling = servers.one_more(&options).await;
    servers.ledgers.push(cancelling);
    let event = servers.event(|_| {}).await;
    let first = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    // What it reads is old when it decides.
    proxy.next_with("-- behind", Fault::Delay(Duration::from_millis(300)));
    let mut asked = JoinSet::new();
    let (ledger, command) = (Arc::clone(&servers.ledgers[1]), call_off(&event));
    asked.spawn(async move { ledger.transact(transaction(command, None)).await });
    until("the cancellation reads", PATIENCE, || proxy.to_come() == 0).unwrap();
    let between = servers.hold(0, &event, "bob", &["B-1"]).await;
    asked.join_next().await.unwrap().unwrap().unwrap();
    let refused = Err(Rejection::NotOnSale { opens_at: None });
    assert!(between.is_ok() || between == refused, "{between:?}");
    let holds: Vec<Hold> = [first].into_iter().chain(between).collect();
    servers.nothing_is_held(&event, &holds).await;
}

/// The ledger's clock as it is, 400 ms later in the statement that stores, as if that had so much to compare.
const SLOW: &str = "CREATE SEQUENCE tries; CREATE OR REPLACE FUNCTION ledger_clock(
    machine bigint DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF current_query() LIKE '%store_batch%' THEN
        PERFORM pg_sleep(0.4), nextval('tries');
        machine := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    END IF;
    RETURN (SELECT greatest(machine, (machine + meet) / 2) FROM clock);
END $$";

/// To end the holds of a large hall takes longer than clocks may differ, and meanwhile some of them end: the
/// cancellation is decided so far ahead that none does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_that_takes_long_is_stored_while_holds_end() {
    let servers = Servers::start(1).await;
    let event = servers.event(|_| {}).await;
    let seats = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2"];
    let mut first_end = None;
    for (ttl, seat) in (1_000..).step_by(300).zip(seats) {
        let Command::Hold(wish) = servers.wish(&event, seat, &[seat]) else {
            unreachable!("a wish is a hold");
        };
        let ttl = Some(Span::from_ms(ttl));
        let hold = Command::Hold(NewHold { ttl, ..wish });
        let hold = held(servers.ask(0, hold).await).unwrap();
        first_end = first_end.or(Some(hold.expires_at.ms()));
    }
    let lasting = servers.hold(0, &event, "zed", &["B-3"]).await.unwrap();
    let near = format!("SELECT ledger_clock() > {} - 200", first_end.unwrap());
    let is_near = || servers.database.query(&near).unwrap() == "t";
    until("the first end is near", PATIENCE, is_near).unwrap();
    servers.database.query(SLOW).unwrap();
    servers.ask(0, call_off(&event)).await.unwrap();
    let tries = "SELECT last_value FROM tries";
    let tries: u32 = servers.database.query(tries).unwrap().parse().unwrap();
    assert!(tries <= 4, "{tries}");
    let found = servers.ledgers[0].hold(lasting.id).await.unwrap().unwrap();
    assert!(matches!(found.state, HoldState::Revoked(_)), "{found:?}");
    // It was decided ahead of the clock, and others go on by the clock.
    let as_before = SLOW
        .replace("CREATE SEQUENCE tries; ", "")
        .replace("pg_sleep(0.4)", "pg_sleep(0)");
    servers.database.query(&as_before).unwrap();
    let other = servers.event_named("othello").await;
    servers.hold(0, &other, "ann", &["A-1"]).await.unwrap();
    servers.judge(0, &event.id).await;
}

/// Buyers at both servers want a seat each, and meanwhile one of the servers calls the event off.
async fn night(servers: &Arc<Servers>, round: usize) {
    let event = servers.event_named(&format!("night-{round}")).await;
    let seats = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3"];
    let barrier = Arc::new(Barrier::new(seats.len() + 1));
    let mut buyers = JoinSet::new();
    for (n, seat) in seats.into_iter().enumerate() {
        let (servers, event) = (Arc::clone(servers), Arc::clone(&event));
        let barrier = Arc::clone(&barrier);
        buyers.spawn(async move {
            barrier.wait().await;
            let who = format!("buyer-{n}");
            servers.hold(n % 2, &event, &who, &[seat]).await
        });
    }
    barrier.wait().await;
    servers.ask(round % 2, call_off(&event)).await.unwrap();
    let (held, refused): (Vec<_>, Vec<_>) =
        buyers.join_all().await.into_iter().partition(Result::is_ok);
    for answer in refused {
        assert_eq!(answer, Err(Rejection::NotOnSale { opens_at: None }));
    }
    let holds: Vec<Hold> = held.into_iter().flatten().collect();
    servers.nothing_is_held(&event, &holds).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_race_with_a_cancellation_at_two_servers() {
    let servers = Arc::new(Servers::start(2).await);
    for round in 0..10 {
        night(&servers, round).await;
    }
}
