//! 11.5: every script and every statement, its reply lost, its reply late, the request doubled, and
//! the request stuck on its way until its sender has long given up. No orphan is left after ttl/2 and
//! a second, no second token is in use, and what may have run is said to be unknown.

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::outcome::CallOutcome;
use super::site::Kind;
use super::sources::{commands, scripts, statements};
use super::trial::Trial;

/// What is asked of the locks while the fault waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Acquire,
    /// Many names at once: they travel together.
    AcquireMany,
    /// The first acquire of a shard, which installs an epoch.
    Install,
    Renew,
    Resume,
    Release,
    ReleaseMany,
    Inspect,
    ForceRelease,
    /// An acquire of a name that another holds, until it is given back.
    Wait,
    /// An acquire that wants a replica to have its grant.
    Durable,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// It runs, and the connection closes instead of the reply.
    Lost,
    /// So does the next one, which asks again.
    LostAgain,
    /// It runs, and the reply comes after its sender has stopped waiting.
    Late,
    /// It runs twice before its reply.
    Doubled,
    /// It does not arrive before its sender has given up, and then it does.
    Stuck,
}

/// A request: what sends it, and the script, the statement or the command in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) on: Kind,
    pub(super) call: Call,
    pub(super) request: &'static str,
}

const fn row(on: Kind, call: Call, request: &'static str) -> Row {
    Row { on, call, request }
}

const ROWS: [Row; 23] = [
    row(Kind::Redis, Call::Acquire, "grant.lua"),
    row(Kind::Redis, Call::AcquireMany, "grant.lua"),
    row(Kind::Redis, Call::Install, "acquire.lua"),
    row(Kind::Redis, Call::Install, "install.lua"),
    row(Kind::Redis, Call::Renew, "renew.lua"),
    row(Kind::Redis, Call::Resume, "renew.lua"),
    row(Kind::Redis, Call::Release, "release.lua"),
    row(Kind::Redis, Call::ReleaseMany, "release.lua"),
    row(Kind::Redis, Call::Inspect, "inspect.lua"),
    row(Kind::Redis, Call::ForceRelease, "release.lua"),
    row(Kind::Redis, Call::Wait, "SSUBSCRIBE"),
    row(Kind::Redis, Call::Durable, "WAIT"),
    row(Kind::Redlock, Call::Acquire, "rl_acquire.lua"),
    row(Kind::Redlock, Call::Renew, "renew.lua"),
    row(Kind::Redlock, Call::Release, "release.lua"),
    row(Kind::Redlock, Call::ForceRelease, "release.lua"),
    row(Kind::Postgres, Call::Acquire, "lease_acquire"),
    row(Kind::Postgres, Call::AcquireMany, "lease_acquire"),
    row(Kind::Postgres, Call::Renew, "lease_renew"),
    row(Kind::Postgres, Call::Resume, "lease_renew"),
    row(Kind::Postgres, Call::Release, "lease_release"),
    row(Kind::Postgres, Call::Inspect, "lease_inspect"),
    row(Kind::Postgres, Call::ForceRelease, "lease_release"),
];

/// Requests without a row: those of the start and of the doctor, before there are leases; the removal
/// of rows that ended a day ago, and the end of a subscription, whose answers no call waits for; the
/// text of a script, which is sent where its hash is not known; and the word before a call to a slot
/// that is being moved, which has a test of its own.
const WITHOUT_A_ROW: [&str; 8] = [
    "lease_installed",
    "lease_version",
    "lease_prune",
    "ASKING",
    "EVAL",
    "INFO",
    "PING",
    "SUNSUBSCRIBE",
];

#[test]
fn every_script_statement_and_command_has_a_row() {
    let known = ROWS.iter().map(|row| row.request).chain(WITHOUT_A_ROW);
    let known: BTreeSet<&str> = known.collect();
    let there = [scripts(), statements(), commands()].concat();
    let there: BTreeSet<&str> = there.iter().map(String::as_str).collect();
    assert_eq!(there, known);
}

impl Row {
    /// What the caller must be told; `None` where both words are right.
    pub(super) fn expected(self, harm: Harm) -> Option<CallOutcome> {
        let releases = matches!(self.call, Call::Release | Call::ReleaseMany);
        let asks_again = self.acquires() || releases;
        match harm {
            Harm::Doubled => Some(CallOutcome::Done),
            // The poll finds what no hint tells, and a count of replicas that never comes is zero.
            _ if matches!(self.call, Call::Wait | Call::Durable) => Some(CallOutcome::Done),
            Harm::LostAgain if self.is_single() => Some(CallOutcome::Unknown),
            // It may have hit another of them.
            Harm::LostAgain => None,
            // A node's vote has so little time that the second one is late too.
            Harm::Late if self.on == Kind::Redlock && self.acquires() => None,
            Harm::Lost | Harm::Late if asks_again => Some(CallOutcome::Done),
            // On a new connection, if the first is given up in time.
            Harm::Stuck if asks_again => None,
            Harm::Lost | Harm::Late | Harm::Stuck => Some(CallOutcome::Unknown),
        }
    }

    /// Whether what it does, done late, leaves an orphan.
    pub(super) fn acquires(self) -> bool {
        matches!(self.call, Call::Acquire | Call::AcquireMany | Call::Install)
    }

    pub(super) fn is_single(self) -> bool {
        !matches!(self.call, Call::AcquireMany | Call::ReleaseMany)
    }

    /// Whether there is such a case.
    fn suffers(self, harm: Harm) -> bool {
        use Call::{Acquire, AcquireMany, Inspect, Release, ReleaseMany, Resume};
        match harm {
            Harm::LostAgain => matches!(self.call, Acquire | AcquireMany | Release | ReleaseMany),
            // Its double is made by a backend in between, which does not double questions.
            Harm::Doubled if self.on == Kind::Postgres => !matches!(self.call, Inspect | Resume),
            Harm::Lost | Harm::Late | Harm::Doubled | Harm::Stuck => true,
        }
    }
}

/// Puts every request of a backend through these, all at once: most of it is waiting.
async fn endure(on: Kind, harms: &[Harm]) {
    let mut trials = JoinSet::new();
    for row in ROWS.into_iter().filter(|row| row.on == on) {
        for harm in harms.iter().copied().filter(|harm| row.suffers(*harm)) {
            trials.spawn(async move { Trial::start(row, harm).await.run().await });
        }
    }
    trials.join_all().await;
}

macro_rules! endures {
    ($($test:ident: $on:ident, $($harm:ident)+;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                endure(Kind::$on, &[$(Harm::$harm),+]).await;
            }
        )+
    };
}

endures! {
    redis_is_not_heard: Redis, Lost LostAgain;
    redis_is_heard_late_or_asked_twice: Redis, Late Doubled;
    redis_is_asked_late: Redis, Stuck;
    redlock_is_not_heard: Redlock, Lost LostAgain Doubled;
    redlock_is_heard_or_asked_late: Redlock, Late Stuck;
    postgres_is_not_heard: Postgres, Lost LostAgain;
    postgres_is_heard_late_or_asked_twice: Postgres, Late Doubled;
    postgres_is_asked_late: Postgres, Stuck;
}
