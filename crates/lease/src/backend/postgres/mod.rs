//! Leases in PostgreSQL: rows that are valid until they expire, on the server's clock. Every
//! command is one statement, and that statement is its own transaction: no session is needed, so it
//! works through `PgBouncer` in transaction mode. The rules are in `sql/`; this side sends and
//! reads. Tokens are made of an epoch row and a sequence of the same database. `lease.md` 5.5.

mod acquire;
mod config;
mod doctor;
mod factory;
mod failure;
mod link;
mod listener;
mod pooling;
mod prune;
mod renew_release;
mod schema;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

pub use config::PgConfig;
pub(crate) use link::{Link, Param};
pub use schema::migrate;

use crate::backend::{
    Acquire, AcquireReply, Backend, Facts, Finding, Fut, Holder, Kind, Names, Release,
    ReleaseReply, Renew, RenewReply, WakeStream,
};
use crate::{BackendError, Clock, Name, Namespace};
use listener::Listener;

/// Longest sleep of a waiter between two tries: there is no wake-up unless it is enabled.
const POLL: Duration = Duration::from_millis(250);

/// A backend on one PostgreSQL database.
pub struct Postgres {
    config: PgConfig,
    namespace: Namespace,
    clock: Arc<dyn Clock>,
    call_timeout: Duration,
    /// Each acquires the names that hash to it, so that a wait for the lock of one name delays few
    /// others.
    acquirers: Vec<Link>,
    /// Renews and releases: no acquire can delay a renewal.
    settling: Link,
    /// Listens for releases, if enabled.
    listener: Option<Listener>,
    /// Deletes of idle rows, under way.
    pruning: std::sync::Mutex<JoinSet<()>>,
}

impl Postgres {
    /// Creates a backend of `namespace` on the database of `config`, which `migrate` must have
    /// prepared. Connects when it is first used. Waits at most `call_timeout` for a connection and
    /// for an answer. Must be used from one tokio runtime.
    pub fn new(
        config: PgConfig,
        namespace: Namespace,
        clock: Arc<dyn Clock>,
        call_timeout: Duration,
    ) -> Self {
        let link = || Link::new(config.clone(), Arc::clone(&clock), call_timeout);
        let channel = format!("soldonce_lease_{namespace}");
        let listener = || Listener::new(config.clone(), Arc::clone(&clock), channel);
        Self {
            listener: config.notify.then(listener),
            acquirers: (0..config.connections).map(|_| link()).collect(),
            settling: link(),
            pruning: std::sync::Mutex::default(),
            config,
            namespace,
            clock,
            call_timeout,
        }
    }

    /// Returns the connection that acquires the names with routing key `key`.
    fn acquirer(&self, key: Option<&Name>) -> &Link {
        let bytes = key.map_or(&[][..], |key| key.as_str().as_bytes());
        let hash = bytes.iter().fold(0_usize, |hash, &byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        let place = hash.checked_rem(self.acquirers.len());
        let link = place.and_then(|place| self.acquirers.get(place));
        link.unwrap_or(&self.settling)
    }
}

/// Writes a name for the column `name`. No two are written alike: a name holds no slash.
fn column(group: Option<&Name>, name: &Name) -> String {
    match group {
        Some(group) => format!("{group}/{name}"),
        None => name.to_string(),
    }
}

fn columns(names: &Names) -> impl Iterator<Item = String> + '_ {
    let column = |name| column(names.group(), name);
    names.as_slice().iter().map(column)
}

/// Converts to microseconds for the server; the longest span that is asked for is 30 days.
fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// Converts microseconds of the server, which never sends a span below zero.
fn span(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

/// Builds the error `Unknown`: the server ran the statement, and its answer breaks the contract.
fn garbled(what: &str) -> BackendError {
    BackendError::Unknown(format!("the answer has no {what}"))
}

impl Backend for Postgres {
    fn facts(&self) -> Facts {
        let mut facts = Facts::of(Kind::Postgres);
        facts.poll = POLL;
        facts
    }

    fn acquire<'a>(&'a self, command: &'a Acquire) -> Fut<'a, AcquireReply> {
        Box::pin(acquire::acquire(self, command))
    }

    fn renew<'a>(&'a self, batch: &'a [Renew]) -> Fut<'a, Vec<RenewReply>> {
        Box::pin(renew_release::renew(self, batch))
    }

    fn release<'a>(&'a self, batch: &'a [Release]) -> Fut<'a, Vec<ReleaseReply>> {
        Box::pin(renew_release::release(self, batch))
    }

    fn inspect<'a>(
        &'a self,
        group: Option<&'a Name>,
        name: &'a Name,
    ) -> Fut<'a, Result<Option<Holder>, BackendError>> {
        Box::pin(acquire::inspect(self, group, name))
    }

    fn wake<'a>(&'a self, names: &'a Names) -> Fut<'a, WakeStream> {
        Box::pin(async move {
            match &self.listener {
                Some(listener) => listener.listen(names, self.call_timeout).await,
                None => WakeStream::silent(),
            }
        })
    }

    fn doctor(&self) -> Fut<'_, Vec<Finding>> {
        Box::pin(doctor::examine(self))
    }
}
