//! A wait ends within its limit and one call timeout, whatever the backend does at its end.

use soldonce_lease::{AcquireError, Wait};

use super::steered::{Asking, Manner, Scene};
use super::{is_pending, ms, soon, until};

const LIMIT: Wait = Wait::UpTo(ms(100));

async fn wait_for(scene: &Scene, name: &str, wait: Wait) -> Asking {
    let mut asking: Asking = Box::pin(scene.locks.lease(name).acquire(wait));
    assert!(is_pending(&mut asking).await);
    asking
}

#[tokio::test]
async fn nobody_listens_for_longer_than_he_waits() {
    let scene = Scene::start(Manner::Deaf).await;
    let held = scene.locks.lease("a").try_acquire().await.unwrap();
    let asking = wait_for(&scene, "a", LIMIT).await;
    until(|| {
        scene
            .steered
            .deaf_ears
            .load(std::sync::atomic::Ordering::SeqCst)
            == 1
    })
    .await;
    scene.clock.advance(ms(100));
    let error = soon(asking).await.unwrap_err();
    let AcquireError::TimedOut { attempts, last, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((attempts, last.conflicts.len()), (1, 1));
    assert!(held.live_token().is_ok());
}
