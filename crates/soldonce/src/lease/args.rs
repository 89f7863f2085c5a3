//! The options of `soldonce lease run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use soldonce_lease::Name;

use super::backend::BackendArgs;
use super::span::span;

/// Shortest time between the end of CMD and the deadline of the lease.
const MARGIN_MIN: Duration = Duration::from_millis(500);

/// Arguments of `soldonce lease run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is leased: letters, digits and ._:- (1 to 128)
    pub(crate) name: Name,
    /// How long the lease lives without renewal
    #[arg(long, default_value = "30s", value_parser = span)]
    pub(crate) ttl: Duration,
    /// How long to wait for a lease that another holds; up to 4 s more if the backend is silent
    #[arg(long, default_value = "0", value_parser = span)]
    pub(crate) wait: Duration,
    /// How long the lease may live with all renewals
    #[arg(long, default_value = "24h", value_parser = span)]
    pub(crate) cap: Duration,
    /// Time for CMD between SIGTERM and SIGKILL
    #[arg(long, default_value = "5s", value_parser = span)]
    pub(crate) grace: Duration,
    /// Keeps the lease so long from its start, also if CMD ends sooner
    #[arg(long, default_value = "0", value_parser = span)]
    pub(crate) at_least: Duration,
    /// Wait in the order of arrival
    #[arg(long)]
    pub(crate) fair: bool,
    /// A line for people who inspect the lease, KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = meta_line)]
    pub(crate) meta: Vec<(String, String)>,
    /// Writes the outcome there as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) backend: BackendArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

impl RunArgs {
    /// Returns the time from the end of CMD to the deadline of the lease: `max(500 ms, ttl/20)`.
    pub(crate) fn margin(&self) -> Duration {
        MARGIN_MIN.max(self.ttl / 20)
    }

    /// Explains why these options do not fit together; None if they do.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let reserved = self.grace.saturating_add(self.margin());
        if reserved > self.ttl / 2 {
            let least = reserved.saturating_mul(2);
            return Some(format!(
                "--grace {:?} leaves too little of --ttl {:?}: shorten the grace, or take a ttl of \
                 {least:?} or more",
                self.grace, self.ttl,
            ));
        }
        let contradiction = self.backend.contradiction();
        contradiction.or_else(|| self.backend.refuses_ttl(self.ttl))
    }
}

fn meta_line(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}
