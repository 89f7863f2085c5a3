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
    lossy: Arc<Lossy>,
    says: BackendError,
}

/// A backend whose next answer is lost when that was asked for.
struct Lossy {
    right: Memory,
    lose: AtomicBool,
}

impl Lossy {
    fn is_lost(&self) -> bool {
        self.lose.swap(false, Ordering::SeqCst)
    }
}

impl Backend for Liar {
    fn facts(&self) -> Facts {
        self.lossy.right.facts()
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async move {
            let reply = self.lossy.right.acquire(command).await;
            if self.lossy.is_lost() {
                return AcquireReply::Failed(self.says.clone());
            }
            reply
        })
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(async move {
            let replies = self.lossy.right.renew(batch).await;
            if self.lossy.is_lost() {
                return vec![RenewReply::Failed(self.says.clone())];
            }
            replies
        })
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(async move {
            let replies = self.lossy.right.release(batch).await;
            if self.lossy.is_lost() {
                return vec![ReleaseReply::Failed(self.says.clone())];
            }
            replies
        })
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        self.lossy.right.inspect(group, name)
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        self.lossy.right.wake(names)
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        self.lossy.right.doctor()
    }
}

async fn unheard(says: BackendError) {
    let lossy = Arc::new(Lossy {
        right: Memory::new(Arc::new(ManualClock::at(0))),
        lose: false.into(),
    });
    let liar = Liar {
        lossy: lossy.clone(),
        says,
    };
    let lose = |_: &str| lossy.lose.store(true, Ordering::SeqCst);
    let grant = unknown::Unheard::Stays;
    unknown::b7_what_ran_unheard_is_unknown(&liar, &lossy.right, grant, lose).await;
}

#[tokio::test]
async fn catches_what_ran_and_is_said_not_to_have() {
    let text = || "the connection broke".to_owned();
    unheard(BackendError::Unknown(text())).await;
    caught(unheard(BackendError::NotSent(text()))).await;
    let (code, message) = (String::new(), text());
    caught(unheard(BackendError::Rejected { code, message })).await;
}
