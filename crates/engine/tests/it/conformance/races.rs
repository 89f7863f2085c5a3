//! Many at once.

use std::sync::Arc;

use soldonce_core::{Budget, Rejection};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::ledgers::{HALL, TestLedger, held, units_given_once};

/// What came of so many tasks that hold at the same time; task `n` wants the seats of `wish(n)`.
async fn race(
    test: TestLedger,
    tasks: usize,
    wish: impl Fn(usize) -> (String, Vec<&'static str>),
) -> (Arc<TestLedger>, Vec<Result<soldonce_core::Hold, Rejection>>) {
    let event = test
        .event_on(HALL, |policy| policy.units_per_holder_max = 4)
        .await;
    let (test, barrier) = (Arc::new(test), Arc::new(Barrier::new(tasks)));
    let mut all = JoinSet::new();
    for n in 0..tasks {
        let (who, seats) = wish(n);
        let command = test.hold_command(&event, &who, &seats);
        let (test, barrier) = (Arc::clone(&test), Arc::clone(&barrier));
        all.spawn(async move {
            barrier.wait().await;
            held(test.ask(command).await)
        });
    }
    let answers = all.join_all().await;
    (test, answers)
}

pub(super) async fn every_seat_has_one_winner(test: TestLedger) {
    let seats = ["A-1", "A-2", "B-3"];
    let wish = |n: usize| (format!("buyer-{n}"), vec![seats[n % seats.len()]]);
    let (_test, answers) = race(test, 50, wish).await;
    let winners: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().ok())
        .collect();
    assert_eq!(winners.len(), 3);
    for answer in &answers {
        match answer {
            Ok(hold) => assert_eq!(hold.units.len(), 1),
            Err(Rejection::UnitUnavailable(why)) => assert_eq!(why.conflicts.len(), 1),
            Err(other) => panic!("{other:?}"),
        }
    }
}

pub(super) async fn overlapping_holds_leave_no_half(test: TestLedger) {
    let ring = ["A-1", "A-2", "A-3", "A-4", "A-5", "B-1"];
    let wish = |n: usize| {
        let pair = vec![ring[n % ring.len()], ring[(n + 1) % ring.len()]];
        (format!("buyer-{n}"), pair)
    };
    let (_test, answers) = race(test, 60, wish).await;
    let count = units_given_once(&answers);
    assert!((2..=3).contains(&(count / 2)), "{count}");
}

pub(super) async fn budgets_hold_in_a_race(test: TestLedger) {
    let seats = [
        "A-1", "A-2", "A-3", "A-4", "A-5", "B-1", "B-2", "B-3", "B-4", "B-5",
    ];
    let wish = |n: usize| ("ann".to_owned(), vec![seats[n]]);
    let (_test, answers) = race(test, seats.len(), wish).await;
    let granted = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(granted, 4);
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert_eq!(
            *refused,
            Rejection::BudgetExceeded {
                budget: Budget::Held,
                limit: 4,
                used: 4
            }
        );
    }
}
