//! One request that is hurt: what its caller is told, and what is left afterwards.

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::postgres::Postgres;
use soldonce_lease::test_kit::{Fault as Flaw, FaultyBackend, Op};
use soldonce_lease::{
    AcquireError, Clock, FencingToken, Lease, LeaseTicket, Leases, Namespace, Request, SystemClock,
};
use soldonce_testkit::chaos::{Fault, FaultProxy};
use tokio::task::JoinSet;

use super::aftermath::release_all;
use super::outcome::{CallOutcome, acquired, answer_outcome, released, renewal_outcome};
use super::requests::{Call, Harm, Row};
use super::site::{Kind, Site};
use super::sources::script;
use super::{PATIENCE, ms, within};
use crate::awake::{Awake, Slow};

/// Long: what goes away before it is over did not go away by itself.
pub(super) const TTL: Duration = Duration::from_secs(20);

/// Longest wait for an answer that comes too late, by a clock that stands still with the machine: a stall must not look
/// like a fault.
const CALL: Duration = Duration::from_secs(2);

/// By how much that clock may be late without a stall.
const TICKS: Duration = ms(300);

/// By how much slower the clock goes while votes of a Redlock decide, which have 200 ms: on a busy machine two
/// connections that are made anew may take as long.
const SLOWER: u32 = 10;

const MANY: usize = 24;

/// What the call needs to be there.
enum Ready {
    Nothing,
    Held(Vec<Lease>),
    Ticket(LeaseTicket),
    /// By another client.
    Taken(Lease),
}

pub(super) struct Trial {
    pub(super) row: Row,
    pub(super) harm: Harm,
    pub(super) site: Site,
    pub(super) proxies: Vec<FaultProxy>,
    /// Behind the proxies.
    pub(super) locks: Leases,
    /// Sees the servers directly.
    pub(super) witness: Leases,
    /// Doubles what a proxy cannot.
    doubler: Option<Arc<FaultyBackend>>,
    /// Of a grant before everything.
    pub(super) first: FencingToken,
    pub(super) awake: Awake,
}

impl Trial {
    pub(super) async fn start(row: Row, harm: Harm) -> Self {
        let site = Site::start(row.on).await;
        site.load_scripts();
        let (proxies, awake) = (site.proxies(), Awake::start());
        if row.on == Kind::Redlock {
            awake.slow_down(SLOWER);
        }
        let clock: Arc<dyn Clock> = Arc::new(awake.clock());
        let by_backend = row.on == Kind::Postgres && harm == Harm::Doubled;
        let doubler = by_backend.then(|| in_front_of_postgres(&site, &proxies, &clock));
        let locks = match &doubler {
            Some(doubler) => Leases::backend(doubler.clone()),
            None => site.builder(&proxies),
        };
        let locks = locks.call_timeout(harm.call_timeout()).clock(clock);
        let locks = locks.connect().await.unwrap();
        // No vote of its own may come too late.
        let witness = site.builder(&[]).call_timeout(PATIENCE);
        let witness = witness.clock(Arc::new(Slow)).connect().await.unwrap();
        let mut trial = Self {
            row,
            harm,
            site,
            proxies,
            locks,
            witness,
            doubler,
            first: FencingToken::from_parts(0, 1).unwrap(),
            awake,
        };
        trial.first = trial.next_token().await;
        trial
    }

    pub(super) async fn run(self) {
        let ready = self.prepare().await;
        if matches!(self.harm, Harm::Late | Harm::Stuck) {
            // The end of the call's time is part of the fault.
            self.awake.slow_down(1);
        }
        let served = self.site.served();
        self.hurt();
        let behind = self.clock_is_behind();
        let (outcome, held) = self.call(ready).await;
        self.awake.slow_down(1);
        // The proxy counts a stall, so that what it delays may come in time.
        let stalled = self.clock_is_behind() > behind + TICKS;
        let expected = self.row.expected(self.harm);
        if let Some(expected) = expected.filter(|_| self.harm != Harm::Late || !stalled) {
            assert_eq!(outcome, expected, "{self}");
        }
        if self.harm == Harm::Stuck {
            self.let_it_arrive(held, &served).await;
        } else {
            let hit = || self.proxies.iter().all(|proxy| proxy.to_come() == 0);
            within(PATIENCE, format!("the fault of {self}"), hit).await;
            self.is_used_by_nobody_else(&held).await;
            release_all(held).await;
        }
        self.comes_clean().await;
        self.minted_no_second_token().await;
        let drained = self.locks.clone().shutdown(PATIENCE).await;
        assert_eq!(drained.left_to_ttl, 0, "{self}");
    }

    /// How far the clock of these leases is behind that of the machine.
    fn clock_is_behind(&self) -> Duration {
        SystemClock.boot().since(self.awake.clock().boot())
    }

    fn request(&self, name: &str) -> Request {
        self.locks.lease(name).ttl(TTL).manual_renewal()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let many = matches!(self.row.call, Call::AcquireMany | Call::ReleaseMany);
        (0..if many { MANY } else { 1 })
            .map(|n| format!("n:{n}"))
            .collect()
    }

    /// What is held before the fault. What the call needs has been used once.
    async fn prepare(&self) -> Ready {
        let warm = self.request("warm").try_acquire().await.unwrap().unwrap();
        warm.renew().await.unwrap();
        warm.release().await.unwrap();
        if self.row.call == Call::Install {
            self.site.forget();
            self.site.load_scripts();
        }
        if self.row.acquires() || self.row.call == Call::Durable {
            return Ready::Nothing;
        }
        if self.row.call == Call::Wait {
            let taken = self.witness.lease("n:0").ttl(TTL).try_acquire();
            return Ready::Taken(taken.await.unwrap().unwrap());
        }
        let mut held = Vec::new();
        for name in self.names() {
            held.push(self.request(&name).try_acquire().await.unwrap().unwrap());
        }
        if self.row.call == Call::Resume {
            return Ready::Ticket(held.remove(0).detach());
        }
        Ready::Held(held)
    }

    /// Lets the fault wait for the request.
    fn hurt(&self) {
        if let Some(doubler) = &self.doubler {
            let op = match self.row.call {
                Call::Renew | Call::Resume => Op::Renew,
                Call::Release | Call::ReleaseMany | Call::ForceRelease => Op::Release,
                _ => Op::Acquire,
            };
            return doubler.next(op, Flaw::Double);
        }
        // On a Redlock a vote that comes late is given back once more: of the lease before, and of this one.
        let spare = match (self.row.on, self.row.call, self.harm) {
            (Kind::Redlock, Call::Release, Harm::LostAgain)
            | (Kind::Redlock, Call::ForceRelease, Harm::Lost) => 2,
            _ => 0,
        };
        let faults = match self.harm {
            Harm::Lost => vec![Fault::DropReply; 1 + spare],
            Harm::LostAgain => vec![Fault::DropReply; 2 + spare],
            Harm::Late => vec![Fault::Delay(CALL + ms(500))],
            Harm::Doubled => vec![Fault::Twice],
            Harm::Stuck => vec![Fault::Cut],
        };
        let text = match self.row.on {
            Kind::Postgres => format!("-- {}", self.row.request),
            _ if !self.row.request.contains('.') => self.row.request.to_owned(),
            _ => redis::Script::new(&script(self.row.request))
                .get_hash()
                .to_owned(),
        };
        for proxy in &self.proxies {
            for fault in &faults {
                proxy.next_with(&text, *fault);
            }
        }
    }

    async fn call(&self, ready: Ready) -> (CallOutcome, Vec<Lease>) {
        let name = self.locks.lease("n:0");
        match (self.row.call, ready) {
            (Call::Resume, Ready::Ticket(ticket)) => {
                acquired(vec![some(self.locks.resume(ticket).await)])
            }
            (Call::Renew, Ready::Held(held)) => (renewal_outcome(held[0].renew().await), held),
            (Call::Inspect, Ready::Held(held)) => (answer_outcome(name.inspect().await), held),
            (Call::ForceRelease, Ready::Held(held)) => {
                let token = held[0].token_for_logs().unwrap();
                let broken = name.force_release(token, "test").await;
                (answer_outcome(broken), Vec::new())
            }
            (Call::Wait, Ready::Taken(taken)) => acquired(vec![self.wait_for(taken).await]),
            (Call::Durable, _) => {
                let (n, within) = (1, ms(200));
                let request = self.request("n:0");
                let request = request.replicas(n, within);
                acquired(vec![some(request.try_acquire().await)])
            }
            (_, Ready::Held(held)) => (released(held).await, Vec::new()),
            (_, _) => acquired(self.acquire_all().await),
        }
    }

    /// Waits while another holds it, who gives it back after the fault.
    async fn wait_for(&self, taken: Lease) -> Result<Lease, AcquireError> {
        let mut waits = JoinSet::new();
        waits.spawn(self.request("n:0").acquire_within(PATIENCE));
        let hit = || self.proxies.iter().all(|proxy| proxy.to_come() == 0);
        within(PATIENCE, format!("the fault of {self}"), hit).await;
        taken.release().await.unwrap();
        some(waits.join_next().await.unwrap().unwrap())
    }

    async fn acquire_all(&self) -> Vec<Result<Lease, AcquireError>> {
        let mut asked = JoinSet::new();
        for name in self.names() {
            asked.spawn(self.request(&name).try_acquire());
        }
        asked.join_all().await.into_iter().map(some).collect()
    }
}

/// No other holds what is asked for here.
fn some(asked: Result<Option<Lease>, AcquireError>) -> Result<Lease, AcquireError> {
    asked.map(|lease| lease.expect("no other holder"))
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { on, call, .. } = self.row;
        write!(f, "{on:?} {call:?} {:?}", self.harm)
    }
}

/// A backend in front of PostgreSQL that can run a command twice.
fn in_front_of_postgres(
    site: &Site,
    proxies: &[FaultProxy],
    clock: &Arc<dyn Clock>,
) -> Arc<FaultyBackend> {
    let namespace = Namespace::new("app").unwrap();
    let postgres = Postgres::new(site.config(proxies), namespace, Arc::clone(clock), PATIENCE);
    FaultyBackend::around(Arc::new(postgres), Arc::clone(clock))
}

impl Harm {
    /// Longest wait for one answer.
    fn call_timeout(self) -> Duration {
        match self {
            // The others are noticed without it.
            Self::Lost | Self::LostAgain | Self::Doubled => PATIENCE,
            Self::Late | Self::Stuck => CALL,
        }
    }
}
