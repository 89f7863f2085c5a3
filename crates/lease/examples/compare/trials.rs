//! What happens to a holder whose process or server fails, and whether two then sell the same thing.

use std::error::Error;
use std::time::Duration;

use rustix::process::Signal;
use soldonce_lease::{Clock, SystemClock};
use soldonce_testkit::chaos::FaultProxy;
use soldonce_testkit::redis::{Redis, RedisPair};

use super::holder::{Holder, Interpreters, Peer};

const TTL_MS: u64 = 1_000;
const NAME: &str = "the-thing";

/// What fails while the first holder is about to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Its process is stopped, and goes on when the next holder has sold.
    Stopped,
    /// Its process is killed.
    Killed,
    /// The server loses all it has.
    Flushed,
    /// The primary is killed, and a replica that had not heard of the lock takes over.
    FailedOver,
}

impl Fault {
    pub(crate) const ALL: [Self; 4] =
        [Self::Stopped, Self::Killed, Self::Flushed, Self::FailedOver];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stopped => "the holder is stopped",
            Self::Killed => "the holder is killed",
            Self::Flushed => "the server is flushed",
            Self::FailedOver => "the server fails over",
        }
    }
}

/// How one trial ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) next_after: Duration,
    /// How many believed to have the lock when the next one had it.
    pub(crate) believers: u32,
    pub(crate) sales: u32,
}

/// The thing that is sold, which looks at the tokens of those who read and write it, if they have any.
#[derive(Default)]
struct Target {
    highest_token: u64,
    sales: u32,
}

impl Target {
    /// The free thing, as a holder reads it before it sells.
    fn read(&mut self, token: Option<u64>) {
        self.highest_token = self.highest_token.max(token.unwrap_or(0));
    }

    /// Writes the sale that was decided by what was read.
    fn sell(&mut self, token: Option<u64>) {
        if token.is_none_or(|token| token >= self.highest_token) {
            self.read(token);
            self.sales += 1;
        }
    }
}

/// The server that fails, behind one address.
struct Scene {
    pair: RedisPair,
    proxy: FaultProxy,
}

impl Scene {
    fn start() -> Result<Self, Box<dyn Error>> {
        let pair = RedisPair::start()?;
        let proxy = FaultProxy::to(pair.primary.address())?;
        Ok(Self { pair, proxy })
    }

    fn url(&self) -> String {
        format!("redis://{}", self.proxy.address())
    }

    fn fail(&mut self, fault: Fault, first: &mut Holder) -> Result<(), Box<dyn Error>> {
        match fault {
            Fault::Stopped => first.signal(Signal::STOP),
            Fault::Killed => first.signal(Signal::KILL),
            Fault::Flushed => flush(&self.pair.primary),
            Fault::FailedOver => {
                self.pair.primary.kill()?;
                self.pair.promote()?;
                self.proxy.retarget(self.pair.replica.address());
                Ok(())
            }
        }
    }
}

fn flush(server: &Redis) -> Result<(), Box<dyn Error>> {
    server.cli(&["FLUSHALL"])?;
    Ok(())
}

/// Two holders, one after the other; the write of the first one arrives after that of the second.
pub(crate) fn run(
    peer: Peer,
    fault: Fault,
    with: &Interpreters,
) -> Result<Verdict, Box<dyn Error>> {
    let mut scene = Scene::start()?;
    let mut first = Holder::start(peer, with, &scene.url())?;
    let mut second = Holder::start(peer, with, &scene.url())?;
    let mut target = Target::default();
    // Both have spoken to the server before, and the replica knows what was before.
    for (holder, name) in [(&mut first, "first"), (&mut second, "second")] {
        holder.must(&format!("take {name} {TTL_MS}"))?;
        holder.ask("drop")?;
    }
    scene.pair.await_sync()?;
    if fault == Fault::FailedOver {
        scene.pair.cut()?;
    }
    first.must(&format!("take {NAME} {TTL_MS}"))?;
    let decided = token(&first.ask("mine")?)?;
    target.read(decided);
    scene.fail(fault, &mut first)?;
    let failed = SystemClock.boot();
    second.must(&format!("wait {NAME} {TTL_MS}"))?;
    let next_after = SystemClock.boot().since(failed);
    let own = token(&second.ask("mine")?)?;
    target.read(own);
    let mut believers = 1;
    target.sell(own);
    if fault != Fault::Killed {
        if fault == Fault::Stopped {
            first.signal(Signal::CONT)?;
        }
        believers += u32::from(first.ask("mine")?.starts_with("yes"));
        target.sell(decided);
    }
    Ok(Verdict {
        next_after,
        believers,
        sales: target.sales,
    })
}

/// The token in a holder's answer that it has the lock.
fn token(answer: &str) -> Result<Option<u64>, Box<dyn Error>> {
    let token = answer
        .strip_prefix("yes")
        .ok_or("it lost the lock at once")?
        .trim();
    Ok(if token.is_empty() {
        None
    } else {
        Some(token.parse()?)
    })
}
