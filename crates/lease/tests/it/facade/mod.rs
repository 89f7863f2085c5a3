//! The facade in virtual time over the memory backend, with every fault. Names of tests are those
//! of `lease.md` 10 where a complaint stands behind them.

mod acquire;
mod cancel;
mod elsewhere;
mod end;
mod guard;
mod loss;
mod overtime;
mod panicked;
mod permits;
mod renewal;
mod run;
mod spans;
mod steered;
mod together;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::{Backend, Memory};
use soldonce_lease::test_kit::FaultyBackend;
use soldonce_lease::{
    Builder, Clock, LeaseRef, Leases, LostReason, ManualClock, Name, Notice, NoticeStream, Request,
    RunError, SystemClock,
};
use soldonce_testkit::PATIENCE;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What remains of a grant of ten seconds right after its send: two milliseconds and a hundredth
/// are the margin (LT3).
pub(super) const TEN_LESS_MARGIN: Duration = ms(9_898);

/// What remains of such a grant `span` later.
pub(super) fn ten_less(span: Duration) -> Duration {
    TEN_LESS_MARGIN.saturating_sub(span)
}

/// One process, its clock, and a server with its own.
pub(super) struct World {
    pub(super) clock: ManualClock,
    pub(super) server: ManualClock,
    pub(super) memory: Memory,
    pub(super) faulty: Arc<FaultyBackend>,
    pub(super) locks: Leases,
}

impl World {
    pub(super) async fn start() -> Self {
        Self::with(|builder| builder).await
    }

    pub(super) async fn with(set: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = ManualClock::at(1_000_000);
        let server = ManualClock::at(0);
        let memory = Memory::new(Arc::new(server.clone()));
        let faulty = FaultyBackend::around(Arc::new(memory.clone()), Arc::new(clock.clone()));
        let locks = connect(faulty.clone(), &clock, set).await;
        Self {
            clock,
            server,
            memory,
            faulty,
            locks,
        }
    }

    /// Another process on the same server, without faults.
    pub(super) async fn other(&self) -> Leases {
        let memory = Arc::new(self.memory.clone());
        connect(memory, &self.clock, |builder| builder).await
    }

    /// Lets time pass everywhere at once, as if the process had been stopped meanwhile.
    pub(super) fn jump(&self, span: Duration) {
        self.server.advance(span);
        self.clock.advance(span);
    }

    /// Lets time pass in small steps, each long enough for the lease thread to do what is due.
    pub(super) async fn pass(&self, span: Duration) {
        let step = ms(25);
        let mut left = span;
        while !left.is_zero() {
            let now = left.min(step);
            left = left.saturating_sub(now);
            self.jump(now);
            self.settle().await;
        }
    }

    /// Polls once, or lets `span` pass if there is no answer yet.
    pub(super) async fn poll_or_pass<F: Future + Unpin>(
        &self,
        future: &mut F,
        span: Duration,
    ) -> Option<F::Output> {
        let once = std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx))
        });
        match once.await {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => {
                self.pass(span).await;
                None
            }
        }
    }

    /// Lets time pass until the future has an answer.
    pub(super) async fn drive<F: Future + Unpin>(&self, mut future: F) -> F::Output {
        loop {
            if let Some(output) = self.poll_or_pass(&mut future, ms(20)).await {
                return output;
            }
        }
    }

    /// Two round trips: what was due before the first has been answered after the second.
    pub(super) async fn settle(&self) {
        for _ in 0..2 {
            self.locks.lease("nobody").inspect().await.unwrap();
        }
    }

    /// Whether the server has a holder for `name`.
    pub(super) async fn holds(&self, name: &str) -> bool {
        let name = Name::new(name).unwrap();
        self.memory.inspect(None, &name).await.unwrap().is_some()
    }
}

async fn connect(
    backend: Arc<dyn Backend>,
    clock: &ManualClock,
    set: impl FnOnce(Builder) -> Builder,
) -> Leases {
    let builder = Leases::backend(backend)
        .clock(Arc::new(clock.clone()))
        .seed(7);
    set(builder).connect().await.unwrap()
}

/// Waits until `done`, at most a minute of real time.
#[track_caller]
pub(super) fn until(done: impl Fn() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let clock = SystemClock;
        let end = clock.boot().plus(PATIENCE);
        while !done() {
            assert!(clock.boot() < end, "waited in vain at {place}");
            clock.sleep_until(clock.boot().plus(ms(1))).await;
        }
    }
}

/// Fails if `future` takes more than a minute of real time.
#[track_caller]
pub(super) fn soon<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move {
        let done = tokio::time::timeout(PATIENCE, future).await;
        done.unwrap_or_else(|_| panic!("waited in vain at {place}"))
    }
}

/// Acquires, and works under the lease.
pub(super) async fn run_under<T, E, Fut: Future<Output = Result<T, E>>>(
    request: Request,
    body: impl FnOnce(LeaseRef) -> Fut,
) -> Result<T, RunError<T, E>> {
    request.acquire().await.unwrap().run(body).await
}

/// The same, with a grace after a loss.
pub(super) async fn run_graced<T, E, Fut: Future<Output = Result<T, E>>>(
    request: Request,
    grace: Duration,
    body: impl FnOnce(LeaseRef) -> Fut,
) -> Result<T, RunError<T, E>> {
    let lease = request.acquire().await.unwrap();
    lease.run_cooperative(grace, body).await
}

/// What `run` returns after a loss.
pub(super) fn lost<T, E>(
    reason: LostReason,
    output: Option<Result<T, E>>,
) -> Result<T, RunError<T, E>> {
    Err(RunError::Lost { reason, output })
}

/// Polls once, and answers whether the future is still pending.
pub(super) async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| {
        let poll = std::pin::Pin::new(&mut *future).poll(cx);
        std::task::Poll::Ready(poll.is_pending())
    })
    .await
}

/// All notices that there are.
pub(super) fn drain(notices: &mut NoticeStream) -> Vec<Arc<Notice>> {
    std::iter::from_fn(|| notices.try_next()).collect()
}
