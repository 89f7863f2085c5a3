//! In which span a backend's events lie: a search by one acquire finds what was done for it.

use std::sync::Arc;

use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Names, Release, ReleaseReply,
    Renew, RenewReply, WakeStream,
};
use soldonce_lease::{BackendError, Name};

use super::soon;
use super::steered::{Manner, Scene};
use crate::trace_log::TraceLog;

/// Reports each acquire before and after a pause. `log` records the thread that examines it.
struct Talking {
    right: Arc<dyn Backend>,
    log: TraceLog,
}

fn report(ask: &Acquire) {
    tracing::info!(asked = %ask.names.routing_key().unwrap());
}

impl Backend for Talking {
    pass_on!(facts renew release inspect wake);

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async move {
            report(command);
            tokio::task::yield_now().await;
            report(command);
            self.right.acquire(command).await
        })
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        self.log.record_thread();
        self.right.doctor()
    }
}

/// Two acquires in one call of the facade, and two calls to the backend that really answers.
#[tokio::test]
async fn what_is_done_for_one_acquire_lies_in_its_span() {
    let log = TraceLog::default();
    let talking = |right| Talking {
        right,
        log: log.clone(),
    };
    let scene = Scene::over(Manner::AtOnce, |faulty| Arc::new(talking(faulty))).await;
    for asking in scene.ask(["a", "b"]).await {
        drop(soon(asking).await.expect("granted"));
    }
    let (a, b) = (log.events_with("asked=a"), log.events_with("asked=b"));
    assert_eq!((a.len(), b.len()), (2, 2));
    for own in [&a, &b] {
        assert_eq!(own[0], own[1], "one acquire, one span");
        assert_eq!(own[0].within, "lease.acquire backend=\"memory\"");
    }
    assert_ne!(a[0].span, b[0].span, "the neighbour's span");
}
