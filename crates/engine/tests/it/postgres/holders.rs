//! Holders whose rows a server does not remember, because they hold and have bought nothing.

use soldonce_core::{Authority, BookingId, Command, Event, Hold, LineChoice, Rejection};

use super::Servers;
use crate::ledgers::{booked, on};

impl Servers {
    async fn release(&self, server: usize, hold: &Hold) {
        let released = self.ask(server, Command::Release { on: on(hold) }).await;
        released.unwrap();
    }

    /// Holds, buys and gives back, so that a row is left.
    async fn buy_and_cancel(&self, server: usize, event: &Event, who: &str, booking: u128) {
        let hold = self.hold(server, event, who, &["A-5"]).await.unwrap();
        let confirm = Command::Confirm {
            on: on(&hold),
            booking: BookingId::from_bits(booking),
            reference: None,
        };
        let booking = booked(self.ask(server, confirm).await).unwrap();
        let cancel = Command::Cancel {
            booking: booking.id,
            by: Authority::Staff,
            lines: LineChoice::All,
        };
        booked(self.ask(server, cancel).await).unwrap();
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
