//! A backend that asks for each acquire of a batch with a call of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use soldonce_lease::backend::{
    Acquire, AcquireReply, Answers, Backend, Durability, Facts, Finding, Fut, Holder, Memory,
    Names, Release, ReleaseReply, Renew, RenewReply, WakeStream,
};
use soldonce_lease::{BackendError, Name, SystemClock};
use tokio::sync::Notify;

use super::steered::{Manner, Scene};
use super::{is_pending, secs, soon, until};
use crate::conformance::owner;

/// Keeps each acquire until it is told to let it go, and knows how many are under way.
struct Slow {
    right: Arc<dyn Backend>,
    under_way: AtomicUsize,
    doors: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Slow {
    fn around(right: Arc<dyn Backend>) -> Arc<Self> {
        Arc::new(Self {
            right,
            under_way: AtomicUsize::new(0),
            doors: Mutex::default(),
        })
    }

    fn door(&self, name: &str) -> Arc<Notify> {
        let mut doors = self.doors.lock().unwrap();
        Arc::clone(doors.entry(name.to_owned()).or_default())
    }

    fn under_way(&self) -> usize {
        self.under_way.load(Ordering::SeqCst)
    }
}

struct UnderWay<'a>(&'a Slow);

impl<'a> UnderWay<'a> {
    fn on(slow: &'a Slow) -> Self {
        slow.under_way.fetch_add(1, Ordering::SeqCst);
        Self(slow)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backend for Slow {
    pass_on!(facts renew release inspect wake doctor);

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(async move {
            let under_way = UnderWay::on(self);
            let name = command.names.home().unwrap();
            self.door(name.as_str()).notified().await;
            let reply = self.right.acquire(command).await;
            drop(under_way);
            reply
        })
    }
}

/// Counts how often each place is looked at.
struct Looks(Mutex<Vec<usize>>);

impl Looks {
    fn look(&self, index: usize) {
        self.0.lock().unwrap()[index] += 1;
    }

    fn take(&self) -> Vec<usize> {
        let mut looks = self.0.lock().unwrap();
        let none = vec![0; looks.len()];
        std::mem::replace(&mut *looks, none)
    }
}

impl Answers for Looks {
    fn is_awaited(&self, index: usize) -> bool {
        self.look(index);
        true
    }

    fn poll_gone(&self, index: usize, _: &mut Context<'_>) -> Poll<()> {
        self.look(index);
        Poll::Pending
    }

    fn answer(&self, index: usize, _: AcquireReply) {
        self.look(index);
    }

    fn give_back(&self, index: usize) {
        self.look(index);
    }
}

pub(super) fn ask(index: usize) -> Acquire {
    Acquire {
        names: Names::one(Name::new(&format!("n-{index}")).unwrap()),
        owner: owner(u64::try_from(index).unwrap()),
        ttl: secs(10),
        cap: None,
        floor: None,
        waiter: None,
        fair: false,
        meta: Arc::from(""),
        durability: Durability::Primary,
    }
}

#[tokio::test]
async fn a_wake_up_of_one_touches_no_other() {
    const ASKED: usize = 100;
    let slow = Slow::around(Arc::new(Memory::new(Arc::new(SystemClock))));
    let looks = Arc::new(Looks(Mutex::new(vec![0; ASKED])));
    let batch = (0..ASKED).map(ask).collect();
    let mut call = slow.acquire_each(batch, looks.clone());
    assert!(is_pending(&mut call).await);
    assert_eq!(
        looks.take(),
        [1; ASKED],
        "each is begun, and looked at once"
    );
    slow.door("n-42").notify_one();
    assert!(is_pending(&mut call).await);
    let touched = looks.take();
    // Once to see whether it is awaited, once for its answer.
    assert_eq!((touched[42], touched.iter().sum()), (2, 2));
    assert!(is_pending(&mut call).await);
    assert_eq!(looks.take(), [0; ASKED], "nobody was woken");
    for index in (0..ASKED).filter(|index| *index != 42) {
        slow.door(&format!("n-{index}")).notify_one();
    }
    soon(call).await;
}

#[tokio::test]
async fn who_goes_away_takes_his_own_call_along() {
    let mut slow = None;
    let scene = Scene::over(Manner::AtOnce, |faulty| {
        slow.insert(Slow::around(faulty)).clone()
    });
    let scene = scene.await;
    let slow = slow.unwrap();
    let [gone, mut stays] = scene.ask(["gone", "stays"]).await;
    until(|| slow.under_way() == 2).await;
    drop(gone);
    until(|| slow.under_way() == 1).await;
    assert!(is_pending(&mut stays).await);
    slow.door("stays").notify_one();
    assert!(soon(stays).await.is_ok());
    scene.assert_together(2);
}
