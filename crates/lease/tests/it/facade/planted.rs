//! Bugs of the facade, planted: the tests that forbid them must fail.

use soldonce_lease::test_kit::Planted;

use super::World;

pub(super) async fn caught(test: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(test);
    let outcome = tasks.join_next().await.expect("one task");
    let error = outcome.expect_err("the planted bug was not caught");
    assert!(error.is_panic(), "{error}");
}

#[tokio::test]
async fn catches_a_deadline_from_the_reply() {
    caught(async {
        let world = World::planted(Planted::DeadlineFromReply).await;
        let lease = world.locks.lease("a").try_acquire().await.unwrap();
        super::renewal::deadline_counts_from_the_send(&world, &lease).await;
    })
    .await;
}

#[tokio::test]
async fn catches_a_release_in_the_cancelled_context() {
    caught(async {
        let world = World::planted(Planted::CancelledRelease).await;
        super::cancel::cancel_once_sent_leaves_nothing(&world).await;
    })
    .await;
}
