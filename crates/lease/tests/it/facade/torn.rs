//! A call for several acquires to a backend that fails: each meets its own fault, and whatever
//! arrives is still one call.

use std::sync::Arc;

use soldonce_lease::BackendError;
use soldonce_lease::backend::{Acquire, AcquireReply};
use soldonce_lease::test_kit::{Fault, FaultyBackend, Op};

use super::each::ask;
use super::steered::{Manner, Scene};
use super::{ms, soon};
use crate::conformance::together::{Told, together};

#[tokio::test]
async fn each_of_a_batch_meets_its_own_fault_and_the_rest_is_one_call() {
    let scene = Scene::start(Manner::AtOnce).await;
    // The faults lie before the backend that counts its calls.
    let clock = Arc::new(scene.clock.clone());
    let torn = FaultyBackend::around(scene.steered.clone(), clock);
    let faults = [
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::NotSent,
        Fault::Buffer,
        Fault::Double,
        Fault::DelayReply(ms(0)),
    ];
    for fault in faults {
        torn.next(Op::Acquire, fault);
    }
    let batch: Vec<Acquire> = (0..=faults.len()).map(ask).collect();
    let told = soon(together(&*torn, &batch)).await;
    let failed = |at: usize| match &told[at] {
        Told::Answer(AcquireReply::Failed(error)) => error.clone(),
        other => panic!("{at}: {other:?}"),
    };
    let again = |at: usize| match &told[at] {
        Told::Answer(AcquireReply::Granted { again, .. }) => *again,
        other => panic!("{at}: {other:?}"),
    };
    for at in [0, 1, 3] {
        assert!(matches!(failed(at), BackendError::Unknown(_)), "{at}");
    }
    assert!(matches!(failed(2), BackendError::NotSent(_)));
    assert!(again(4) && !again(5) && !again(6));
    assert_eq!(torn.calls(Op::Acquire), batch.len());
    scene.assert_together(4);
    assert!(!scene.holds("n-0").await && scene.holds("n-1").await);
    assert!(!scene.holds("n-2").await && !scene.holds("n-3").await);
    torn.deliver().await;
    assert!(scene.holds("n-3").await);
}
