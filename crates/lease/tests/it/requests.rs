//! Requests to a backend, and what must come of them.

use std::time::Duration;

use soldonce_lease::backend::{
    Acquire, Backend, Durability, Names, Release, ReleaseReply, Renew, RenewReply,
};
use soldonce_lease::{FencingToken, Owner};

/// A request without a cap, a floor, a place in the queue and a label.
pub(crate) fn ask(names: Names, owner: Owner, ttl: Duration) -> Acquire {
    Acquire {
        names,
        owner,
        ttl,
        cap: None,
        floor: None,
        waiter: None,
        fair: false,
        meta: String::new(),
        durability: Durability::Primary,
    }
}

#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) async fn granted(backend: &dyn Backend, ask: &Acquire) -> FencingToken {
    crate::conformance::granted(backend.acquire(ask).await).token
}

/// Renews for the ttl of the request.
pub(crate) async fn renew(backend: &dyn Backend, ask: &Acquire, token: FencingToken) -> RenewReply {
    let batch = [Renew {
        names: ask.names.clone(),
        owner: ask.owner,
        token,
        ttl: ask.ttl,
    }];
    let mut replies = backend.renew(&batch).await;
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}

pub(crate) async fn release(
    backend: &dyn Backend,
    ask: &Acquire,
    token: Option<FencingToken>,
) -> ReleaseReply {
    let batch = [Release {
        names: ask.names.clone(),
        owner: ask.owner,
        token,
        waiter: ask.waiter,
    }];
    let mut replies = backend.release(&batch).await;
    assert_eq!(replies.len(), 1);
    replies.remove(0)
}
