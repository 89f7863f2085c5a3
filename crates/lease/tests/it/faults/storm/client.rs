//! The clients of one process: each takes a name, adds to its counter through the gate, gives the
//! name back or just lets it go, and writes down what it saw.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::history::{AcquireCall, Held, Recorder};
use soldonce_lease::backend::Fut;
use soldonce_lease::backend::redis::RedlockConfig;
use soldonce_lease::{
    BackendError, BootTime, Builder, Clock, Doctor, FenceError, FenceKind, FenceSource,
    FencingToken, Lease, Leases, ManualClock, ReleaseOutcome, SystemClock,
};
use soldonce_testkit::player::Part;
use soldonce_testkit::runtime;
use tokio::task::JoinSet;

use super::draw::Draw;
use super::{CLIENTS, GRANTS_LEAST, NAMES, Plan, Planted, Report};
use crate::awake::Awake;
use crate::faults::counter::{Counter, Gate};
use crate::faults::site::{self, Kind};
use crate::faults::{PATIENCE, ms, rest};

/// The shortest that the backend keeps.
fn ttl(kind: Kind) -> std::time::Duration {
    match kind {
        Kind::Redlock => ms(2_000),
        Kind::Redis | Kind::Pair | Kind::Cluster | Kind::Postgres => ms(1_000),
    }
}

fn gate(plan: &Plan) -> Gate {
    match plan.planted {
        Some(Planted::NoGate) => Gate::Off,
        Some(Planted::BareCounter | Planted::YoungVotes) | None => Gate::On,
    }
}

/// A source that does not remember what it gave: tokens fall with the data of the server.
struct Forgetful;

impl FenceSource for Forgetful {
    fn next<'a>(
        &'a self,
        _: FenceKind,
        _: &'a str,
        above: u64,
    ) -> Fut<'a, Result<u64, FenceError>> {
        Box::pin(std::future::ready(Ok(above + 1)))
    }
}

/// Plays the part of one process.
pub(super) fn play(mut part: Part) {
    let plan: Plan = serde_json::from_str(part.words()[0]).unwrap();
    let report = runtime().unwrap().block_on(async {
        let locks = connect(&plan).await;
        // Young nodes of a Redlock do not vote yet.
        let first = locks.lease("first").ttl(ttl(plan.kind));
        drop(first.acquire_within(PATIENCE).await.unwrap().unwrap());
        part.say("ready");
        assert_eq!(part.hear().unwrap(), "go");
        let report = work(&plan, &locks).await;
        locks.shutdown(PATIENCE).await;
        report
    });
    std::fs::write(&plan.report, serde_json::to_vec(&report).unwrap()).unwrap();
    part.say("done");
}

/// Connects. A busy machine may exceed the little time that calls have.
async fn connect(plan: &Plan) -> Leases {
    let end = SystemClock.boot().plus(PATIENCE);
    loop {
        match builder(plan).connect().await {
            Err(BackendError::NotSent(_) | BackendError::Unknown(_))
                if SystemClock.boot() < end => {}
            connected => return connected.unwrap(),
        }
    }
}

fn builder(plan: &Plan) -> Builder {
    let builder = match plan.kind {
        Kind::Redis if plan.planted == Some(Planted::BareCounter) => {
            let bare = Leases::redis(&*plan.urls[0]).namespace("app");
            bare.fence(Forgetful).doctor(Doctor::Off)
        }
        // Its nodes are restarted with nothing, so they sit out as in earnest.
        Kind::Redlock if plan.planted != Some(Planted::YoungVotes) => {
            let nodes = site::nodes(&plan.urls);
            let config = RedlockConfig::new(nodes).ttl_longest(ttl(plan.kind));
            let locks = Leases::redlock(config).namespace("app");
            let tokens = soldonce_lease::FileFence::new(&plan.numbers);
            locks.fence(tokens).doctor(Doctor::Off)
        }
        kind => site::builder(kind, &plan.urls, &plan.numbers),
    };
    builder.call_timeout(ms(250)).seed(plan.seed)
}

async fn work(plan: &Plan, locks: &Leases) -> Report {
    let (recorder, awake) = (Recorder::new(Arc::new(SystemClock)), Awake::start());
    let until = awake.clock().boot().plus(plan.time);
    let mut clients = JoinSet::new();
    for n in 0..CLIENTS {
        let client = Client {
            id: plan.first_client + n,
            locks: locks.clone(),
            counter: Counter::connect(&plan.target, gate(plan)).await,
            plan: plan.clone(),
            recorder: recorder.clone(),
            draw: Draw::of(plan.seed << 8 | u64::from(n)),
            granted: 0,
            added: BTreeMap::new(),
        };
        clients.spawn(client.work(awake.clock(), until));
    }
    let mut report = Report::default();
    for added in clients.join_all().await {
        let history = crate::history::History::default();
        report.add(Report { history, added });
    }
    report.history.merge(recorder.history());
    report
}

struct Client {
    id: u32,
    locks: Leases,
    counter: Counter,
    plan: Plan,
    recorder: Recorder,
    draw: Draw,
    granted: u32,
    added: BTreeMap<String, i64>,
}

/// A hold, and the last time at which the client saw that it was live.
struct Hold {
    lease: Lease,
    record: Held,
    name: &'static str,
    live_at: BootTime,
}

impl Hold {
    /// The token, if the lease is live. The time is read first: it was live then.
    fn look(&mut self) -> Option<FencingToken> {
        let at = SystemClock.boot();
        let token = self.lease.token().ok()?;
        self.live_at = at;
        Some(token)
    }
}

impl Client {
    /// Works until `clock`, which stands still with the machine, says so, and until it had some grants: on a busy
    /// machine they may come when all is well again.
    async fn work(mut self, clock: ManualClock, until: BootTime) -> BTreeMap<String, i64> {
        while clock.boot() < until || self.granted < GRANTS_LEAST {
            let name = NAMES[self.draw.place(NAMES.len())];
            let call = self.recorder.acquire(self.id, name);
            let request = self.locks.lease(name).ttl(ttl(self.plan.kind));
            let wait = match self.draw.below(3) {
                0 => ms(0),
                _ => self.draw.ms(20, 300),
            };
            match request.acquire_or_refusal(wait).await {
                Ok(Ok(lease)) => self.granted(call, lease, name).await,
                Ok(Err(_)) => call.refused(),
                // One of its tries may have run.
                Err(_) => call.unknown(),
            }
            rest(self.draw.ms(2, 20)).await;
        }
        self.added
    }

    async fn granted(&mut self, call: AcquireCall, lease: Lease, name: &'static str) {
        let live_at = SystemClock.boot();
        let Ok(token) = lease.token() else {
            // This process stood still since: what it had is not known to be its own.
            return call.unknown();
        };
        self.granted += 1;
        let mut hold = Hold {
            lease,
            record: call.granted_at(Some(token), live_at),
            name,
            live_at,
        };
        for _ in 0..=self.draw.below(3) {
            self.step(&mut hold).await;
        }
        if self.plan.planted == Some(Planted::YoungVotes) {
            // Long enough for a majority to be restarted meanwhile, on a busy machine too.
            rest(self.draw.ms(150, 1_000)).await;
        }
        hold.look();
        self.end(hold).await;
    }

    async fn step(&mut self, hold: &mut Hold) {
        match self.draw.below(4) {
            0 => drop(hold.lease.renew().await),
            1 => rest(self.draw.ms(1, 30)).await,
            _ => self.add(hold).await,
        }
    }

    /// Reads, thinks, looks at the lease, and writes one more.
    async fn add(&mut self, hold: &mut Hold) {
        let Some(token) = hold.look() else { return };
        let call = self.recorder.write(self.id, hold.name, token);
        let Some(read) = self.counter.read(hold.name, token).await else {
            call.stale();
            return self.overtaken(hold).await;
        };
        call.admitted();
        rest(self.draw.ms(1, 15)).await;
        if hold.look().is_none() {
            return;
        }
        let call = self.recorder.write(self.id, hold.name, token);
        if !self.counter.write(hold.name, token, read + 1).await {
            call.stale();
            return self.overtaken(hold).await;
        }
        call.admitted();
        *self.added.entry(hold.name.to_owned()).or_default() += 1;
    }

    async fn overtaken(&self, hold: &Hold) {
        if self.plan.planted != Some(Planted::NoGate) {
            hold.lease
                .report_overtaken(self.counter.highest(hold.name).await);
        }
    }

    async fn end(&self, hold: Hold) {
        let Hold {
            lease,
            record,
            live_at,
            ..
        } = hold;
        if self.draw.below(4) == 0 {
            record.lost_at(live_at);
            return drop(lease);
        }
        let call = record.releasing();
        match lease.release().await {
            Ok(ReleaseOutcome::Released) => call.released(),
            _ => call.lapsed_at(live_at),
        }
    }
}
