//! A private server, a backend on it, and short words for what tests ask of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use soldonce_lease::backend::redis::RedisBackend;
#[cfg(feature = "cluster")]
use soldonce_lease::backend::redis::RedisConfig;
use soldonce_lease::backend::{
    Acquire, Backend, BackendContext, Fencing, Fut, Names, ReleaseReply, RenewReply, Waiter,
};
use soldonce_lease::limits::WAITER_ALIVE;
use soldonce_lease::{
    BackendError, Clock, FenceError, FenceKind, FenceSource, FencingToken, ManualClock, Namespace,
    Owner, SeededEntropy, SystemClock,
};
use soldonce_testkit::redis::Redis;
#[cfg(feature = "cluster")]
use soldonce_testkit::redis::RedisCluster;

use crate::awake::Slow;
use crate::{conformance, requests};

pub(super) use crate::conformance::{group, name, one};

/// Long: a machine that stalls ends no lease.
pub(super) const TTL: Duration = Duration::from_mins(1);

/// By a clock that is slow or stands: a machine that stalls must not look like a server that does not answer.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest a test waits for something that should come to pass.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Site {
    pub(super) redis: Redis,
    pub(super) backend: RedisBackend,
}

impl Site {
    /// A server, and a backend with epochs.
    pub(super) async fn start() -> Self {
        Self::on(Redis::start().unwrap()).await
    }

    pub(super) async fn on(redis: Redis) -> Self {
        let backend = anchored(&redis, &Numbers::from(1)).await;
        Self { redis, backend }
    }
}

pub(super) fn settings() -> BackendContext {
    let mut settings = BackendContext::new(Namespace::new("app").unwrap());
    settings.call_timeout = CALL_TIMEOUT;
    settings.clock = Arc::new(Slow);
    #[cfg(all(feature = "test-kit", debug_assertions))]
    crate::planting::plant(&mut settings);
    settings
}

/// The same for a cluster, whose driver has time-outs by the machine's clock.
#[cfg(feature = "cluster")]
pub(super) fn settings_of_cluster() -> BackendContext {
    let mut settings = settings();
    settings.call_timeout = soldonce_testkit::PATIENCE;
    settings
}

pub(super) async fn anchored(redis: &Redis, epochs: &Arc<Numbers>) -> RedisBackend {
    let mut settings = settings();
    settings.fencing = Fencing::Source(Arc::clone(epochs) as Arc<dyn FenceSource>);
    connect(redis, settings).await
}

pub(super) async fn connect(redis: &Redis, settings: BackendContext) -> RedisBackend {
    let url = redis.url();
    RedisBackend::connect(&url.into(), settings).await.unwrap()
}

/// An epoch source that counts.
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    pub(super) fn from(next: u32) -> Arc<Self> {
        Arc::new(Self(AtomicU32::new(next)))
    }

    pub(super) fn given(&self) -> u32 {
        self.0.load(Ordering::SeqCst) - 1
    }
}

impl FenceSource for Numbers {
    fn next<'a>(
        &'a self,
        _: FenceKind,
        _: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        let least = u32::try_from(above).unwrap() + 1;
        self.0.fetch_max(least, Ordering::SeqCst);
        let given = self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(given.into())))
    }
}

pub(super) fn owner() -> Owner {
    static DRAWN: AtomicU64 = AtomicU64::new(1);
    Owner::draw(&SeededEntropy::new(DRAWN.fetch_add(1, Ordering::Relaxed)))
}

/// A request of a new owner.
pub(super) fn ask(names: Names) -> Acquire {
    requests::ask(names, owner(), TTL)
}

/// The same, with a place in the queue.
pub(super) fn ask_fair(names: Names, waiter: u64) -> Acquire {
    Acquire {
        waiter: Some(Waiter(waiter)),
        fair: true,
        ..ask(names)
    }
}

pub(super) async fn granted(backend: &RedisBackend, ask: &Acquire) -> FencingToken {
    requests::granted(backend, ask).await
}

/// The names in conflict.
pub(super) async fn refused(backend: &RedisBackend, ask: &Acquire) -> Vec<String> {
    let refusal = conformance::refused(backend.acquire(ask).await);
    let conflicts = refusal.conflicts.iter();
    conflicts
        .map(|conflict| conflict.name.to_string())
        .collect()
}

pub(super) async fn renew(
    backend: &RedisBackend,
    ask: &Acquire,
    token: FencingToken,
    ttl: Duration,
) -> RenewReply {
    let ask = Acquire { ttl, ..ask.clone() };
    requests::renew(backend, &ask, token).await
}

pub(super) async fn release(
    backend: &RedisBackend,
    ask: &Acquire,
    token: Option<FencingToken>,
) -> ReleaseReply {
    requests::release(backend, ask, token).await
}

/// The code with which the server refused.
pub(super) fn code(error: &BackendError) -> &str {
    match error {
        BackendError::Rejected { code, .. } => code,
        other => panic!("rejected, but {other:?}"),
    }
}

/// What becomes of a call to a server that does not answer: its clock moves on, step by step.
pub(super) async fn timed_out<T>(
    (clock, step): (&ManualClock, Duration),
    call: impl Future<Output = T>,
) -> T {
    let mut call = std::pin::pin!(call);
    for _ in 0..1_000 {
        // By then it is sent.
        let sent = SystemClock.boot().plus(Duration::from_millis(10));
        tokio::select! {
            biased;
            reply = &mut call => return reply,
            () = SystemClock.sleep_until(sent) => clock.advance(step),
        }
    }
    panic!("no end after 1,000 times {step:?}");
}

/// Plays a scene with waiters, who are alive for three seconds. If the machine stood still meanwhile, its answers show
/// nothing, and it is played again on another site.
pub(super) async fn while_waiters_live<T>(mut scene: impl AsyncFnMut(Site) -> T) -> T {
    for _ in 0..20 {
        let site = Site::start().await;
        let begun = SystemClock.boot();
        let answers = scene(site).await;
        if SystemClock.boot().since(begun) < WAITER_ALIVE {
            return answers;
        }
    }
    panic!("no scene within {WAITER_ALIVE:?}, 20 times");
}

/// Asks until it is so, and fails when it is not so in time.
pub(super) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let clock = SystemClock;
    let end = clock.boot().plus(PATIENCE);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(clock.boot() < end, "waited in vain: {what}");
        clock
            .sleep_until(clock.boot().plus(Duration::from_millis(10)))
            .await;
    }
}

/// A backend on a cluster. A busy machine may exceed the time that its driver gives a node.
#[cfg(feature = "cluster")]
pub(super) async fn on_cluster(seeds: &[RedisConfig], settings: &BackendContext) -> RedisBackend {
    until(
        "a connection to the cluster",
        async || match RedisBackend::connect_cluster(seeds, settings.clone()).await {
            Err(BackendError::NotSent(_)) => None,
            connected => Some(connected.unwrap()),
        },
    )
    .await
}

#[cfg(feature = "cluster")]
pub(super) fn seeds(cluster: &RedisCluster) -> Vec<RedisConfig> {
    cluster.urls().into_iter().map(RedisConfig::from).collect()
}
