//! Several servers at once: exactly one winner, at any of them.

use std::sync::Arc;
use std::time::Duration;

use soldonce_core::{Adjacency, Command, Hold, Rejection};
use soldonce_engine::ledger::{Done, Ledger};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::Servers;
use crate::ledgers::{expect_taken, held, key, on, transaction, units_given_once};

/// What came of so many buyers that hold at the same time, spread over all servers; buyer `n` wants
/// the seats of `wish(n)`.
pub(super) async fn race(
    servers: &Servers,
    event: &soldonce_core::Event,
    buyers: usize,
    wish: impl Fn(usize) -> (String, Vec<&'static str>),
) -> Vec<Result<Hold, Rejection>> {
    let barrier = Arc::new(Barrier::new(buyers));
    let mut all = JoinSet::new();
    for n in 0..buyers {
        let (who, seats) = wish(n);
        let command = servers.wish(event, &who, &seats);
        let ledger = Arc::clone(&servers.ledgers[n % servers.ledgers.len()]);
        let barrier = Arc::clone(&barrier);
        all.spawn(async move {
            barrier.wait().await;
            held(ledger.transact(transaction(command, None)).await)
        });
    }
    all.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_seat_has_one_winner_over_three_servers() {
    let servers = Servers::start(3).await;
    let event = servers.event(|_| {}).await;
    let seats = ["A-1", "A-2", "B-3"];
    let answers = race(&servers, &event, 60, |n| {
        // Not by the number of servers: each seat is wanted at each of them.
        (format!("buyer-{n}"), vec![seats[n / 3 % 3]])
    })
    .await;
    let winners = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(winners, 3);
    for answer in &answers {
        match answer {
            Ok(_) => {}
            Err(Rejection::UnitUnavailable(why)) => assert_eq!(why.conflicts.len(), 1),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(servers.judge(1, &event.id).await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_in_opposite_orders_neither_overlap_nor_lock_each_other() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let ring = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1"];
    let answers = race(&servers, &event, 60, |n| {
        let mut pair = vec![ring[n % 6], ring[(n + 1) % 6], ring[(n + 2) % 6]];
        if n % 2 == 0 {
            pair.reverse();
        }
        (format!("buyer-{n}"), pair)
    })
    .await;
    let count = units_given_once(&answers);
    assert!((1..=2).contains(&(count / 3)), "{count}");
    servers.judge(0, &event.id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_over_all_servers() {
    // A race is lost by luck now and then.
    for _ in 0..10 {
        let servers = Servers::start(2).await;
        let event = servers
            .event(|policy| policy.units_per_holder_max = 4)
            .await;
        let seats = [
            "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
        ];
        let answers = race(&servers, &event, 10, |n| ("ann".to_owned(), vec![seats[n]])).await;
        let winners = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(winners, 4);
        let over = |answer: &Result<Hold, Rejection>| {
            matches!(
                answer,
                Err(Rejection::BudgetExceeded {
                    limit: 4,
                    used: 4,
                    ..
                })
            )
        };
        assert_eq!(answers.iter().filter(|answer| over(answer)).count(), 6);
    }
}

const ROW: &str = r#"{"format":"grid","rows":1,"seats_per_row":10,"category":"Standard"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adjacency_rule_holds_over_the_result_of_all_servers() {
    for _ in 0..10 {
        let servers = Servers::start(2).await;
        let event = servers
            .event_on(ROW, |policy| policy.adjacency = Adjacency::NoOrphan)
            .await;
        // Each is fine alone; both leave the seat between them single.
        let wishes = [vec!["A-3", "A-4"], vec!["A-6", "A-7"]];
        let answers = race(&servers, &event, 2, |n| {
            (format!("buyer-{n}"), wishes[n].clone())
        })
        .await;
        let refused = |answer: &Result<Hold, Rejection>| {
            matches!(answer, Err(Rejection::AdjacencyRefused(_)))
        };
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers.iter().filter(|answer| refused(answer)).count(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_has_one_effect_over_all_servers() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    let mut all = JoinSet::new();
    for n in 0..20 {
        let command = servers.wish(&event, "ann", &["A-1", "A-2"]);
        let ledger = Arc::clone(&servers.ledgers[n % 2]);
        let asked = transaction(command, Some(key(1, 1)));
        all.spawn(async move { ledger.transact(asked).await });
    }
    let (mut fresh, mut replies) = (Vec::new(), Vec::new());
    for answer in all.join_all().await {
        match answer {
            Ok(Done::Fresh { answer, .. }) => fresh.push(answer),
            Ok(Done::Replayed(reply)) => replies.push(reply),
            Err(rejection) => panic!("{rejection:?}"),
        }
    }
    assert_eq!((fresh.len(), replies.len()), (1, 19));
    assert!(replies.iter().all(|reply| *reply == replies[0]));
    let other = servers.wish(&event, "bob", &["B-1"]);
    let reused = servers.ask_as(1, other, key(1, 2)).await;
    assert!(matches!(reused, Err(Rejection::IdempotencyKeyReused)));
    assert_eq!(servers.judge(0, &event.id).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_server_was_told_is_true_on_the_next() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    for n in 0..30 {
        let (one, other) = (n % 2, (n + 1) % 2);
        let hold = servers.hold(one, &event, "ann", &["A-1"]).await.unwrap();
        let refused = servers.hold(other, &event, "bob", &["A-1"]).await;
        expect_taken(&refused);
        let release = soldonce_core::Command::Release { on: on(&hold) };
        held(servers.ask(other, release).await).unwrap();
    }
    assert_eq!(servers.judge(1, &event.id).await, 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_goes_away_leaves_nothing_half_done() {
    let servers = Servers::start(2).await;
    let event = servers.event(|_| {}).await;
    for server in 0..servers.ledgers.len() {
        let command = servers.wish(&event, "ann", &["B-1", "B-2"]);
        let asked = servers.ledgers[server].transact(transaction(command, None));
        // Polled once, so it is on its way.
        drop(tokio::time::timeout(Duration::ZERO, asked).await);
        let hold = servers.hold(server, &event, "ann", &["B-1", "B-2"]).await;
        let release = Command::Release {
            on: on(&hold.unwrap()),
        };
        servers.ask(server, release).await.unwrap();
    }
    servers.judge(0, &event.id).await;
}
