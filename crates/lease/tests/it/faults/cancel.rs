//! 11.6: every future is dropped after its first poll, its second, its third, .. until it completes,
//! while each reply of the server takes several polls. Nothing is left afterwards.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use soldonce_lease::backend::Fut;
use soldonce_lease::{Builder, Lease, Leases};
use soldonce_testkit::chaos::{Fault, FaultProxy};

use super::site::{Kind, Site};
use super::{PATIENCE, ms, rest, within, within_by};
use crate::awake::Awake;

/// Long: what goes away before it is over did not go away by itself.
const TTL: Duration = Duration::from_secs(20);

/// When nothing may be left (`lease.md` 11.6): half the ttl, when releases are repeated, and a second; six
/// more for a machine that is busy.
const CLEAN_WITHIN: Duration = Duration::from_secs(17);

/// Each reply takes so long, so that a call is cut at each of its steps.
const REPLY: Duration = ms(3);

/// By how much slower the clock goes while calls to a Redlock are cut, whose votes have 200 ms.
const SLOWER: u32 = 10;

/// Between two polls.
const STEP: Duration = ms(1);

/// Any call ends within so many polls: a wait without a wake-up polls each second.
const POLLS_MAX: usize = 5_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    BackendFactory,
    TryAcquire,
    Group,
    Wait,
    FairWait,
    Renew,
    Release,
    Run,
    Resume,
    ForceRelease,
}

struct Bench {
    site: Site,
    proxies: Vec<FaultProxy>,
    /// Behind the proxies, which are slow.
    locks: Leases,
    /// Holds what is waited for.
    other: Leases,
    awake: Awake,
}

impl Bench {
    async fn start(kind: Kind) -> Self {
        let site = Site::start(kind).await;
        let (proxies, awake) = (site.proxies(), Awake::start());
        if kind == Kind::Redlock {
            awake.slow_down(SLOWER);
        }
        let locks = patient(&site, &proxies, &awake).connect().await.unwrap();
        let other = patient(&site, &[], &awake).connect().await.unwrap();
        for proxy in &proxies {
            proxy.set(Fault::Delay(REPLY));
        }
        Self {
            site,
            proxies,
            locks,
            other,
            awake,
        }
    }

    async fn held(&self, name: &str) -> Lease {
        let request = self.locks.lease(name).ttl(TTL).manual_renewal();
        request.try_acquire().await.unwrap().unwrap()
    }

    /// The future, and what is dropped after some polls: the end of another's lease.
    async fn begin(&self, call: Call, name: String) -> (Fut<'static, ()>, Option<Lease>) {
        let locks = self.locks.clone();
        let request = locks.lease(&*name).ttl(TTL);
        let mut waited_for = None;
        if matches!(call, Call::Wait | Call::FairWait) {
            let other = self.other.lease(&*name).ttl(TTL);
            waited_for = Some(other.try_acquire().await.unwrap().unwrap());
        }
        let future: Fut<'static, ()> = match call {
            Call::BackendFactory => {
                let slow = patient(&self.site, &self.proxies, &self.awake);
                Box::pin(async move { drop(slow.connect().await.unwrap()) })
            }
            Call::TryAcquire => {
                Box::pin(async move { drop(request.try_acquire().await.unwrap().unwrap()) })
            }
            Call::Group => {
                let names = [format!("{name}.a"), format!("{name}.b")];
                let group = locks.group(&*name, names.iter().map(String::as_str));
                let group = group.ttl(TTL);
                Box::pin(async move { drop(group.try_acquire().await.unwrap().unwrap()) })
            }
            Call::Wait => Box::pin(async move { drop(request.acquire().await.unwrap()) }),
            Call::FairWait => {
                Box::pin(async move { drop(request.fair().acquire().await.unwrap()) })
            }
            Call::Renew => {
                let lease = self.held(&name).await;
                Box::pin(async move { lease.renew().await.map(drop).unwrap() })
            }
            Call::Release => {
                let lease = self.held(&name).await;
                Box::pin(async move { lease.release().await.map(drop).unwrap() })
            }
            Call::Run => Box::pin(async move {
                let body = async |_| {
                    rest(2 * REPLY).await;
                    Ok::<_, ()>(())
                };
                let lease = request.acquire().await.unwrap();
                lease.run(body).await.unwrap();
            }),
            Call::Resume => {
                let ticket = self.held(&name).await.detach();
                Box::pin(async move { drop(locks.resume(ticket).await.unwrap().unwrap()) })
            }
            Call::ForceRelease => {
                let lease = self.held(&name).await;
                Box::pin(async move {
                    let token = lease.token_for_logs().unwrap();
                    let broken = locks.lease(name).force_release(token, "test").await;
                    broken.map(drop).unwrap();
                    drop(lease);
                })
            }
        };
        (future, waited_for)
    }

    /// Cuts the call off after one poll, two, .. ; how many it takes to complete. Only waits take
    /// many, and their later polls find them asleep: of these it takes one in a few.
    async fn cut_everywhere(&self, call: Call) -> usize {
        let numbers = std::iter::successors(Some(1), |polls| Some(polls + 1 + polls / 10));
        for polls in numbers.take_while(|polls| *polls < POLLS_MAX) {
            self.site.forget();
            let name = format!("{call:?}.{polls}");
            let (future, waited_for) = self.begin(call, name).await;
            if poll_up_to(future, polls, waited_for).await {
                return polls;
            }
        }
        panic!("{call:?} does not end in {POLLS_MAX} polls");
    }
}

/// Leases whose calls have five seconds, by a clock that stands still with the machine: votes of a Redlock have 200 ms.
fn patient(site: &Site, through: &[FaultProxy], awake: &Awake) -> Builder {
    let builder = site.builder(through).call_timeout(Duration::from_secs(5));
    builder.clock(Arc::new(awake.clock()))
}

/// Polls so often, then drops it; whether it ended before. Halfway, what it waits for comes free.
async fn poll_up_to(mut future: Fut<'static, ()>, polls: usize, waited_for: Option<Lease>) -> bool {
    const HALFWAY: usize = 15;
    let mut waited_for = waited_for;
    for poll in 0..polls {
        if poll == HALFWAY {
            waited_for = None;
        }
        if poll > 0 {
            rest(STEP).await;
        }
        let once = poll_fn(|cx| Poll::Ready(Pin::new(&mut future).poll(cx).is_ready()));
        if once.await {
            return true;
        }
    }
    drop(waited_for);
    false
}

async fn cut_every_call(kind: Kind, calls: &[Call]) {
    cut(Bench::start(kind).await, calls).await;
}

async fn cut(bench: Bench, calls: &[Call]) {
    for &call in calls {
        let polls = bench.cut_everywhere(call).await;
        assert!(polls > 1, "{call:?} was never cut off on its way");
    }
    // A ticket is good until its ttl ends, for any holder of it: that is no orphan.
    let is_ticket = |name: &String| name.contains("Resume");
    bench.awake.slow_down(1);
    // The last one may be granted yet, before it is released.
    let clean = || bench.locks.stats().live == 0 && bench.site.left().iter().all(is_ticket);
    within_by(&bench.awake.clock(), CLEAN_WITHIN, "no key is left", clean).await;
    let Bench {
        site,
        locks,
        other,
        proxies,
        ..
    } = bench;
    for locks in [locks, other] {
        let drained = locks.shutdown(PATIENCE).await;
        assert_eq!(drained.left_to_ttl, 0, "{drained:?}");
    }
    // A vote of a call that was cut may have come to one node of a Redlock since, and is given back.
    let clean = || site.left().iter().all(is_ticket);
    within_by(
        &bench.awake.clock(),
        CLEAN_WITHIN,
        "no key came later",
        clean,
    )
    .await;
    // A call that was cut off while it connected has ended too.
    within(PATIENCE, "no connection is left", || {
        site.connections() == 0
    })
    .await;
    drop(proxies);
}

#[tokio::test]
async fn a_call_cut_off_anywhere_leaves_nothing_on_redis() {
    let calls = [
        Call::BackendFactory,
        Call::TryAcquire,
        Call::Group,
        Call::Wait,
        Call::FairWait,
        Call::Renew,
        Call::Release,
        Call::Run,
        Call::Resume,
        Call::ForceRelease,
    ];
    cut_every_call(Kind::Redis, &calls).await;
}

/// Calls that run in the caller's own task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_cut_off_in_place_leaves_nothing_on_redis() {
    let calls = [
        Call::TryAcquire,
        Call::Group,
        Call::Wait,
        Call::FairWait,
        Call::Release,
        Call::Run,
    ];
    cut_every_call(Kind::Redis, &calls).await;
}

#[tokio::test]
async fn a_call_cut_off_anywhere_leaves_nothing_on_a_redlock() {
    let calls = [Call::TryAcquire, Call::Renew, Call::Release, Call::Run];
    cut_every_call(Kind::Redlock, &calls).await;
}

#[tokio::test]
async fn a_call_cut_off_anywhere_leaves_nothing_on_postgres() {
    let calls = [
        Call::BackendFactory,
        Call::TryAcquire,
        Call::Group,
        Call::Wait,
        Call::Renew,
        Call::Release,
        Call::Run,
        Call::Resume,
        Call::ForceRelease,
    ];
    cut_every_call(Kind::Postgres, &calls).await;
}
