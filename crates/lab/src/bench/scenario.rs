//! What a scenario is: a server to measure, and requests to send to it. A new one is a file beside
//! `echo.rs` and a line in `ALL`.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;

use axum::Router;

use super::super::load::{LoadReport, Makers};
use super::confirm::Confirm;
use super::echo::Echo;
use super::group_commit::GroupCommit;
use super::holds::Holds;
use super::refusals::Refusals;
use super::snapshot::Snapshot;
use crate::client::Client;

/// Every scenario; the first is the ceiling of the others.
const ALL: &[&dyn Scenario] = &[
    &Echo,
    &Refusals::Embedded,
    &Refusals::Shared,
    &Refusals::Keyed,
    &Holds::InRows,
    &Holds::Spread,
    &Confirm,
    &Snapshot::Still,
    &Snapshot::Moving,
    &GroupCommit,
];

/// What the boxed functions of a scenario return.
pub(crate) type Prepared<'a, T> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + Send + 'a>>;

/// Where a scenario's server listens and what will come.
#[derive(Clone)]
pub(crate) struct Setting {
    /// The server.
    pub(crate) address: SocketAddr,
    /// Connections of the load.
    pub(crate) connections: u32,
    /// The most requests that may come, warm-up included.
    pub(crate) requests_max: u64,
    /// Staff's way in, where the server is the real one.
    pub(crate) admin: Option<Client>,
}

/// What a scenario puts its load on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// [`Scenario::router`] on the accept loop of the server.
    Router,
    /// `soldonce serve` on an embedded ledger in a folder of its own.
    Product,
    /// `soldonce serve` on a private PostgreSQL.
    Database,
    /// [`Scenario::within`]: no server at all.
    Within,
}

/// How much load a scenario without a server puts on itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dose<'a> {
    /// A folder of its own.
    pub(crate) folder: &'a Path,
    /// How many wait at once.
    pub(crate) waiters: u32,
    /// Seconds, or so many requests in place of them.
    pub(crate) seconds: u64,
    pub(crate) requests: Option<u64>,
}

/// What a ratio should be, in thousandths of the echo's rate (`docs` speak of the first step and of
/// the goal proper).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Its name in the list of goals.
    pub(crate) id: &'static str,
    /// The first step.
    pub(crate) first: u64,
    /// The goal.
    pub(crate) full: u64,
}

/// Something to measure.
pub(crate) trait Scenario: Sync {
    /// Its name on the command line and in the report.
    fn name(&self) -> &'static str;

    /// One line for the report: what a request is.
    fn about(&self) -> &'static str;

    /// The statuses that a right answer may have. Any other makes the benchmark fail.
    fn expects(&self) -> &'static [u16];

    /// Where it runs.
    fn target(&self) -> Target {
        Target::Product
    }

    /// What its rate should be, beside the echo's.
    fn goal(&self) -> Option<Goal> {
        None
    }

    /// In the server's process, on [`Target::Router`]: what to serve.
    fn router(&self) -> anyhow::Result<Router> {
        anyhow::bail!("{} has no routes of its own", self.name())
    }

    /// In the generator's process, once the server listens: prepares its data through HTTP and says
    /// what each connection sends.
    fn set_up<'a>(&'a self, _setting: &'a Setting) -> Prepared<'a, Makers> {
        Box::pin(async { anyhow::bail!("{} sends no requests", self.name()) })
    }

    /// On [`Target::Within`]: the whole load.
    fn within<'a>(&'a self, _dose: Dose<'a>) -> Prepared<'a, LoadReport> {
        Box::pin(async { anyhow::bail!("{} needs a server", self.name()) })
    }
}

/// The scenario of that name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name() == name)
}

/// All scenarios, the ceiling first.
pub(crate) fn all() -> Vec<&'static dyn Scenario> {
    ALL.to_vec()
}

/// The names of all scenarios, the ceiling first.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name()).collect()
}

/// The name of the one to which the others are compared.
pub(crate) fn ceiling() -> &'static str {
    Echo.name()
}
