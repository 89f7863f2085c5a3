//! First tries that go in one call: what befalls one of them is not its neighbours' affair.

use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use soldonce_lease::backend::{
    Acquire, AcquireReply, Answers, Backend, Durability, Facts, Finding, Fut, Holder, Memory,
    Names, Release, ReleaseReply, Renew, RenewReply, WakeStream,
};
use soldonce_lease::test_kit::{Fault, FaultyBackend, Op};
use soldonce_lease::{
    AcquireError, BackendError, Lease, Locks, ManualClock, Name, ReleaseOutcome, Wait,
};

use super::planted::caught;
use super::{connect, is_pending, ms, secs, soon, until};

/// How a call for several acquires is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    AtOnce,
    /// Wrong: whoever is late holds up all behind him.
    OneAfterTheOther,
    /// Not at all; what was asked is kept for as long as the backend lives.
    Never,
}

/// A backend that stops the lease thread when it is told to, so that all that is asked meanwhile is
/// taken in one turn. It panics when it is asked for `bad`.
struct Steered {
    right: Arc<FaultyBackend>,
    manner: Manner,
    stop: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// How many acquires each call had.
    sizes: Mutex<Vec<usize>>,
    kept: Mutex<Vec<Arc<dyn Answers>>>,
}

fn refuse_bad(asked: &[Acquire]) {
    let is_bad = |ask: &Acquire| ask.names.as_slice().iter().any(|it| it.as_str() == "bad");
    assert!(!asked.iter().any(is_bad), "planted");
}

impl Backend for Steered {
    fn facts(&self) -> Facts {
        self.right.facts()
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        refuse_bad(std::slice::from_ref(command));
        self.right.acquire(command)
    }

    fn acquire_each(&self, batch: Vec<Acquire>, to: Arc<dyn Answers>) -> Fut<'_, ()> {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.push(batch.len());
        drop(sizes);
        refuse_bad(&batch);
        match self.manner {
            Manner::AtOnce => self.right.acquire_each(batch, to),
            Manner::OneAfterTheOther => Box::pin(async move {
                for (index, command) in batch.iter().enumerate() {
                    to.answer(index, self.right.acquire(command).await);
                }
            }),
            Manner::Never => {
                let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push(to);
                Box::pin(std::future::pending())
            }
        }
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        self.right.renew(batch)
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        self.right.release(batch)
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stopped, go)) = stop.as_ref()
            && name.as_str() == "stop"
        {
            stopped.send(()).unwrap();
            go.recv().unwrap();
        }
        drop(stop);
        self.right.inspect(group, name)
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        self.right.wake(names)
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        self.right.doctor()
    }
}

type Asking = Pin<Box<dyn Future<Output = Result<Lease, AcquireError>> + Send>>;

type Told = Pin<Box<dyn Future<Output = Result<(), BackendError>> + Send>>;

/// The lease thread stands still.
struct Stopped {
    go: Sender<()>,
    told: Told,
}

impl Stopped {
    async fn go_on(self) -> Result<(), BackendError> {
        self.go.send(()).unwrap();
        soon(self.told).await
    }
}

struct Scene {
    locks: Locks,
    memory: Memory,
    faulty: Arc<FaultyBackend>,
    steered: Arc<Steered>,
}

impl Scene {
    async fn start(manner: Manner) -> Self {
        let clock = ManualClock::at(1_000_000);
        let memory = Memory::new(Arc::new(clock.clone()));
        let faulty = FaultyBackend::around(Arc::new(memory.clone()), Arc::new(clock.clone()));
        let steered = Arc::new(Steered {
            right: faulty.clone(),
            manner,
            stop: Mutex::default(),
            sizes: Mutex::default(),
            kept: Mutex::default(),
        });
        Self {
            locks: connect(steered.clone(), &clock, |builder| builder).await,
            memory,
            faulty,
            steered,
        }
    }

    /// Stops the lease thread: what is asked before it goes on is taken in one turn.
    async fn stop(&self) -> Stopped {
        let (stopped, has_stopped) = channel();
        let (go, may_go) = channel();
        *self.steered.stop.lock().unwrap() = Some((stopped, may_go));
        let locks = self.locks.clone();
        let mut told: Told = Box::pin(async move {
            let stop = Name::new("stop").unwrap();
            locks.inspect(&stop).await.map(drop)
        });
        assert!(is_pending(&mut told).await);
        has_stopped.recv_timeout(secs(10)).unwrap();
        Stopped { go, told }
    }

    async fn ask_now(&self, name: &str) -> Asking {
        let mut asking: Asking = Box::pin(self.locks.lease(name).acquire(Wait::No));
        assert!(is_pending(&mut asking).await);
        asking
    }

    /// Asks for these names in one turn of the lease thread.
    async fn ask<const COUNT: usize>(&self, names: [&str; COUNT]) -> [Asking; COUNT] {
        let stopped = self.stop().await;
        let mut asking = Vec::new();
        for name in names {
            asking.push(self.ask_now(name).await);
        }
        stopped.go_on().await.unwrap();
        asking.try_into().ok().expect("as many")
    }

    fn assert_together(&self, count: usize) {
        let sizes = self.steered.sizes.lock().unwrap();
        assert_eq!(*sizes, [count], "not in one call");
    }

    async fn holds(&self, name: &str) -> bool {
        let name = Name::new(name).unwrap();
        self.memory.inspect(None, &name).await.unwrap().is_some()
    }
}

async fn late_neighbour(manner: Manner) {
    let scene = Scene::start(manner).await;
    // No time passes, so this answer never comes.
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let [mut late, quick] = scene.ask(["late", "quick"]).await;
    let quick = soon(quick).await.expect("granted");
    assert!(is_pending(&mut late).await);
    scene.assert_together(2);
    assert_eq!(quick.release().await, Ok(ReleaseOutcome::Released));
}

#[tokio::test]
async fn a_late_answer_holds_up_no_neighbour() {
    late_neighbour(Manner::AtOnce).await;
}

#[tokio::test]
async fn catches_a_backend_that_serves_one_after_the_other() {
    caught(late_neighbour(Manner::OneAfterTheOther)).await;
}

#[tokio::test]
async fn a_panic_takes_no_neighbour_along() {
    let scene = Scene::start(Manner::AtOnce).await;
    let [bad, good] = scene.ask(["bad", "good"]).await;
    let good = soon(good).await.expect("granted");
    assert_eq!(soon(bad).await.unwrap_err(), AcquireError::Closed);
    scene.assert_together(2);
    assert_eq!(good.release().await, Ok(ReleaseOutcome::Released));
    assert!(!scene.holds("good").await);
}

#[tokio::test]
async fn who_goes_away_takes_no_neighbour_along() {
    let scene = Scene::start(Manner::AtOnce).await;
    // Both commands ran, and the first caller goes before his answer comes.
    scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    let [gone, stays] = scene.ask(["gone", "stays"]).await;
    let stays = soon(stays).await.expect("granted");
    assert!(scene.holds("gone").await);
    drop(gone);
    until(|| scene.locks.stats().orphans == 1).await;
    assert!(!scene.holds("gone").await);
    scene.assert_together(2);
    assert!(stays.live_token().is_ok());
}

#[tokio::test]
async fn shutdown_cuts_off_tries_and_gives_back_what_they_took() {
    let scene = Scene::start(Manner::AtOnce).await;
    for _ in 0..2 {
        scene.faulty.next(Op::Acquire, Fault::DelayReply(ms(400)));
    }
    let asking = scene.ask(["a", "b"]).await;
    until(|| scene.faulty.calls(Op::Acquire) == 2).await;
    assert!(scene.holds("a").await && scene.holds("b").await);
    let drained = soon(scene.locks.clone().shutdown(secs(1))).await;
    for one in asking {
        assert_eq!(soon(one).await.unwrap_err(), AcquireError::Closed);
    }
    assert!(!scene.holds("a").await && !scene.holds("b").await);
    // The second delete of each is due after half the ttl, which nobody waits for.
    assert_eq!((drained.released, drained.left_to_ttl), (2, 2));
}

#[tokio::test]
async fn a_backend_that_keeps_what_it_was_asked_keeps_nobody_waiting() {
    let scene = Scene::start(Manner::Never).await;
    let asking = scene.ask(["a", "b"]).await;
    until(|| !scene.steered.kept.lock().unwrap().is_empty()).await;
    let Scene { locks, steered, .. } = scene;
    soon(locks.shutdown(ms(0))).await;
    for one in asking {
        assert_eq!(soon(one).await.unwrap_err(), AcquireError::Closed);
    }
    // Nor does anything keep the backend.
    let backend = Arc::downgrade(&steered);
    drop(steered);
    assert_eq!(backend.strong_count(), 0);
}

#[tokio::test]
async fn what_is_asked_with_the_end_is_not_served() {
    let scene = Scene::start(Manner::AtOnce).await;
    let stopped = scene.stop().await;
    let mut ending = Box::pin(scene.locks.clone().shutdown(secs(1)));
    assert!(is_pending(&mut ending).await);
    let alone = scene.locks.lease("alone").durability(Durability::Replicas {
        n: 1,
        within: ms(10),
    });
    let mut alone: Asking = Box::pin(alone.acquire(Wait::No));
    assert!(is_pending(&mut alone).await);
    let plain = scene.ask_now("plain").await;
    stopped.go_on().await.ok();
    for late in [alone, plain] {
        assert_eq!(soon(late).await.unwrap_err(), AcquireError::Closed);
    }
    let drained = soon(ending).await;
    assert_eq!((drained.released, drained.left_to_ttl), (0, 0));
    assert_eq!(scene.faulty.calls(Op::Acquire), 0);
}
