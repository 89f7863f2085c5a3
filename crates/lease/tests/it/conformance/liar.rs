//! The law of unheard commands must see a backend that makes a guess of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Memory, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeStream,
};
use soldonce_lease::{BackendError, ManualClock, Name};

use super::planted::caught;
use super::unknown;

/// A backend on a lossy network that says of every failure what it likes to believe.
struct Liar {
    right: Memory,
    /// Whether the next answer is lost.
    lose: AtomicBool,
    says: BackendError,
}

impl Liar {
    fn is_lost(&self) -> bool {
        self.lose.swap(false, Ordering::SeqCst)
    }
}

impl Backend for Liar {
    pass_on!(facts inspect wake doctor);

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async move {
            let reply = self.right.acquire(command).await;
            if self.is_lost() {
                return AcquireReply::Failed(self.says.clone());
            }
            reply
        })
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let replies = self.right.renew(batch).await;
            if self.is_lost() {
                return vec![RenewReply::Failed(self.says.clone())];
            }
            replies
        })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(async move {
            let replies = self.right.release(batch).await;
            if self.is_lost() {
                return vec![ReleaseReply::Failed(self.says.clone())];
            }
            replies
        })
    }
}

async fn unheard(says: BackendError) {
    let liar = Liar {
        right: Memory::new(Arc::new(ManualClock::at(0))),
        lose: false.into(),
        says,
    };
    let lose = |_: &str| liar.lose.store(true, Ordering::SeqCst);
    let grant = unknown::Unheard::Stays;
    unknown::b7_what_ran_unheard_is_unknown(&liar, &liar.right, grant, lose).await;
}

#[tokio::test]
async fn catches_what_ran_and_is_said_not_to_have() {
    let text = || "the connection broke".to_owned();
    unheard(BackendError::Unknown(text())).await;
    caught(unheard(BackendError::NotSent(text()))).await;
    let (code, message) = (String::new(), text());
    caught(unheard(BackendError::Rejected { code, message })).await;
}
