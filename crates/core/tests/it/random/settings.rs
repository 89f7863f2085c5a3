//! The settings of a run: small budgets, so that they matter.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use soldonce_core::{Adjacency, Deadline, LatePayment, OnPaymentFailure, Policy, Span, Timestamp};

use crate::world::{START, policy};

/// Draws the policy from a seed of its own: a setting that is added changes nothing else that runs draw.
pub(super) fn rules() -> impl Strategy<Value = Policy> {
    any::<[u8; 32]>().no_shrink().prop_map(|seed| {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        settings().new_tree(&mut runner).unwrap().current()
    })
}

/// Names every field: a new one does not compile before its values are chosen.
fn settings() -> impl Strategy<Value = Policy> {
    let late = proptest::sample::select(vec![
        LatePayment::IfStillFree,
        LatePayment::IfStillFree,
        LatePayment::Refund,
        LatePayment::Refuse,
    ]);
    let adjacency = proptest::sample::select(vec![Adjacency::None, Adjacency::NoOrphan]);
    let bought = prop_oneof![2 => Just(None), 1 => (3..9_u32).prop_map(Some)];
    let closes = prop_oneof![3 => Just(None), 1 => (1..900_000_i64).prop_map(Some)];
    let keeps = any::<bool>();
    let cap = proptest::sample::select(vec![60_000, 90_000, 180_000]);
    let at = |ms| Deadline::At(Timestamp::from_ms(START.ms() + ms));
    (late, adjacency, bought, closes, keeps, cap).prop_map(
        move |(late, adjacency, bought, closes, keeps, cap)| Policy {
            hold_ttl: policy().hold_ttl,
            hold_max: Span::from_ms(cap),
            units_per_hold_max: 4,
            units_per_holder_max: 5,
            units_bought_per_holder_max: bought,
            payment_window: policy().payment_window,
            retry_window: Span::from_ms(20_000),
            late_payment: late,
            on_payment_failure: if keeps {
                OnPaymentFailure::Keep
            } else {
                OnPaymentFailure::Release
            },
            adjacency,
            sale_opens_at: None,
            sale_closes_at: closes.map_or(Deadline::Never, at),
            cancel_until: closes.map_or(Deadline::Never, |ms| at(ms / 2)),
            listed: true,
        },
    )
}
