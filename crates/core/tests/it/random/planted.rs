//! Planted bugs: with each of them switched on, one of the same random runs must break the promise that
//! the bug is about, whatever else breaks before.

use std::cell::RefCell;
use std::collections::BTreeSet;

use proptest::test_runner::{Config, TestError, TestRunner};
use soldonce_core::Planted;

use super::go;
use super::ops::ops;
use super::play::start;
use super::settings::rules;
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
            // The run that was found is enough.
            max_shrink_iters: 0,
            ..cases(400)
        };
        let others = RefCell::new(BTreeSet::new());
        let outcome = TestRunner::new(config).run(&(rules(), ops(120)), |(policy, ops)| {
            let mut play = start(&policy);
            play.world.inventory.plant(bug);
            match go(play, &ops) {
                Err(fault) if fault.to_string().contains(promise(bug)) => Err(fault),
                Err(other) => {
                    others.borrow_mut().insert(other.to_string());
                    Ok(())
                }
                Ok(_) => Ok(()),
            }
        });
        match outcome {
            Err(TestError::Fail(..)) => {}
            Ok(()) => missed.push(format!("{bug:?} was taken for {others:?}")),
            Err(TestError::Abort(reason)) => missed.push(format!("{bug:?}: {reason}")),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}
