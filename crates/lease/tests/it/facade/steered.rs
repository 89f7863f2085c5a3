//! A backend that tests of acquires in one turn of the lease thread steer.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use soldonce_lease::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Memory, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeStream,
};
use soldonce_lease::test_kit::FaultyBackend;
use soldonce_lease::{AcquireError, BackendError, Lease, Leases, ManualClock, Name};
use soldonce_testkit::PATIENCE;

use super::{connect, is_pending, soon};

/// How the backend serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    AtOnce,
    /// At once, but a subscription is never acknowledged.
    Deaf,
}

/// A backend that stops the lease thread when it is told to, so that all that is asked meanwhile is
/// taken in one turn. It panics when it is asked for `bad`.
pub(super) struct Steered {
    right: Arc<dyn Backend>,
    manner: Manner,
    stop: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// Who waits in vain to listen.
    pub(super) deaf_ears: AtomicUsize,
}

fn refuse_bad(ask: &Acquire) {
    let is_bad = ask.names.as_slice().iter().any(|it| it.as_str() == "bad");
    assert!(!is_bad, "planted");
}

impl Backend for Steered {
    pass_on!(facts renew release doctor);

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        refuse_bad(command);
        self.right.acquire(command)
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
        match self.manner {
            Manner::Deaf => {
                self.deaf_ears.fetch_add(1, Ordering::SeqCst);
                Box::pin(std::future::pending())
            }
            Manner::AtOnce => self.right.wake(names),
        }
    }
}

pub(super) type Asking = Pin<Box<dyn Future<Output = Result<Option<Lease>, AcquireError>> + Send>>;

type Inspection = Pin<Box<dyn Future<Output = Result<(), BackendError>> + Send>>;

/// The lease thread stands still.
pub(super) struct Stopped {
    go: Sender<()>,
    inspection: Inspection,
}

impl Stopped {
    pub(super) async fn go_on(self) -> Result<(), BackendError> {
        self.go.send(()).unwrap();
        soon(self.inspection).await
    }
}

pub(super) struct Scene {
    pub(super) clock: ManualClock,
    pub(super) locks: Leases,
    pub(super) memory: Memory,
    pub(super) faulty: Arc<FaultyBackend>,
    pub(super) steered: Arc<Steered>,
}

impl Scene {
    pub(super) async fn start(manner: Manner) -> Self {
        Self::over(manner, |faulty| faulty).await
    }

    /// The same over a backend around the one that can fail.
    pub(super) async fn over(
        manner: Manner,
        around: impl FnOnce(Arc<FaultyBackend>) -> Arc<dyn Backend>,
    ) -> Self {
        let clock = ManualClock::at(1_000_000);
        let memory = Memory::new(Arc::new(clock.clone()));
        let faulty = FaultyBackend::around(Arc::new(memory.clone()), Arc::new(clock.clone()));
        let steered = Arc::new(Steered {
            right: around(faulty.clone()),
            manner,
            stop: Mutex::default(),
            deaf_ears: AtomicUsize::new(0),
        });
        Self {
            locks: connect(steered.clone(), &clock, |builder| builder).await,
            clock,
            memory,
            faulty,
            steered,
        }
    }

    /// Stops the lease thread: what is asked before it goes on is taken in one turn.
    pub(super) async fn stop(&self) -> Stopped {
        let (stopped, has_stopped) = channel();
        let (go, may_go) = channel();
        *self.steered.stop.lock().unwrap() = Some((stopped, may_go));
        let locks = self.locks.clone();
        let mut inspection: Inspection =
            Box::pin(async move { locks.lease("stop").inspect().await.map(drop) });
        assert!(is_pending(&mut inspection).await);
        has_stopped.recv_timeout(PATIENCE).unwrap();
        Stopped { go, inspection }
    }

    pub(super) async fn ask_now(&self, name: &str) -> Asking {
        let mut asking: Asking = Box::pin(self.locks.lease(name).try_acquire());
        assert!(is_pending(&mut asking).await);
        asking
    }

    /// Asks for these names in one turn of the lease thread.
    pub(super) async fn ask<const COUNT: usize>(&self, names: [&str; COUNT]) -> [Asking; COUNT] {
        let stopped = self.stop().await;
        let mut asking = Vec::new();
        for name in names {
            asking.push(self.ask_now(name).await);
        }
        stopped.go_on().await.unwrap();
        asking.try_into().ok().expect("as many")
    }

    /// A round trip: what the lease thread was at has been done.
    pub(super) async fn settle(&self) {
        self.locks.lease("nobody").inspect().await.unwrap();
    }

    pub(super) async fn holds(&self, name: &str) -> bool {
        let name = Name::new(name).unwrap();
        self.memory.inspect(None, &name).await.unwrap().is_some()
    }
}
