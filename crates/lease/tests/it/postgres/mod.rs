//! The PostgreSQL backend on private servers, hurt in the ways that it must survive.

mod commands;
mod conformance;
mod doctor;
mod epochs;
mod facade;
mod faults;
mod gate;
mod race;
#[cfg(feature = "tls")]
mod tls;
mod unknown;

use std::sync::Arc;
use std::time::Duration;

use soldonce_lease::backend::postgres::{PgConfig, Postgres, migrate};
use soldonce_lease::backend::{Acquire, Backend, Names};
use soldonce_lease::{
    BackendError, Clock, Name, Namespace, Owner, Refusal, SystemClock, SystemEntropy,
};
use soldonce_testkit::PATIENCE;
use soldonce_testkit::postgres::Postgres as Server;
use tokio::task::JoinSet;

use crate::requests;

pub(crate) use crate::conformance::one;
pub(crate) use crate::requests::{granted, release, renew};

/// Longest wait of the tests' backends for an answer: generous, the machine may be busy.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// A server with the tables of leases in it.
pub(crate) async fn server() -> Server {
    let server = Server::start().unwrap();
    migrated(&config(&server)).await.unwrap();
    server
}

/// Migrates. Three seconds for a connection and its answer are little for many servers that start at once.
pub(crate) async fn migrated(config: &PgConfig) -> Result<(), BackendError> {
    let end = SystemClock.boot().plus(PATIENCE);
    loop {
        match migrate(config).await {
            Err(BackendError::NotSent(_) | BackendError::Unknown(_))
                if SystemClock.boot() < end => {}
            answered => return answered,
        }
    }
}

pub(crate) fn config(server: &Server) -> PgConfig {
    PgConfig::url(&server.url()).unwrap()
}

pub(crate) fn backend(config: PgConfig) -> Postgres {
    let namespace = Namespace::new("app").unwrap();
    Postgres::new(config, namespace, Arc::new(SystemClock), CALL_TIMEOUT)
}

/// A plain session, and the task that moves its bytes.
pub(crate) async fn session(server: &Server) -> (tokio_postgres::Client, JoinSet<()>) {
    let connected = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move { connection.await.unwrap_or_default() });
    (client, task)
}

pub(crate) fn owner() -> Owner {
    Owner::draw(&SystemEntropy)
}

pub(crate) fn group(names: &[&str]) -> Names {
    let names = names.iter().map(|name| Name::new(name).unwrap());
    Names::of_group(Name::new("g").unwrap(), names.collect())
}

/// Five minutes for a new owner, more than any test takes.
pub(crate) fn ask(names: Names) -> Acquire {
    Acquire {
        meta: "who=test".into(),
        ..requests::ask(names, owner(), Duration::from_mins(5))
    }
}

pub(crate) async fn refused(backend: &dyn Backend, ask: &Acquire) -> Refusal {
    crate::conformance::refused(backend.acquire(ask).await)
}
