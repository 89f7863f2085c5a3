//! The scenarios: what is sent to which server, and how it compares with the bare echo. A new one is an
//! entry in `ALL`.

use std::pin::Pin;

use super::fresh::{Filling, fresh_holds, pairs};
use super::product::Setting;
use super::{BenchArgs, hot, look};
use crate::load::{Makers, Transport};

/// Something to measure.
#[derive(Debug)]
pub(super) struct Scenario {
    /// Its name on the command line and in the report.
    pub(super) name: &'static str,
    /// What a request is, in one line.
    pub(super) about: &'static str,
    /// The statuses that a right answer may have. Any other makes the benchmark fail.
    pub(super) expects: &'static [u16],
    pub(super) target: Target,
    pub(super) goal: Option<Goal>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// The bare echo on the accept loop of the server.
    Echo,
    /// SQLite's own group commit in this process.
    Sqlite,
    /// `soldonce serve` on an embedded ledger in a folder of its own.
    Product(SetUp),
    /// `soldonce serve` on a private PostgreSQL.
    Postgres(SetUp),
}

/// A wanted ratio to the echo's rate, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    /// Its name in the list of goals.
    pub(super) id: &'static str,
    /// The first step, and the goal.
    pub(super) steps: (u64, u64),
}

/// Prepares a scenario's data through HTTP and returns what each connection sends.
pub(super) type SetUp = for<'a> fn(&'a Setting) -> Prepared<'a>;
pub(super) type Prepared<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Makers>> + Send + 'a>>;

/// The two whose rates are compared (P15).
pub(super) const REFUSALS_SHARED: &str = "refusals-postgres";
pub(super) const REFUSALS_KEYED: &str = "refusals-postgres-keyed";

/// Every scenario; the first is the ceiling of the others.
pub(super) static ALL: [Scenario; 10] = [
    Scenario {
        name: "echo",
        about: "a bare request as large as a hold: the ceiling",
        expects: &[200],
        target: Target::Echo,
        goal: None,
    },
    Scenario {
        name: "refusals",
        about: "a hold of one seat that another has: refused with conflicts and alternatives",
        expects: &[409],
        target: Target::Product(|setting| Box::pin(hot::refusals(setting))),
        goal: Some(goal("P2", (750, 850))),
    },
    Scenario {
        name: REFUSALS_SHARED,
        about: "refusals on PostgreSQL",
        expects: &[409],
        target: Target::Postgres(|setting| Box::pin(hot::refusals(setting))),
        goal: None,
    },
    Scenario {
        name: REFUSALS_KEYED,
        about: "refusals on PostgreSQL, each with an idempotency key",
        expects: &[409],
        target: Target::Postgres(|setting| Box::pin(hot::keyed_refusals(setting))),
        goal: None,
    },
    Scenario {
        name: "holds",
        about: "a hold of one fresh seat, row by row, each for another holder: durable before the answer",
        expects: &[201],
        target: Target::Product(|setting| Box::pin(fresh_holds(setting, Filling::InRows))),
        goal: Some(goal("P1", (400, 500))),
    },
    Scenario {
        name: "holds-spread",
        about: "holds of fresh seats all over large halls",
        expects: &[201],
        target: Target::Product(|setting| Box::pin(fresh_holds(setting, Filling::Spread))),
        goal: None,
    },
    Scenario {
        name: "confirm",
        about: "a hold of a fresh seat, then a confirm with an idempotency key: two requests a \
                pair, so that its ratio is that of pairs to half the echo",
        expects: &[201],
        target: Target::Product(|setting| Box::pin(pairs(setting))),
        goal: Some(goal("P3", (450, 450))),
    },
    Scenario {
        name: "snapshot",
        about: "GET the seats of a hall of 1,000, 64 of them held",
        expects: &[200],
        target: Target::Product(|setting| Box::pin(look::still(setting))),
        goal: None,
    },
    Scenario {
        name: "snapshot-moving",
        about: "GET the seats of a hall while the first connection holds and releases a seat",
        expects: &[200, 201],
        target: Target::Product(|setting| Box::pin(look::moving(setting))),
        goal: None,
    },
    Scenario {
        name: "sqlite",
        about: "no HTTP, no rules: SQLite's own group commit of one narrow row a request, in this process",
        expects: &[201],
        target: Target::Sqlite,
        goal: None,
    },
];

/// The scenarios that are measured over gRPC too, each with its goal there.
const OVER_GRPC: [(&str, Option<Goal>); 3] = [
    (CEILING, None),
    ("refusals", Some(goal("P20", (750, 750)))),
    ("holds", Some(goal("P21", (400, 400)))),
];

const fn goal(id: &'static str, steps: (u64, u64)) -> Goal {
    Goal { id, steps }
}

impl Scenario {
    /// Tells whether it is measured over this transport at this pace: SQLite has no open loop.
    pub(super) fn suits(&self, args: &BenchArgs) -> bool {
        match (args.transport, self.target) {
            (Transport::Http, Target::Sqlite) => args.rate.is_none(),
            (Transport::Http, Target::Echo | Target::Product(_) | Target::Postgres(_)) => true,
            (Transport::Grpc, _) => OVER_GRPC.iter().any(|(name, _)| *name == self.name),
        }
    }

    pub(super) fn goal(&self, transport: Transport) -> Option<Goal> {
        let mut over_grpc = OVER_GRPC.iter();
        match transport {
            Transport::Http => self.goal,
            Transport::Grpc => over_grpc.find(|(name, _)| *name == self.name)?.1,
        }
    }
}

/// The scenario that the others are compared with.
pub(super) const CEILING: &str = "echo";
