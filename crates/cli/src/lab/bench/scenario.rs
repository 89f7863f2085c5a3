//! What a scenario is: a server to measure, and requests to send to it. A new one is a file beside
//! `echo.rs` and a line in `ALL`.

use std::net::SocketAddr;
use std::pin::Pin;

use axum::Router;

use super::super::load::Makers;
use super::echo::Echo;

/// Every scenario; the first is the ceiling of the others.
const ALL: &[&dyn Scenario] = &[&Echo];

/// What the boxed functions of a scenario return.
pub(crate) type Prepared<'a, T> = Pin<Box<dyn Future<Output = anyhow::Result<T>> + Send + 'a>>;

/// Where a scenario's server listens and what will come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// The server.
    pub(crate) address: SocketAddr,
    /// Connections of the load.
    pub(crate) connections: u32,
}

/// Something to measure.
pub(crate) trait Scenario: Sync {
    /// Its name on the command line and in the report.
    fn name(&self) -> &'static str;

    /// One line for the report: what a request is.
    fn about(&self) -> &'static str;

    /// The statuses that a right answer may have. Any other makes the benchmark fail.
    fn expects(&self) -> &'static [u16];

    /// In the server's process: what to serve.
    fn router(&self) -> Prepared<'_, Router>;

    /// In the generator's process, once the server listens: prepares its data through HTTP and says
    /// what each connection sends.
    fn set_up<'a>(&'a self, setting: &'a Setting) -> Prepared<'a, Makers>;
}

/// The scenario of that name.
pub(crate) fn find(name: &str) -> Option<&'static dyn Scenario> {
    ALL.iter().copied().find(|scenario| scenario.name() == name)
}

/// The names of all scenarios, the ceiling first.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().map(|scenario| scenario.name()).collect()
}

/// The name of the one to which the others are compared.
pub(crate) fn ceiling() -> &'static str {
    Echo.name()
}
