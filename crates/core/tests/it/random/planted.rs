//! Planted bugs: with each of them switched on, the same random runs must soon break, and what breaks
//! must be the promise that the bug is about.

use proptest::test_runner::{Config, TestError, TestRunner};
use soldonce_core::Planted;

use super::go;
use super::ops::{ops, rules};
use super::play::start;
use crate::fixed::cases;

/// The promise that a bug breaks.
fn promise(bug: Planted) -> &'static str {
    match bug {
        Planted::ExpiryBoundary | Planted::ConfirmIgnoresExpiry => "I4",
        Planted::BlindRelease => "I7",
        Planted::PartialHold | Planted::TakeoverPartial => "I5",
        Planted::ExtendWithoutCap => "I8",
        Planted::SkippedFence => "I6",
        Planted::BudgetIgnored => "I9",
        Planted::TakesHeld => "I2",
        Planted::ClockGoesBack => "I21",
        Planted::CaptureBeforeSale
        | Planted::RefundTwice
        | Planted::EventTwice
        | Planted::EventBackwards
        | Planted::LateMoneyDropped
        | Planted::CreditTwice => "I16",
    }
}

#[test]
fn every_planted_bug_is_caught() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let config = Config {
            // The first fault is the one that counts; a smaller run may break elsewhere.
            max_shrink_iters: 0,
            ..cases(400)
        };
        let outcome = TestRunner::new(config).run(&(rules(), ops(120)), |(policy, ops)| {
            let mut play = start(&policy);
            play.world.inventory.plant(bug);
            go(play, &ops).map(|_| ())
        });
        match outcome {
            Ok(()) => missed.push(format!("{bug:?} was not caught")),
            Err(TestError::Fail(reason, _)) if reason.message().contains(promise(bug)) => {}
            Err(TestError::Fail(reason, _)) => {
                missed.push(format!("{bug:?} was taken for {}", reason.message()));
            }
            Err(TestError::Abort(reason)) => missed.push(format!("{bug:?}: {reason}")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
