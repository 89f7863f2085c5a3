//! B7: what is said of a command whose answer did not come. `Unknown` whenever it may have run;
//! `NotSent` and `Rejected` only when it certainly did not.

use std::time::Duration;

use soldonce_lease::BackendError;
#[cfg(any(feature = "postgres", feature = "redis"))]
use soldonce_lease::FencingToken;
use soldonce_lease::backend::{Acquire, AcquireReply, Backend, ReleaseReply, RenewReply};

use super::{granted, name, one, owner};
use crate::requests::{self, release, renew};

/// Long: what a slow machine does to a test must not end a grant.
const TTL: Duration = Duration::from_mins(1);

fn ask(text: &str, n: u64) -> Acquire {
    requests::ask(one(text), owner(n), TTL)
}

/// The error of a command that must not have been answered.
#[track_caller]
fn failure(reply: AcquireReply) -> BackendError {
    match reply {
        AcquireReply::Failed(error) => error,
        other => panic!("answered: {other:?}"),
    }
}

#[track_caller]
fn is_unknown(error: &BackendError) {
    let unknown = matches!(error, BackendError::Unknown(_));
    assert!(unknown, "it ran, and is said to be: {error:?}");
}

/// What becomes of a grant that was not heard of, before the caller hears that it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unheard {
    /// It stays, for the caller to ask again or to release.
    Stays,
    /// The backend itself has given it back, as far as it could.
    #[cfg(all(feature = "redlock", feature = "test-kit"))]
    IsWithdrawn,
}

/// `lose(text)` lets the next command that names `text` run, and its answer never come. `witness`
/// sees the same server another way.
pub(crate) async fn b7_what_ran_unheard_is_unknown(
    backend: &dyn Backend,
    witness: &dyn Backend,
    grant: Unheard,
    lose: impl Fn(&str),
) {
    let holder = async |text: &str| witness.inspect(None, &name(text)).await.unwrap();
    // The connections, what is prepared on them, and the names' epochs are there already.
    for text in ["unheard-grant", "unheard-life", "unheard-end"] {
        let first = ask(text, 1);
        let mine = granted(backend.acquire(&first).await).token;
        let renewed = renew(backend, &first, mine).await;
        assert!(matches!(renewed, RenewReply::Renewed { .. }), "{renewed:?}");
        let released = release(backend, &first, Some(mine)).await;
        assert_eq!(released, ReleaseReply::Released);
    }
    lose("unheard-grant");
    let asked = ask("unheard-grant", 2);
    let error = failure(backend.acquire(&asked).await);
    let held = holder("unheard-grant").await;
    let stays = (grant == Unheard::Stays).then(|| owner(2));
    assert_eq!(held.map(|held| held.owner), stays, "{error}");
    is_unknown(&error);

    let asked = ask("unheard-life", 3);
    let mine = granted(backend.acquire(&asked).await).token;
    lose("unheard-life");
    match renew(backend, &asked, mine).await {
        RenewReply::Failed(error) => is_unknown(&error),
        other => panic!("answered: {other:?}"),
    }

    let asked = ask("unheard-end", 4);
    let mine = granted(backend.acquire(&asked).await).token;
    lose("unheard-end");
    let reply = release(backend, &asked, Some(mine)).await;
    assert_eq!(holder("unheard-end").await, None, "it ran: {reply:?}");
    match reply {
        ReleaseReply::Failed(error) => is_unknown(&error),
        other => panic!("answered: {other:?}"),
    }
}

/// The server of `backend` refuses what it is asked, of which `witness` sees nothing done.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) async fn b7_what_is_rejected_did_not_run(
    backend: &dyn Backend,
    witness: &dyn Backend,
    code: &str,
) {
    match failure(backend.acquire(&ask("refused", 1)).await) {
        BackendError::Rejected { code: said, .. } => assert_eq!(said, code),
        other => panic!("a refusal of the server is said to be: {other:?}"),
    }
    let held = witness.inspect(None, &name("refused")).await;
    assert_eq!(held, Ok(None));
}

/// No server listens where `backend` was told to connect.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) async fn b7_what_found_nobody_is_not_sent(backend: &dyn Backend) {
    let not_sent = |error: &BackendError| {
        let told = matches!(error, BackendError::NotSent(_));
        assert!(told, "nobody was there, and it is said to be: {error:?}");
    };
    let asked = ask("nobody", 1);
    not_sent(&failure(backend.acquire(&asked).await));
    let token = FencingToken::from_parts(0, 1).unwrap();
    match renew(backend, &asked, token).await {
        RenewReply::Failed(error) => not_sent(&error),
        other => panic!("answered: {other:?}"),
    }
    match release(backend, &asked, Some(token)).await {
        ReleaseReply::Failed(error) => not_sent(&error),
        other => panic!("answered: {other:?}"),
    }
}
