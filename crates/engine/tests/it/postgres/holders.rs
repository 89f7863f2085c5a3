//! Holders whose rows a server does not remember, because they hold and have bought nothing.

use soldonce_core::{Command, Event, Hold, Rejection, Span, TtlMax};
use soldonce_engine::ledger::Ledger;
use soldonce_testkit::{PATIENCE, until};

use super::Servers;
use super::turns::Other;
use crate::ledgers::{booked, cancel, confirm, held, on};

impl Servers {
    async fn release(&self, server: usize, hold: &Hold) {
        let released = self.ask(server, Command::Release { on: on(hold) }).await;
        released.unwrap();
    }

    /// Holds, buys and gives back, so that a row is left.
    async fn buy_and_cancel(&self, server: usize, event: &Event, who: &str, booking: u128) {
        let hold = self.hold(server, event, who, &["A-5"]).await.unwrap();
        let sold = self.ask(server, confirm(&hold, booking)).await;
        let booking = booked(sold).unwrap();
        booked(self.ask(server, cancel(booking.id)).await).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_who_comes_again_is_served_and_counted() {
    let mut servers = Servers::start(1).await;
    let event = servers
        .event(|policy| {
            policy.units_per_holder_max = 2;
            policy.units_bought_per_holder_max = Some(2);
        })
        .await;
    let hold = servers.hold(0, &event, "ann", &["A-1"]).await.unwrap();
    servers.release(0, &hold).await;
    servers.buy_and_cancel(0, &event, "bob", 1).await;
    // A server that starts reads no row of those who have nothing.
    let second = servers.one_more(&servers.options).await;
    servers.ledgers.push(second);
    let ann = servers.hold(1, &event, "ann", &["A-1"]).await.unwrap();
    servers.buy_and_cancel(1, &event, "bob", 2).await;
    let bob = servers.hold(0, &event, "bob", &["B-1"]).await.unwrap();
    // What they hold counts at either server.
    for (server, who, seats) in [(0, "ann", ["A-3", "A-4"]), (1, "bob", ["B-3", "B-4"])] {
        let refused = servers.hold(server, &event, who, &seats).await;
        let is_budget = matches!(refused, Err(Rejection::BudgetExceeded { used: 1, .. }));
        assert!(is_budget, "{refused:?}");
    }
    servers.release(0, &ann).await;
    servers.release(1, &bob).await;
    servers.judge(0, &event.id).await;
}

/// A server that has not heard of it takes the hold to be over, and its holder to have nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_another_server_extended_counts() {
    let servers = Servers::start(2).await;
    let event = servers
        .event(|policy| {
            policy.units_per_holder_max = 2;
            policy.hold_ttl = Span::from_ms(60_000);
        })
        .await;
    // Else the other server would read the hold again for its feed.
    let turn = "BEGIN; SELECT FROM sequencer FOR UPDATE";
    let holds_the_feed_up = Other::run(&servers.database.url(), turn).await;
    let seats = ["A-1", "A-2"];
    let hold = servers.hold(0, &event, "ann", &seats).await.unwrap();
    let known = servers.hold(1, &event, "ann", &["B-1"]).await;
    assert!(matches!(known, Err(Rejection::BudgetExceeded { .. })));
    let extend = Command::Extend {
        on: on(&hold),
        ttl: Some(Span::from_ms(600_000)),
        ttl_max: TtlMax::HoldMax,
    };
    held(servers.ask(0, extend).await).unwrap();
    // A minute passes at once.
    let step = "UPDATE clock SET at = at + 61000";
    servers.database.query(step).unwrap();
    let is_over = || servers.ledgers[1].now().ms() > hold.expires_at.ms();
    until("the first end is past", PATIENCE, is_over).unwrap();
    let refused = servers.hold(1, &event, "ann", &["B-1", "B-2"]).await;
    let is_counted = matches!(refused, Err(Rejection::BudgetExceeded { used: 2, .. }));
    assert!(is_counted, "{refused:?}");
    holds_the_feed_up.leave().await;
    servers.judge(0, &event.id).await;
}
